"""Snapshots: the state of one cluster at one moment, on which every decision is based."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import datetime

from fleetgauge_core.detection import (
    Finding,
    FindingSubject,
    HealthCondition,
    HealthState,
)
from fleetgauge_core.metadata import ClusterMetadata
from fleetgauge_core.tables import ActionKind
from fleetgauge_operations.actions.plan.case import ActionCase


@dataclass(frozen=True, slots=True)
class ActiveAlert:
    """The alert state of a broker; of the whole cluster if ``broker_id`` is None."""

    broker_id: int | None
    state: HealthState
    since: datetime
    state_since: datetime | None = None
    """When the present state began, if the alert had another state before; None if at ``since``."""


@dataclass(frozen=True, slots=True)
class ClusterSnapshot:
    """The metadata, alerts and cases of one cluster, and what its configuration permits."""

    metadata: ClusterMetadata
    alerts: tuple[ActiveAlert, ...] = ()
    cases: Sequence[ActionCase] = ()
    """Cases by start time, without the case for which the snapshot was taken."""
    healthy_since: Mapping[int, datetime] = field(default_factory=dict)
    """When the last alert ended, by ID of each broker that had alerts and has none now."""
    modes: Mapping[str, str] = field(default_factory=dict)
    """Mode by action, as in fleet.yaml: ``off``, ``advise`` or ``act``."""
    is_rolling: bool = False
    """Whether a rolling restart is in progress."""
    planned_broker_ids: Set[int | None] = frozenset()
    """Brokers in planned maintenance; None stands for all brokers."""
    is_watched: bool = True
    """Whether a watch is running, so that the alerts are current."""
    has_restart_command: bool = False

    def mode(self, kind: ActionKind) -> str:
        """Return ``off`` (never), ``advise`` (by operators; the default) or ``act`` (also by controllers)."""
        return self.modes.get(kind, "advise")

    def zone(self, broker_id: int) -> str | None:
        """Return the rack of a broker; None if it has none or is not registered."""
        broker = self.metadata.brokers.get(broker_id)
        return broker.rack if broker else None


def find_active_alerts(findings: Iterable[Finding], cluster_id: str) -> tuple[ActiveAlert, ...]:
    """Return the active alerts of a cluster and its brokers; the findings must be in order of time."""
    alerts: dict[FindingSubject, ActiveAlert] = {}
    for finding in _select_relevant(findings, cluster_id):
        subject = finding.subject
        if finding.is_alert:
            alerts[subject] = _update_alert(alerts.get(subject), finding)
        else:
            alerts.pop(subject, None)
    return tuple(alerts.values())


def _update_alert(previous: ActiveAlert | None, finding: Finding) -> ActiveAlert:
    alert = ActiveAlert(finding.subject.broker_id, finding.to_state, finding.event.at)
    if previous is None:
        return alert
    # NETWORK_UNAVAILABLE refines BROKER_DOWN: the broker has been unreachable for as long.
    is_same_fault = alert.state in (previous.state, HealthState.NETWORK_UNAVAILABLE)
    return replace(
        alert,
        since=previous.since,
        state_since=previous.state_since if is_same_fault else finding.event.at,
    )


def find_healthy_since(findings: Iterable[Finding], cluster_id: str) -> dict[int, datetime]:
    """Return when the last alert ended, by ID of each broker that had alerts and has none now."""
    healthy_since: dict[int, datetime] = {}
    alerting: set[FindingSubject] = set()
    for finding in _select_relevant(findings, cluster_id):
        subject = finding.subject
        if subject.broker_id is None:
            continue
        if finding.is_alert:
            alerting.add(subject)
        elif subject in alerting:
            alerting.remove(subject)
            if finding.is_unwatched:
                # Whether the broker recovered is not known.
                healthy_since.pop(subject.broker_id, None)
            else:
                healthy_since[subject.broker_id] = finding.event.at
    alerting_broker_ids = {subject.broker_id for subject in alerting}
    return {broker_id: at for broker_id, at in healthy_since.items() if broker_id not in alerting_broker_ids}


def _select_relevant(findings: Iterable[Finding], cluster_id: str) -> Iterator[Finding]:
    """Yield the findings of a cluster without those about vantages and paths."""
    ignored = (HealthCondition.PATH, HealthCondition.VANTAGE_ILL)
    return (
        finding
        for finding in findings
        if finding.subject.cluster_id == cluster_id and finding.subject.condition not in ignored
    )
