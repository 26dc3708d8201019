"""All that a decision rests on, as it is read at one moment."""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import datetime

from fleetgauge_core.detection import (
    Finding,
    FindingSubject,
    HealthCondition,
    HealthState,
)
from fleetgauge_core.kafka import ClusterMetadata
from fleetgauge_operations.mitigation.case import Action, Case


@dataclass(frozen=True, slots=True)
class Sick:
    """A broker that is named; of none where it is the whole cluster."""

    broker_id: int | None
    phase: HealthState
    since: datetime
    called_since: datetime | None = None
    """Since when by its phase, where it was named as something else before."""


@dataclass(frozen=True, slots=True)
class Situation:
    """Of one cluster. ``cases``: on record, without the one that asks."""

    layout: ClusterMetadata
    sick: tuple[Sick, ...] = ()
    cases: Sequence[Case] = ()
    well_since: Mapping[int, datetime] = field(default_factory=dict)
    """Brokers that were named once and are not now."""
    modes: Mapping[str, str] = field(default_factory=dict)
    """By action, as fleet.yaml says it: ``off``, ``advise`` or ``act``."""
    rolling: bool = False
    planned: Set[int | None] = frozenset()
    """Brokers that people have planned to be out now; None among them: all."""
    watched: bool = True
    """Whether a watch is at work, so that what is named is so now."""
    can_restart: bool = False
    """Whether somebody has said how a broker is restarted."""

    def mode(self, action: Action) -> str:
        """``off``: nobody does it; ``advise``, unless it is said: a person; ``act``: whoever is on duty."""
        return self.modes.get(action, "advise")

    def zone(self, broker_id: int) -> str | None:
        """None for a broker that has none, or is not registered."""
        known = self.layout.brokers.get(broker_id)
        return known.rack if known else None


def sick_now(findings: Iterable[Finding], cluster_id: str) -> tuple[Sick, ...]:
    """What is named of the cluster and its brokers after those findings, in their order."""
    named: dict[FindingSubject, Sick] = {}
    for one in _of(findings, cluster_id):
        subject = one.subject
        if one.is_alert:
            named[subject] = _renamed(named.get(subject), one)
        else:
            named.pop(subject, None)
    return tuple(named.values())


def _renamed(known: Sick | None, found: Finding) -> Sick:
    now = Sick(found.subject.broker_id, found.to_state, found.event.at)
    if known is None:
        return now
    # That one is cut off is found by its going on as silent as it was.
    same = now.phase in (known.phase, HealthState.NETWORK_UNAVAILABLE)
    return replace(now, since=known.since, called_since=known.called_since if same else found.event.at)


def well_since(findings: Iterable[Finding], cluster_id: str) -> dict[int, datetime]:
    """When each broker that has ever been named was heard to be well, if it is."""
    found: dict[int, datetime] = {}
    sick: set[FindingSubject] = set()
    for one in _of(findings, cluster_id):
        subject = one.subject
        if subject.broker_id is None:
            continue
        if one.is_alert:
            sick.add(subject)
        elif subject in sick:
            sick.remove(subject)
            found[subject.broker_id] = one.event.at
    return {b: at for b, at in found.items() if b not in {one.broker_id for one in sick}}


def _of(findings: Iterable[Finding], cluster_id: str) -> Iterable[Finding]:
    others = (HealthCondition.PATH, HealthCondition.VANTAGE_ILL)
    return (
        one
        for one in findings
        if one.subject.cluster_id == cluster_id and one.subject.condition not in others
    )
