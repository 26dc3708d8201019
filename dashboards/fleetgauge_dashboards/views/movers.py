"""What changed from one week to the next: whose budget went or came back, who got slower or faster."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from fleetgauge_core.slo.levels import FLEET_COVERAGE
from fleetgauge_dashboards.views.standings import Row, availability_left_minutes, share_left, worst_first

#: A change that a reader would call one: a tenth, and a millisecond at that.
LEAST_CHANGE, LEAST_CHANGE_US = 0.1, 1_000


@dataclass(frozen=True, slots=True)
class Standing:
    """A cluster's budgets in the week; ``cause`` had most of its bad minutes, None without any."""

    cluster_id: str
    bad_minutes: int
    bad_minutes_before: int | None
    latency_left_minutes: float | None
    availability_left_minutes: float | None
    cause: str | None


@dataclass(frozen=True, slots=True)
class Mover:
    """A cluster's latency p99 in the week before and in this one, in µs."""

    cluster_id: str
    before_us: int
    now_us: int
    cause: str | None

    @property
    def ratio(self) -> float:
        return self.now_us / self.before_us


@dataclass(frozen=True, slots=True)
class Changes:
    """Clusters, the worst first; of ``slower`` and ``faster`` those that moved most."""

    newly_over: tuple[Standing, ...]
    still_over: tuple[Standing, ...]
    recovered: tuple[Standing, ...]
    slower: tuple[Mover, ...]
    faster: tuple[Mover, ...]
    joined: tuple[str, ...]
    left: tuple[str, ...]


def changes(now: Sequence[Row], before: Sequence[Row]) -> Changes:
    """From both weeks' rows, one a cluster. Who was not there before and is over budget is so newly."""
    then = {row["cluster_id"]: row for row in before}
    over_now = [row for row in worst_first(now) if share_left(row) < 0]
    over_then = {row["cluster_id"] for row in before if share_left(row) < 0}
    well = [row for row in worst_first(now) if share_left(row) >= 0]
    moved = _movers(now, then)
    here = {row["cluster_id"] for row in now}
    return Changes(
        newly_over=tuple(standing(row, then) for row in over_now if row["cluster_id"] not in over_then),
        still_over=tuple(standing(row, then) for row in over_now if row["cluster_id"] in over_then),
        recovered=tuple(standing(row, then) for row in well if row["cluster_id"] in over_then),
        slower=tuple(one for one in moved if one.ratio > 1),
        faster=tuple(one for one in reversed(moved) if one.ratio < 1),
        joined=tuple(sorted(here - then.keys())) if before else (),
        left=tuple(sorted(then.keys() - here)),
    )


def standing(row: Row, before: Mapping[str, Row]) -> Standing:
    then = before.get(row["cluster_id"])
    return Standing(
        row["cluster_id"],
        row["bad_minutes"] or 0,
        None if then is None else then["bad_minutes"],
        row["latency_budget_left_minutes"],
        availability_left_minutes(row),
        main_cause(row),
    )


def main_cause(row: Row) -> str | None:
    """Of most bad minutes of the cluster's week; of several alike the first by name."""
    causes = dict(row["causes"] or ())
    return min(causes, key=lambda cause: (-causes[cause], cause), default=None)


def _movers(now: Iterable[Row], before: Mapping[str, Row]) -> list[Mover]:
    """The slower the earlier. A week that was hardly seen says little of either."""
    found = []
    for row in now:
        then = before.get(row["cluster_id"])
        if then is None or not (_counts(row) and _counts(then)):
            continue
        was, is_ = then["latency_p99_us"], row["latency_p99_us"]
        if abs(is_ - was) >= max(LEAST_CHANGE * was, LEAST_CHANGE_US):
            found.append(Mover(row["cluster_id"], was, is_, main_cause(row)))
    return sorted(found, key=lambda one: (-one.ratio, one.cluster_id))


def _counts(row: Row) -> bool:
    return bool(row["latency_p99_us"] and row["coverage"] is not None and row["coverage"] >= FLEET_COVERAGE)
