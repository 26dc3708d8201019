"""What a person is told of a finding."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from fleetgauge_core.detection import (
    Chain,
    Finding,
    Phase,
    Subject,
)
from fleetgauge_operations.mitigation.limits import DEFAULT_LIMITS

#: What is said when something is named, and when it is cleared.
_WORDS = {
    Phase.BROKER_DOWN: (
        "broker {broker} is down: it neither answers nor acknowledges",
        "broker {broker} is back",
    ),
    Phase.NETWORK_UNAVAILABLE: (
        "broker {broker} is cut off: its cluster hears it, its clients do not",
        "broker {broker} is back",
    ),
    Phase.STORAGE_STALLED: (
        "broker {broker}'s disk stands still, or a directory of it is given up",
        "broker {broker} is back",
    ),
    Phase.DEGRADED: (
        "broker {broker} is slow: it acknowledges later than its peers and its own last hour",
        "broker {broker} is as fast again",
    ),
    Phase.PATH: (
        "vantage {vantage} does not reach broker {towards}, which others reach",
        "vantage {vantage} reaches broker {towards} again",
    ),
    Phase.VANTAGE_ILL: (
        "vantage {vantage} does not reach most brokers, which others reach",
        "vantage {vantage} reaches its brokers again",
    ),
    Phase.CLUSTER_DOWN: ("no broker answers or acknowledges", "its brokers answer again"),
    Phase.NO_DATA: ("nothing is heard of its brokers: nobody measures it", "it is measured again"),
    Phase.LATENCY_BURN: (
        "its latency budget is going fast, and no broker is named for it",
        "its latency budget lasts again",
    ),
    Phase.LATENCY_BURN_SLOW: (
        "its latency budget will not last, and no broker is named for it",
        "its latency budget will last again",
    ),
    Phase.AVAILABILITY_BURN: (
        "its availability budget is going fast, and no broker is named for it",
        "its availability budget lasts again",
    ),
    Phase.AVAILABILITY_BURN_SLOW: (
        "its availability budget will not last, and no broker is named for it",
        "its availability budget will last again",
    ),
}
_TICKETS = (Chain.PATH, Chain.VANTAGE_ILL, Chain.LATENCY_BURN_SLOW, Chain.AVAILABILITY_BURN_SLOW)
_RUNBOOKS = {
    Phase.BROKER_DOWN: "broker-down",
    Phase.NETWORK_UNAVAILABLE: "network-unavailable",
    Phase.STORAGE_STALLED: "storage-stalled",
    Phase.DEGRADED: "broker-degraded",
    Phase.PATH: "path",
    Phase.VANTAGE_ILL: "vantage-ill",
    Phase.CLUSTER_DOWN: "cluster-down",
    Phase.NO_DATA: "no-data",
    Phase.LATENCY_BURN: "budget-burn",
    Phase.LATENCY_BURN_SLOW: "budget-burn",
    Phase.AVAILABILITY_BURN: "budget-burn",
    Phase.AVAILABILITY_BURN_SLOW: "budget-burn",
}


def summary(subject: Subject, before: Phase, after: Phase) -> str:
    """Of what is named from then on, or cleared, in one line."""
    named, cleared = _WORDS[after if after.names else before]
    words = named if after.names else cleared
    ends = {"broker": subject.broker_id, "vantage": subject.vantage, "towards": subject.towards}
    return f"{subject.cluster_id}: {words.format(**ends)}"


@dataclass(frozen=True, slots=True)
class Manner:
    """How one notifier is told."""

    pages: str | None
    """The address of `fleetgauge dash`, None where nobody said it."""
    burn_in: bool = False
    """Whether it is tried, and nobody to be woken."""
    known_of: Callable[[str], Sequence[str]] = lambda _: ()
    """What is known of a cluster besides, a line for each."""

    def summary(self, subject: Subject, before: Phase, after: Phase) -> str:
        """In one line, which says what would have been if it is only tried."""
        said = summary(subject, before, after)
        would_page = self.burn_in and after.names and _severity(subject) == "page"
        return f"would have paged: {said}" if would_page else said

    def severity(self, subject: Subject) -> str:
        """``page``: now; ``ticket``: today; ``burn-in``: nobody."""
        return "burn-in" if self.burn_in else _severity(subject)

    def runbook(self, before: Phase, after: Phase) -> str:
        """What to do about what is named from then on, or was until then, in the documentation."""
        return f"docs/runbooks/{_RUNBOOKS[after if after.names else before]}.md"

    def advice(self, subject: Subject, phase: Phase) -> str | None:
        """What may be tried against it, which is a dry run first; None where nothing helps that we do."""
        helps = [action for action, phases in DEFAULT_LIMITS.warrants.items() if phase in phases]
        if not helps:
            return None
        return (
            f"fleetgauge mitigate apply --cluster {subject.cluster_id} --broker {subject.broker_id} "
            f"--action {helps[0]}"
        )

    def around(self, finding: Finding) -> list[str]:
        """How its peers are, what is left of budgets and what was done, a line for each; none of an end."""
        if not finding.names:
            return []
        return [*_peers(json.loads(finding.event.evidence)), *self.known_of(finding.subject.cluster_id)]

    def page(self, subject: Subject) -> str | None:
        """The cluster's findings, with what speaks for each."""
        if self.pages is None:
            return None
        return f"{self.pages.rstrip('/')}/alerts?cluster={quote(subject.cluster_id, safe='')}"


def _peers(evidence: Mapping[str, Any]) -> Iterator[str]:
    """Of a broker that has any."""
    peers = evidence.get("peers", {"brokers": 0})
    if not peers["brokers"]:
        return
    if named := ", ".join(map(str, peers["named"])):
        yield f"of its {peers['brokers']} peers {named} are named as well"
    else:
        yield f"none of its {peers['brokers']} peers is named"


def _severity(subject: Subject) -> str:
    return "ticket" if subject.chain in _TICKETS else "page"
