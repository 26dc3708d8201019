"""Put the replication lag of mirrors on a time grid; each step shows its worst minute."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from fleetgauge_dashboards.links import MINUTE, Span, Window
from fleetgauge_dashboards.views.freshness import DataAge
from fleetgauge_dashboards.views.minutes import TimeGrid, assign_steps, make_grid, merge_marked_steps
from fleetgauge_dashboards.views.recovery_freshness import RecoveryFreshness

_LEGIBLE = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class RpoTimeline:
    """A mirror's lag in seconds: upper bound and estimate by tracers; None where unknown."""

    source: str
    destination: str
    at_most: tuple[float | None, ...]
    estimate: tuple[float | None, ...]

    @property
    def name(self) -> str:
        """Return the mirror's name, source to destination."""
        return f"{self.source} to {self.destination}"

    @property
    def peak(self) -> float:
        """Return the largest lag in seconds; 0 without any."""
        return max((value for value in (*self.at_most, *self.estimate) if value is not None), default=0.0)


@dataclass(frozen=True, slots=True)
class RpoTimelines:
    """All mirrors on one grid, by name, with the weekly objective."""

    grid: TimeGrid
    lines: tuple[RpoTimeline, ...]
    objective_s: float | None

    @property
    def gaps(self) -> tuple[Span, ...]:
        """Return the spans in which no mirror's lag was known, from the first known step on."""
        are_known = [
            any(line.at_most[step] is not None or line.estimate[step] is not None for line in self.lines)
            for step in range(self.grid.size)
        ]
        first_step = are_known.index(True) if True in are_known else self.grid.size
        return merge_marked_steps(
            self.grid, [not is_known and step >= first_step for step, is_known in enumerate(are_known)]
        )


def resolve_rpo_span(
    window: Window, freshness: RecoveryFreshness, now: datetime, first: datetime | None
) -> Span:
    """Return the newest minutes of the window; stale data shows as a gap, because the span then ends now.

    The span begins no earlier than the ``first`` minute that is stored, and is at least 15 minutes long.
    """
    is_stale = freshness.until is None or freshness.state is DataAge.STALE
    end = (
        now.replace(second=0, microsecond=0) + MINUTE
        if is_stale or freshness.until is None
        else freshness.until
    )
    start = end - window.length
    return Span(start if first is None else max(start, min(first, end - _LEGIBLE)), end)


def build_rpo_timelines(rows: pa.Table, span: Span, objective_s: float | None) -> RpoTimelines:
    """Put the rows on the span's grid; they may be more than the span's."""
    grid = make_grid(span)
    worst = (
        assign_steps(rows, grid)
        .group_by(["source", "destination", "step"])
        .aggregate([("behind_s_at_most", "max"), ("behind_s", "max")])
        .to_pylist()
    )
    by_mirror: dict[tuple[str, str], dict[int, dict[str, Any]]] = {}
    for row in worst:
        by_mirror.setdefault((row["source"], row["destination"]), {})[row["step"]] = row
    lines = tuple(
        RpoTimeline(
            *mirror,
            at_most=_by_step(by_mirror[mirror], grid, "behind_s_at_most_max"),
            estimate=_by_step(by_mirror[mirror], grid, "behind_s_max"),
        )
        for mirror in sorted(by_mirror)
    )
    return RpoTimelines(grid, lines, objective_s)


def _by_step(by_step: dict[int, dict[str, Any]], grid: TimeGrid, column: str) -> tuple[float | None, ...]:
    return tuple(by_step[step][column] if step in by_step else None for step in range(grid.size))
