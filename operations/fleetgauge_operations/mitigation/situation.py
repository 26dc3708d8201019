"""All that a decision rests on, as it is read at one moment."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from fleetgauge_operations.mitigation.case import Case
from fleetgauge_pipelines.detection import Chain, Finding, Phase, Subject
from fleetgauge_probes.kafka import Layout


@dataclass(frozen=True, slots=True)
class Sick:
    """A broker that is named; of none where it is the whole cluster."""

    broker_id: int | None
    phase: Phase
    since: datetime


@dataclass(frozen=True, slots=True)
class Situation:
    """Of one cluster. ``cases``: on record, without the one that asks; ``marked``: demoted for its agent."""

    layout: Layout
    sick: tuple[Sick, ...] = ()
    cases: Sequence[Case] = ()
    marked: frozenset[int] = frozenset()
    rolling: bool = False
    can_restart: bool = False
    """Whether somebody has said how a broker is restarted."""

    def zone(self, broker_id: int) -> str | None:
        """None for a broker that has none, or is not registered."""
        known = self.layout.brokers.get(broker_id)
        return known.rack if known else None


def sick_now(findings: Iterable[Finding], cluster_id: str) -> tuple[Sick, ...]:
    """What is named of the cluster and its brokers after those findings, in their order."""
    named: dict[Subject, Sick] = {}
    for one in findings:
        subject = one.subject
        if subject.cluster_id != cluster_id or subject.chain in (Chain.PATH, Chain.VANTAGE_ILL):
            continue
        if one.names:
            since = named[subject].since if subject in named else one.event.at
            named[subject] = Sick(subject.broker_id, one.to_phase, since)
        else:
            named.pop(subject, None)
    return tuple(named.values())
