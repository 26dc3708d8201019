"""Whether a broker is there: two signs agreeing name it, and its own success clears it.

A broker is SUSPECT on the first of two signs (unanswered ApiVersions, silent leader leg) and named
BROKER_DOWN when most of the vantages that are heard from see both; while the whole cluster is down, that is
what is named. If its own counters stand still it is STORAGE_STALLED; if the cluster itself goes on hearing
it, NETWORK_UNAVAILABLE. It is cleared by a success of its leader leg that was sent after it was named, or by
being in sync and answering for a while where it may not lead; one that flaps, only after a time of calm.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import NamedTuple

from fleetgauge_core.detection.finding import Phase
from fleetgauge_core.detection.signs import Signs
from fleetgauge_core.detection.thresholds import Thresholds

#: As many as make a flapping one.
_NAMINGS_KEPT = 3


class Sighting(NamedTuple):
    """What one vantage said last of one broker."""

    at: datetime
    signs: Signs
    well_since: datetime | None
    gone_since: datetime | None
    there_since: datetime | None
    """Not gone, since when."""


@dataclass(frozen=True, slots=True)
class Presence:
    """One broker: its phase, since when it is doubted or named, and what each vantage last said."""

    phase: Phase = Phase.HEALTHY
    since: datetime | None = None
    namings: tuple[datetime, ...] = ()
    """Those of late."""
    sightings: Mapping[str, Sighting] = field(default_factory=dict)

    def heard(self, vantage: str, at: datetime, signs: Signs, limits: Thresholds) -> "Presence":
        """With what a vantage says now; what it means is for ``judged``."""
        before = self.sightings.get(vantage)
        if before and not limits.are_fresh(before.at, at):
            before = None
        now = Sighting(
            at,
            signs,
            _since(signs.well, before.well_since if before else None, at),
            _since(signs.gone, before.gone_since if before else None, _gone_at(signs, before, at)),
            _since(not signs.gone, before.there_since if before else None, at),
        )
        return Presence(self.phase, self.since, self.namings, {**self.sightings, vantage: now})

    def judged(
        self, sights: Mapping[str, Sighting], now: datetime, limits: Thresholds, *, may_name: bool
    ) -> "Presence":
        """What it is held for now, by the sights that count."""
        fresh = list(sights.values())
        phase = self._phase(fresh, now, limits, may_name)
        if phase is self.phase:
            return self
        if self.phase.names and phase.names:
            return replace(self, phase=phase)
        return replace(self.with_naming(now) if phase.names else self, phase=phase, since=now)

    def with_naming(self, at: datetime) -> "Presence":
        """Named once more."""
        return replace(self, namings=(*self.namings, at)[-_NAMINGS_KEPT:])

    def undated(self, now: datetime) -> "Presence":
        """As it stands, by a clock that was set back to ``now``."""
        return Presence(self.phase, min(self.since, now) if self.since else None)

    def fresh(self, now: datetime, limits: Thresholds) -> dict[str, Sighting]:
        """By vantage, of those that are heard from."""
        return {v: one for v, one in self.sightings.items() if limits.are_fresh(one.at, now)}

    def evidence(self) -> dict[str, object]:
        """By vantage."""
        return {vantage: one.signs.evidence() for vantage, one in sorted(self.sightings.items())}

    def _phase(self, fresh: Sequence[Sighting], now: datetime, limits: Thresholds, may_name: bool) -> Phase:
        gone, stalled = most(s.signs.gone for s in fresh), most(s.signs.stalled for s in fresh)
        if self.phase.names:
            back = any(_is_back(s, self.since or now, now, limits) for s in fresh)
            ill = any(s.signs.gone or s.signs.stalled for s in fresh)
            if back and not ill and self._is_calm(fresh, now, limits):
                return Phase.HEALTHY
            return self._named(fresh, now, limits) if gone or stalled else self.phase
        if (gone or stalled) and may_name:
            return Phase.STORAGE_STALLED if stalled else Phase.BROKER_DOWN
        return Phase.SUSPECT if most(s.signs.doubtful for s in fresh) else Phase.HEALTHY

    def _is_calm(self, fresh: Sequence[Sighting], now: datetime, limits: Thresholds) -> bool:
        if sum(now - one < limits.flaps_within for one in self.namings) < limits.flaps:
            return True
        return all(_has_lasted(one.well_since, limits.calm, now) for one in fresh)

    def _named(self, fresh: Sequence[Sighting], now: datetime, limits: Thresholds) -> Phase:
        """A broker that only hangs is fenced by its cluster, and out of sync, after seconds."""
        if most(s.signs.stalled for s in fresh):
            return Phase.STORAGE_STALLED
        if self.phase is Phase.STORAGE_STALLED:
            # Its exporter may have fallen silent too.
            return self.phase
        if not most(s.signs.in_cluster for s in fresh):
            return Phase.BROKER_DOWN
        cut_off = most(_has_lasted(s.gone_since, limits.cut_off, now) for s in fresh)
        return Phase.NETWORK_UNAVAILABLE if cut_off else self.phase


def is_gone(sights: Mapping[str, Sighting]) -> bool:
    """As most vantages see it."""
    return most(one.signs.gone for one in sights.values())


def most(held: Iterable[bool]) -> bool:
    """More than half of them; not of none."""
    balance = 0
    for one in held:
        balance += 1 if one else -1
    return balance > 0


def _since(holds: bool, before: datetime | None, now: datetime) -> datetime | None:
    """From when on it has held without a break."""
    return (before or now) if holds else None


def _gone_at(signs: Signs, before: Sighting | None, at: datetime) -> datetime:
    """When both signs began to hold; as its pulses tell it, they did not when the last one was sent."""
    if before is None or not signs.gone_ms:
        return at
    return max(before.at, at - timedelta(milliseconds=signs.gone_ms))


def _has_lasted(since: datetime | None, so_long: timedelta, now: datetime) -> bool:
    return since is not None and now - since >= so_long


def _is_back(sighting: Sighting, named_at: datetime, now: datetime, limits: Thresholds) -> bool:
    age_ms = sighting.signs.leader_success_age_ms
    succeeded_since = age_ms is not None and sighting.at - timedelta(milliseconds=age_ms) > named_at
    return succeeded_since or _has_lasted(sighting.well_since, limits.steady, now)
