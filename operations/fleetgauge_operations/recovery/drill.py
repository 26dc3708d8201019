"""A failover tried on groups that may be: decided, written, read from there, held to its forecast."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from fleetgauge_core.fleet import Fleet
from fleetgauge_core.kafka import Place
from fleetgauge_operations.recovery.group_offset_sync import GroupPlan, Mover
from fleetgauge_operations.recovery.offsets.mirror_state import Known
from fleetgauge_operations.recovery.plan.forecast import GroupForecast, forecast
from fleetgauge_operations.recovery.record_diff import COMPARED_AT_MOST, counted, records


@dataclass(frozen=True, slots=True)
class Tried:
    """What a drill did. ``replayed`` and ``missing`` are None where there was too much to compare.

    ``replayed``: of what lies from where the group goes on, what is not among that which it has not
    consumed. ``missing``: what it has not consumed, and does not lie there; it is on its way, or lost.
    """

    wrote: bool
    decide_s: float
    write_s: float
    first_record_s: float | None
    """None where there was nothing to read."""
    replayed: int | None
    missing: int | None


@dataclass(frozen=True, slots=True)
class Drilled:
    """One group; ``tried`` None: it was a forecast alone."""

    forecast: GroupForecast
    tried: Tried | None = None


@dataclass(frozen=True, slots=True)
class Drill:
    """From one cluster to another; ``at``: when it was asked for."""

    drill_id: str
    at: datetime
    active: str
    passive: str
    author: str
    groups: tuple[Drilled, ...]

    @property
    def is_ready(self) -> bool:
        """All of its groups are, and there is one."""
        return bool(self.groups) and all(one.forecast.is_ready for one in self.groups)


class Drills:
    """Of one pair of clusters. All raise KafkaUnavailableError."""

    def __init__(self, fleet: Fleet, mover: Mover, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._fleet = fleet
        self._mover = mover
        self._active, self._passive = (
            fleet.cluster(one).access for one in (mover.pair.active, mover.pair.passive)
        )
        self._monotonic = monotonic

    def forecasts(self, known: Known, now_ms: int) -> tuple[Drilled, ...]:
        """Changes nothing."""
        return tuple(
            Drilled(forecast_of(self._fleet, plan, known, now_ms)) for plan in self._mover.plans(known)
        )

    def tried(self, group: str, known: Known, now_ms: int) -> Drilled | None:
        """Write the group's offsets there if it is ready, and read from them; nothing is committed after.

        None if it has committed nothing.
        """
        began = self._monotonic()
        plan = next(self._mover.plans(known, group), None)
        if plan is None:
            return None
        found = forecast_of(self._fleet, plan, known, now_ms)
        decided = self._monotonic()
        if not found.is_ready:
            return Drilled(found)
        wrote = self._mover.write(plan)
        written = self._monotonic()
        if not wrote.is_fine:
            return Drilled(forecast_of(self._fleet, wrote, known, now_ms))
        first = self._first_record(plan)
        first_s = self._monotonic() - written if first else None
        return Drilled(
            found, Tried(wrote.wrote, decided - began, written - decided, first_s, *self._compared(plan))
        )

    def _first_record(self, plan: GroupPlan) -> bool:
        for one in plan.decisions:
            if one.resume is not None and one.passive.log and one.resume < one.passive.log.end:
                place = Place(one.passive.topic, one.passive.partition)
                return next(records(self._passive, place, one.resume, one.resume + 1), None) is not None
        return False

    def _compared(self, plan: GroupPlan) -> tuple[int | None, int | None]:
        replayed = missing = compared = 0
        for one in plan.decisions:
            if one.resume is None or one.passive.log is None:
                continue
            here, there = one.position, one.passive
            compared += max(here.end - here.committed, one.passive.log.end - one.resume)
            if compared > COMPARED_AT_MOST:
                return None, None
            from_here, from_there = Place(here.topic, here.partition), Place(there.topic, there.partition)
            left = counted(records(self._active, from_here, here.committed, here.end))
            found = counted(records(self._passive, from_there, one.resume, one.passive.log.end))
            replayed += (found - left).total()
            missing += (left - found).total()
        return replayed, missing


def forecast_of(fleet: Fleet, plan: GroupPlan, known: Known, now_ms: int) -> GroupForecast:
    """If the cluster where it reads fails with all of its region."""
    failing = failing_with(fleet, plan.pair.active)
    return forecast(plan.group, plan.decisions, failing, fleet.recovery.limits, known, now_ms)


def failing_with(fleet: Fleet, cluster_id: str) -> frozenset[str]:
    """The clusters of its region, itself included."""
    region = fleet.cluster(cluster_id).region
    near = {one.id for one in fleet.clusters if region is not None and one.region == region}
    return frozenset({cluster_id, *near})


def rows_of(drill: Drill) -> Sequence[dict[str, object]]:
    """As recovery/drills keeps it."""
    return [_row(drill, one) for one in drill.groups]


def _row(drill: Drill, one: Drilled) -> dict[str, object]:
    found, tried = one.forecast, one.tried
    return {
        "drill_id": drill.drill_id,
        "group_id": found.group,
        "at": drill.at,
        "active": drill.active,
        "passive": drill.passive,
        "author": drill.author,
        "executed": tried is not None,
        "ready": found.is_ready,
        "reasons": ",".join(found.reasons),
        "partitions": len(found.partitions),
        "replay_forecast": found.replay,
        "replay_at_most": found.replay_at_most,
        "lost_at_most": found.lost_at_most,
        "replayed": tried.replayed if tried else None,
        "missing": tried.missing if tried else None,
        "decide_ms": _ms(tried.decide_s) if tried else None,
        "write_ms": _ms(tried.write_s) if tried else None,
        "first_record_ms": _ms(tried.first_record_s) if tried and tried.first_record_s is not None else None,
    }


def _ms(seconds: float) -> int:
    return round(1000 * seconds)
