"""The texts of findings: build notifications with summary, severity, runbook and suggested mitigation."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

from fleetgauge_core.contract.failure_codes import AgentFault
from fleetgauge_core.detection import (
    Finding,
    FindingSubject,
    HealthCondition,
    HealthState,
)
from fleetgauge_operations.mitigation.plan.limits import DEFAULT_LIMITS
from fleetgauge_operations.notify.notification import Notification
from fleetgauge_operations.notify.receivers.slack import escape_markup

#: The summary of each finding kind: when it opens, and when it is resolved.
_SUMMARIES = {
    HealthState.BROKER_DOWN: (
        "broker {broker} is down: it neither answers ApiVersions nor acknowledges probes",
        "broker {broker} has recovered",
    ),
    HealthState.NETWORK_UNAVAILABLE: (
        "broker {broker} is unreachable for clients, but in sync with its cluster",
        "broker {broker} has recovered",
    ),
    HealthState.STORAGE_STALLED: (
        "broker {broker}: storage stalled, or a log directory is offline",
        "broker {broker} has recovered",
    ),
    HealthState.DEGRADED: (
        "broker {broker} is slow: its latency is far above that of its peers and its own last hour",
        "broker {broker} is as fast as before",
    ),
    HealthState.PATH: (
        "vantage {vantage} cannot reach broker {towards}, but other vantages can",
        "vantage {vantage} reaches broker {towards} again",
    ),
    HealthState.VANTAGE_ILL: (
        "vantage {vantage} does not measure most brokers: a fault of its agent, its host or its network",
        "vantage {vantage} measures its brokers again",
    ),
    HealthState.CLUSTER_DOWN: (
        "the cluster is down: no broker answers or acknowledges probes",
        "the cluster has recovered",
    ),
    HealthState.NO_DATA: (
        "no probe data: no agent measures this cluster now, or the watch cannot read its pulses",
        "probe data is arriving again",
    ),
    HealthState.LATENCY_BURN: (
        "latency error budget is burning fast; no single broker identified",
        "latency error budget is no longer burning fast",
    ),
    HealthState.LATENCY_BURN_SLOW: (
        "latency error budget will be exhausted early; no single broker identified",
        "latency error budget will last again",
    ),
    HealthState.AVAILABILITY_BURN: (
        "availability error budget is burning fast; no single broker identified",
        "availability error budget is no longer burning fast",
    ),
    HealthState.AVAILABILITY_BURN_SLOW: (
        "availability error budget will be exhausted early; no single broker identified",
        "availability error budget will last again",
    ),
}
_TICKETS = (
    HealthCondition.PATH,
    HealthCondition.VANTAGE_ILL,
    HealthCondition.LATENCY_BURN_SLOW,
    HealthCondition.AVAILABILITY_BURN_SLOW,
)
_RUNBOOKS = {
    HealthState.BROKER_DOWN: "broker-down",
    HealthState.NETWORK_UNAVAILABLE: "network-unavailable",
    HealthState.STORAGE_STALLED: "storage-stalled",
    HealthState.DEGRADED: "broker-degraded",
    HealthState.PATH: "path",
    HealthState.VANTAGE_ILL: "vantage-ill",
    HealthState.CLUSTER_DOWN: "cluster-down",
    HealthState.NO_DATA: "no-data",
    HealthState.LATENCY_BURN: "budget-burn",
    HealthState.LATENCY_BURN_SLOW: "budget-burn",
    HealthState.AVAILABILITY_BURN: "budget-burn",
    HealthState.AVAILABILITY_BURN_SLOW: "budget-burn",
}


def summarize(
    subject: FindingSubject,
    before: HealthState,
    after: HealthState,
    evidence: Mapping[str, Any] = MappingProxyType({}),
) -> str:
    """Return one line about a finding that opens or changes, or one that is resolved.

    ``evidence`` is the finding's, if it is known.
    """
    opened, resolved = _SUMMARIES[after if after.is_alert else before]
    summary = (opened if after.is_alert else resolved).format(**_name_subject(subject))
    if after.is_alert and (reason := _describe_agent_fault(evidence)):
        summary = f"vantage {subject.vantage} {reason}"
    if after is HealthState.DEGRADED and (alerts := evidence.get("episode_alerts", 1)) > 1:
        summary += f"; it comes and goes, this is alert {alerts} of the same episode"
    return f"{subject.cluster_id}: {summary}"


def _describe_agent_fault(evidence: Mapping[str, Any]) -> str | None:
    """Return which brokers a vantage does not measure, why, and what to do; None without such a fault."""
    if evidence.get("agent_fault") not in set(AgentFault):
        return None
    fault = AgentFault(evidence["agent_fault"])
    brokers = ", ".join(map(str, evidence.get("brokers", ())))
    return f"does not measure brokers {brokers}: {fault.description}; {fault.remedy}"


def summarize_finding(finding: Finding) -> str:
    """Return one line about a finding that opens, changes or is resolved, or whose cluster was removed."""
    if not finding.is_unwatched:
        evidence = json.loads(finding.event.evidence)
        return summarize(finding.subject, finding.from_state, finding.to_state, evidence)
    subject, names = finding.subject, _name_subject(finding.subject)
    about = "".join(f" of {name} {value}" for name, value in names.items() if value is not None)
    return (
        f"{subject.cluster_id}: no longer watched, by the fleet file: "
        f"{finding.from_state}{about} is closed, whether it has recovered or not"
    )


def _name_subject(subject: FindingSubject) -> dict[str, int | str | None]:
    return {"broker": subject.broker_id, "vantage": subject.vantage, "towards": subject.target_broker_id}


@dataclass(frozen=True, slots=True)
class FindingFormat:
    """Builds the notifications of findings."""

    page_url: str | None
    """The URL of `fleetgauge dash`; None if it is not in the fleet file."""
    context_of: Callable[[str], Sequence[str]] = lambda _: ()
    """Returns lines about a cluster's remaining error budgets and its recent actions."""

    def build_notification(self, finding: Finding) -> Notification:
        """Return the notification of a finding that opens, changes or is resolved."""
        subject, event = finding.subject, finding.event
        before, after = finding.from_state, finding.to_state
        alert_state = before if finding.is_cleared else after
        runbook, advice = self.runbook(before, after), self.advice(subject, after)
        context = self.context(finding)
        evidence = json.loads(event.evidence)
        page = self.page(subject)
        return replace(
            self.build_open_alert(subject, alert_state, event.at),
            notification_id=event.event_id,
            firing=not finding.is_cleared,
            kind=event.kind,
            broker_id=event.broker_id,
            summary=summarize_finding(finding),
            annotations={
                **self._annotations(subject, alert_state),
                **({"summary": summarize(subject, before, after, evidence)} if finding.is_alert else {}),
                **({"around": "\n".join(context)} if context else {}),
                "event_id": event.event_id,
            },
            document={
                "vantage": subject.vantage,
                "runbook": runbook,
                "advice": advice,
                "page": page,
                "around": context,
                "evidence": evidence,
            },
            details={
                "id": event.event_id,
                "runbook": runbook,
                "advice": advice,
                "around": context,
                "evidence": evidence,
            },
            chat_lines=[self._chat_line(finding), *map(escape_markup, context)],
        )

    def build_open_alert(self, subject: FindingSubject, state: HealthState, since: datetime) -> Notification:
        """Return the notification of a finding that an earlier watch opened and that is still open."""
        return Notification(
            notification_id=subject.fingerprint,
            incident=subject.fingerprint,
            firing=True,
            severity="ticket" if subject.condition in _TICKETS else "page",
            kind=state.value,
            cluster_id=subject.cluster_id,
            broker_id=subject.broker_id,
            at=since,
            summary=summarize(subject, HealthState.HEALTHY, state),
            alert_name=subject.condition.value,
            labels={
                **{name: str(value) for name, value in _name_subject(subject).items() if value is not None},
                "fingerprint": subject.fingerprint,
            },
            annotations=self._annotations(subject, state),
            page_url=self.page(subject),
        )

    def runbook(self, before: HealthState, after: HealthState) -> str:
        """Return the path of the runbook for a finding that opens or changes, or for one that is resolved."""
        return f"docs/runbooks/{_RUNBOOKS[after if after.is_alert else before]}.md"

    def advice(self, subject: FindingSubject, state: HealthState) -> str | None:
        """Return the command for a dry run of a mitigation that may help; None if no mitigation does."""
        actions = [action for action, states in DEFAULT_LIMITS.warrants.items() if state in states]
        if not actions:
            return None
        return (
            f"fleetgauge mitigate apply --cluster {subject.cluster_id} --broker {subject.broker_id} "
            f"--action {actions[0]}"
        )

    def context(self, finding: Finding) -> list[str]:
        """Return lines about peers, error budgets and recent actions; none for a resolved finding."""
        if not finding.is_alert:
            return []
        return [
            *_describe_peers(json.loads(finding.event.evidence)),
            *self.context_of(finding.subject.cluster_id),
        ]

    def page(self, subject: FindingSubject) -> str | None:
        """Return the URL of the cluster's alerts page; None if the dashboard's URL is unknown."""
        if self.page_url is None:
            return None
        return f"{self.page_url.rstrip('/')}/alerts?cluster={quote(subject.cluster_id, safe='')}"

    def _annotations(self, subject: FindingSubject, state: HealthState) -> dict[str, str]:
        advice = self.advice(subject, state)
        return {
            "summary": summarize(subject, HealthState.HEALTHY, state),
            "kind": state.value,
            "runbook": self.runbook(HealthState.HEALTHY, state),
            **({"advice": advice} if advice else {}),
        }

    def _chat_line(self, finding: Finding) -> str:
        """Return a line with the time, links and the suggested command."""
        parts = [f"{finding.event.at:%Y-%m-%d %H:%M:%S} UTC"]
        if page := self.page(finding.subject):
            parts.append(f"<{page}|history and evidence>")
        if finding.is_alert:
            parts.append(f"runbook: {escape_markup(self.runbook(finding.from_state, finding.to_state))}")
            if advice := self.advice(finding.subject, finding.to_state):
                parts.append(f"`{escape_markup(advice)}`")
        return " · ".join(parts)


def _describe_peers(evidence: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line about how many of a broker's peers have findings as well, if it has peers."""
    peers = evidence.get("peers", {"brokers": 0})
    if not peers["brokers"]:
        return
    if brokers := ", ".join(map(str, peers["named"])):
        yield f"of its {peers['brokers']} peers, these have findings too: {brokers}"
    else:
        yield f"none of its {peers['brokers']} peers has a finding"
