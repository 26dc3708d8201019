"""Simulated incidents, and how each of them affects probes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fleetgauge_core.slo.causes import REPORTED_CHANGE, UNKNOWN
from fleetgauge_core.slo.levels import CENSORED_LATENCY_US
from fleetgauge_pipelines.simulation.latency_trend import WEEK, Floats
from fleetgauge_pipelines.simulation.profile import ClusterProfile

_MINUTE = timedelta(minutes=1)
#: Share of probes that fail in the first minute of a hung follower: acks=all waits for it until it leaves the
#: ISR after 30 s (replica.lag.time.max.ms).
_FAILING_UNTIL_OUT_OF_SYNC = 0.5


class IncidentKind(StrEnum):
    """The kinds of incidents that are simulated."""

    BROKER_HUNG = "broker_hung"
    """The broker's disk hangs while its session stays alive: it remains leader and answers no request."""
    BROKER_SLOW = "broker_slow"
    CLUSTER_SLOW = "cluster_slow"
    ZONE_NETWORK = "zone_network"
    """The network to one zone's brokers is slow and loses some requests."""
    AGENT_GONE = "agent_gone"
    """The agent does not run, so nothing is measured."""
    ROLL = "roll"
    """Brokers are restarted one after the other, and clients notice it."""
    REASSIGNMENT = "reassignment"
    """A broker is slow, because replicas are moved to it."""
    THROTTLE = "throttle"
    """A broker is slow, because its replication is throttled too much."""
    RELEASE = "release"
    """A release makes the cluster slow, until it is taken back."""


@dataclass(frozen=True, slots=True)
class _Pattern:
    """How a kind of incident occurs: its share of all incidents, its duration, and its effect on probes.

    ``extra_ms`` is the range of added latency, ``failing`` the share of probes that fail.
    """

    share: float
    minutes: tuple[int, int]
    extra_ms: tuple[int, int] = (0, 0)
    failing: float = 0.0


# Each kind adds more latency than an objective of 100 ms or fails more than 1% of the probes, so that every
# minute of an incident is a bad minute.
_PATTERNS: Mapping[IncidentKind, _Pattern] = {
    IncidentKind.BROKER_HUNG: _Pattern(0.25, (3, 25), failing=1.0),
    IncidentKind.BROKER_SLOW: _Pattern(0.30, (10, 90), extra_ms=(150, 600)),
    IncidentKind.CLUSTER_SLOW: _Pattern(0.15, (5, 45), extra_ms=(120, 400)),
    IncidentKind.ZONE_NETWORK: _Pattern(0.15, (4, 30), extra_ms=(200, 900), failing=0.03),
    IncidentKind.AGENT_GONE: _Pattern(0.15, (10, 180)),
}
#: In a roll each broker restarts in the first of so many minutes.
ROLL_MINUTES_PER_BROKER = 2
#: The cause that the pipeline must name in the minutes of an incident; of others it depends on a change.
_CAUSES = {
    IncidentKind.BROKER_HUNG: "BROKER_DOWN",
    IncidentKind.BROKER_SLOW: "DEGRADED",
    IncidentKind.ROLL: "roll",
    IncidentKind.REASSIGNMENT: "reassignment",
    IncidentKind.THROTTLE: "throttle",
    IncidentKind.RELEASE: REPORTED_CHANGE,
}


@dataclass(frozen=True, slots=True)
class SimulatedIncident:
    """A simulated incident of whole minutes, [start, end); ``brokers`` are the faulty ones."""

    id: str
    kind: IncidentKind
    cluster_id: str
    brokers: tuple[int, ...]
    start: datetime
    end: datetime
    extra_us: int

    @property
    def minutes(self) -> int:
        """Return the duration in minutes."""
        return (self.end - self.start) // _MINUTE

    def ledger_entry(self, is_explained: bool = False) -> dict[str, Any]:
        """Return the incident's entry in ledger.json, with the effect that the tables must show.

        ``is_explained``: somebody has reported the change that caused it.
        """
        is_gone = self.kind is IncidentKind.AGENT_GONE
        is_hung = self.kind is IncidentKind.BROKER_HUNG
        slow_us = CENSORED_LATENCY_US["client"] if is_hung else self.extra_us
        return {
            "id": self.id,
            "kind": self.kind.value,
            "cluster_id": self.cluster_id,
            "brokers": list(self.brokers),
            "start": self.start.isoformat(),
            "end": self.end.isoformat(),
            "bad_minutes": 0 if is_gone else self.minutes,
            "unmeasured_minutes": self.minutes if is_gone else 0,
            "latency_p99_censored_us_at_least": None if is_gone else slow_us,
            "cause": None if is_gone else self._find_cause(is_explained),
        }

    def _find_cause(self, is_explained: bool) -> str:
        return _CAUSES.get(self.kind, REPORTED_CHANGE if is_explained else UNKNOWN)


def draw_incidents(
    rng: np.random.Generator,
    profile: ClusterProfile,
    name: str,
    start: datetime,
    minutes: int,
    per_week: float,
) -> tuple[SimulatedIncident, ...]:
    """Draw the incidents of a period in the order of their time.

    Incidents are never adjacent, and none includes the first or the last minute of the period.
    """
    count = int(rng.poisson(per_week * minutes / WEEK))
    return tuple(
        incident
        for number in range(count)
        if (incident := _draw(rng, profile, f"{name}/{number}", start, number, minutes // count))
    )


def _draw(
    rng: np.random.Generator,
    profile: ClusterProfile,
    name: str,
    start: datetime,
    slot: int,
    slot_minutes: int,
) -> SimulatedIncident | None:
    """Draw an incident within its slot of the period; None if the slot is too short."""
    kind = list(_PATTERNS)[rng.choice(len(_PATTERNS), p=[pattern.share for pattern in _PATTERNS.values()])]
    pattern = _PATTERNS[kind]
    minutes = min(int(rng.integers(*pattern.minutes, endpoint=True)), slot_minutes - 2)
    if minutes < 1:
        return None
    begins = start + _MINUTE * (slot * slot_minutes + 1 + int(rng.integers(slot_minutes - 1 - minutes)))
    return SimulatedIncident(
        id=name,
        kind=kind,
        cluster_id=profile.cluster_id,
        brokers=_draw_faulty_brokers(rng, profile, kind),
        start=begins,
        end=begins + minutes * _MINUTE,
        extra_us=1000 * int(rng.integers(*pattern.extra_ms, endpoint=True)),
    )


def _draw_faulty_brokers(
    rng: np.random.Generator, profile: ClusterProfile, kind: IncidentKind
) -> tuple[int, ...]:
    faulty = int(rng.choice(profile.brokers))
    if kind in (IncidentKind.BROKER_HUNG, IncidentKind.BROKER_SLOW):
        return (faulty,)
    if kind is IncidentKind.ZONE_NETWORK:
        racks = zip(profile.brokers, profile.racks, strict=True)
        return tuple(broker for broker, rack in racks if rack == profile.racks[faulty - 1])
    return profile.brokers if kind is IncidentKind.CLUSTER_SLOW else ()


@dataclass(frozen=True, slots=True, eq=False)
class LegHarm:
    """The effect on one leg, as arrays of minutes x brokers: added latency and share of failing probes."""

    extra_us: Floats
    failing: Floats

    @classmethod
    def none(cls, minutes: int, brokers: int) -> Self:
        """Return the effect of no incident."""
        return cls(np.zeros((minutes, brokers)), np.zeros((minutes, brokers)))


@dataclass(frozen=True, slots=True, eq=False)
class IncidentHarm:
    """The effect of a period's incidents on both legs; ``silent`` marks the minutes without an agent."""

    client: LegHarm
    leader: LegHarm
    silent: NDArray[np.bool_]

    @classmethod
    def compute(
        cls, incidents: Iterable[SimulatedIncident], profile: ClusterProfile, start: datetime, minutes: int
    ) -> Self:
        """Return the combined effect of incidents on the ``minutes`` from ``start`` on."""
        brokers = len(profile.brokers)
        harm = cls(
            LegHarm.none(minutes, brokers), LegHarm.none(minutes, brokers), np.zeros(minutes, np.bool_)
        )
        for incident in incidents:
            first = (incident.start - start) // _MINUTE
            harm._add_incident(incident, profile, slice(first, first + incident.minutes))
        return harm

    def _add_incident(self, incident: SimulatedIncident, profile: ClusterProfile, during: slice) -> None:
        # The leader leg is affected on the faulty brokers, the client leg on every home whose partition has a
        # replica on one of them, because acks=all waits for it.
        faulty = np.isin(profile.brokers, incident.brokers)
        affected = profile.find_affected_homes(faulty)
        failing = _PATTERNS[incident.kind].failing if incident.kind in _PATTERNS else 0.0
        if incident.kind is IncidentKind.ROLL:
            self._add_roll(incident, profile, during)
            return
        if incident.kind is IncidentKind.AGENT_GONE:
            self.silent[during] = True
            return
        if incident.kind is IncidentKind.BROKER_HUNG:
            self.client.failing[during.start, affected] = _FAILING_UNTIL_OUT_OF_SYNC
            affected = faulty
        for leg, brokers in ((self.client, affected), (self.leader, faulty)):
            leg.extra_us[during, brokers] = incident.extra_us
            leg.failing[during, brokers] = failing

    def _add_roll(self, incident: SimulatedIncident, profile: ClusterProfile, during: slice) -> None:
        for position, broker in enumerate(incident.brokers):
            faulty = np.isin(profile.brokers, (broker,))
            first = during.start + position * ROLL_MINUTES_PER_BROKER
            minutes = slice(first, first + ROLL_MINUTES_PER_BROKER)
            self.client.extra_us[minutes, profile.find_affected_homes(faulty)] = incident.extra_us
            self.leader.extra_us[minutes, faulty] = incident.extra_us
