"""What goes wrong: planted incidents, and what each does to which probes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fleetgauge_core.slo.levels import CENSORED_US
from fleetgauge_pipelines.simulation.pace import WEEK, Floats
from fleetgauge_pipelines.simulation.profile import Profile

_MINUTE = timedelta(minutes=1)
#: Until a follower that hangs is out of the ISR (replica.lag.time.max.ms is 30 s), acks=all waits for it.
_FAILING_UNTIL_OUT_OF_SYNC = 0.5


class Kind(StrEnum):
    """What goes wrong."""

    BROKER_HUNG = "broker_hung"
    """Its disk hangs and its session lives on: it leads, and answers nobody."""
    BROKER_SLOW = "broker_slow"
    CLUSTER_SLOW = "cluster_slow"
    ZONE_NETWORK = "zone_network"
    """The way to one zone's brokers is slow and loses some."""
    AGENT_GONE = "agent_gone"
    """Nobody measures."""


@dataclass(frozen=True, slots=True)
class _Pattern:
    """How often (a share of all incidents), for how long, how much slower (ms) and how often failing."""

    share: float
    minutes: tuple[int, int]
    extra_ms: tuple[int, int] = (0, 0)
    failing: float = 0.0


# Each slows by more than an objective of 100 ms or fails more than one probe in a hundred,
# so that every minute of it is a bad one.
_PATTERNS: Mapping[Kind, _Pattern] = {
    Kind.BROKER_HUNG: _Pattern(0.25, (3, 25), failing=1.0),
    Kind.BROKER_SLOW: _Pattern(0.30, (10, 90), extra_ms=(150, 600)),
    Kind.CLUSTER_SLOW: _Pattern(0.15, (5, 45), extra_ms=(120, 400)),
    Kind.ZONE_NETWORK: _Pattern(0.15, (4, 30), extra_ms=(200, 900), failing=0.03),
    Kind.AGENT_GONE: _Pattern(0.15, (10, 180)),
}


@dataclass(frozen=True, slots=True)
class Incident:
    """One planted incident: whole minutes, ``end`` exclusive; ``brokers`` are those to blame."""

    id: str
    kind: Kind
    cluster_id: str
    brokers: tuple[int, ...]
    start: datetime
    end: datetime
    extra_us: int

    @property
    def minutes(self) -> int:
        return (self.end - self.start) // _MINUTE

    def entry(self) -> dict[str, Any]:
        """The ledger's line, with what the incident must do to the tables."""
        gone = self.kind is Kind.AGENT_GONE
        hung = self.kind is Kind.BROKER_HUNG
        slow_us = CENSORED_US["client"] if hung else self.extra_us
        return {
            "id": self.id,
            "kind": self.kind.value,
            "cluster_id": self.cluster_id,
            "brokers": list(self.brokers),
            "start": self.start.isoformat(),
            "end": self.end.isoformat(),
            "bad_minutes": 0 if gone else self.minutes,
            "unmeasured_minutes": self.minutes if gone else 0,
            "latency_p99_censored_us_at_least": None if gone else slow_us,
        }


def plant(
    rng: np.random.Generator, profile: Profile, name: str, start: datetime, minutes: int, per_week: float
) -> tuple[Incident, ...]:
    """A stretch's incidents in time's order; they neither touch each other nor its first and last minute."""
    count = int(rng.poisson(per_week * minutes / WEEK))
    return tuple(
        incident
        for number in range(count)
        if (incident := _draw(rng, profile, f"{name}/{number}", start, number, minutes // count))
    )


def _draw(
    rng: np.random.Generator, profile: Profile, name: str, start: datetime, slot: int, slot_minutes: int
) -> Incident | None:
    """One incident within its slot; None where the slot is too short for any."""
    kind = list(_PATTERNS)[rng.choice(len(_PATTERNS), p=[one.share for one in _PATTERNS.values()])]
    pattern = _PATTERNS[kind]
    minutes = min(int(rng.integers(*pattern.minutes, endpoint=True)), slot_minutes - 2)
    if minutes < 1:
        return None
    begins = start + _MINUTE * (slot * slot_minutes + 1 + int(rng.integers(slot_minutes - 1 - minutes)))
    return Incident(
        id=name,
        kind=kind,
        cluster_id=profile.cluster_id,
        brokers=_blamed(rng, profile, kind),
        start=begins,
        end=begins + minutes * _MINUTE,
        extra_us=1000 * int(rng.integers(*pattern.extra_ms, endpoint=True)),
    )


def _blamed(rng: np.random.Generator, profile: Profile, kind: Kind) -> tuple[int, ...]:
    one = int(rng.choice(profile.brokers))
    if kind in (Kind.BROKER_HUNG, Kind.BROKER_SLOW):
        return (one,)
    if kind is Kind.ZONE_NETWORK:
        racks = zip(profile.brokers, profile.racks, strict=True)
        return tuple(broker for broker, rack in racks if rack == profile.racks[one - 1])
    return profile.brokers if kind is Kind.CLUSTER_SLOW else ()


@dataclass(frozen=True, slots=True, eq=False)
class Harm:
    """One leg's minutes x brokers: what every probe takes longer, and the share of them that fails."""

    extra_us: Floats
    failing: Floats

    @classmethod
    def none(cls, minutes: int, brokers: int) -> Self:
        return cls(np.zeros((minutes, brokers)), np.zeros((minutes, brokers)))


@dataclass(frozen=True, slots=True, eq=False)
class Harms:
    """What a stretch's incidents do to it."""

    client: Harm
    leader: Harm
    silent: NDArray[np.bool_]

    @classmethod
    def of(cls, incidents: Iterable[Incident], profile: Profile, start: datetime, minutes: int) -> Self:
        brokers = len(profile.brokers)
        harms = cls(Harm.none(minutes, brokers), Harm.none(minutes, brokers), np.zeros(minutes, np.bool_))
        for incident in incidents:
            first = (incident.start - start) // _MINUTE
            harms._add(incident, profile, slice(first, first + incident.minutes))
        return harms

    def _add(self, incident: Incident, profile: Profile, during: slice) -> None:
        """The leader leg suffers where the fault is, the client leg wherever acks=all waits for it."""
        blamed = np.isin(profile.brokers, incident.brokers)
        felt = profile.felt_by(blamed)
        failing = _PATTERNS[incident.kind].failing
        if incident.kind is Kind.AGENT_GONE:
            self.silent[during] = True
            return
        if incident.kind is Kind.BROKER_HUNG:
            self.client.failing[during.start, felt] = _FAILING_UNTIL_OUT_OF_SYNC
            felt = blamed
        for leg, whose in ((self.client, felt), (self.leader, blamed)):
            leg.extra_us[during, whose] = incident.extra_us
            leg.failing[during, whose] = failing
