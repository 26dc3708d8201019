"""Put a cluster's minutes on a time grid; each step shows its worst minute, so that a page stays small."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fleetgauge_dashboards.links import MINUTE, Span
from fleetgauge_dashboards.units import to_milliseconds
from fleetgauge_dashboards.views.deciding_minutes import find_worst_home

#: The most steps on a time grid.
MAX_STEPS = 360
STEP_SIZES_MIN = (1, 2, 5, 10, 15, 30)


@dataclass(frozen=True, slots=True)
class TimeGrid:
    """Equal steps that cover a span, aligned to the clock."""

    start: datetime
    step_min: int
    size: int

    @property
    def step(self) -> timedelta:
        """Return the length of a step."""
        return timedelta(minutes=self.step_min)

    @property
    def end(self) -> datetime:
        """Return the end of the last step."""
        return self.start + self.size * self.step

    @property
    def step_starts(self) -> tuple[datetime, ...]:
        """Return the start of each step."""
        return tuple(self.start + i * self.step for i in range(self.size))

    def step_index(self, minute: datetime) -> int:
        """Return the index of the step with the minute; negative before the grid."""
        return (minute - self.start) // self.step


@dataclass(frozen=True, slots=True)
class TimelineStep:
    """The worst minute of one step: latencies are maxima, availability a minimum.

    ``bad_minutes`` counts the step's minutes over the objective.
    """

    latency_p99_ms: float | None
    latency_p99_censored_ms: float | None
    worst_home: int | None
    availability_pooled: float | None
    bad_minutes: int


@dataclass(frozen=True, slots=True)
class ClusterTimeline:
    """A cluster's minutes on a grid; a step is None where nothing was measured.

    ``gaps`` are the spans that were not measured, to the minute, and ``unmeasured`` is their total length.
    ``minutes_held`` counts the rows. ``held_since`` is the time from which the table holds rows, where that
    is after the span's start.
    """

    grid: TimeGrid
    minutes: tuple[TimelineStep | None, ...]
    objective_ms: float | None
    gaps: tuple[Span, ...] = ()
    unmeasured: timedelta = timedelta(0)
    minutes_held: int = 0
    held_since: datetime | None = None

    @property
    def bad_minutes(self) -> int:
        """Return the count of minutes over the objective."""
        return sum(step.bad_minutes for step in self.minutes if step)

    @property
    def worst_homes(self) -> dict[int, tuple[int, ...]]:
        """Return for each broker that was ever the worst the steps in which it was.

        The most frequent broker comes first.
        """
        steps_by_broker: dict[int, list[int]] = {}
        for step, minute in enumerate(self.minutes):
            if minute is not None and minute.worst_home is not None:
                steps_by_broker.setdefault(minute.worst_home, []).append(step)
        most_often_first = sorted(steps_by_broker, key=lambda broker: (-len(steps_by_broker[broker]), broker))
        return {broker: tuple(steps_by_broker[broker]) for broker in most_often_first}


@dataclass(frozen=True, slots=True)
class BrokerTimeline:
    """One broker's worst p99 in each step; None where nothing was measured or no probe succeeded."""

    broker_id: int
    latency_p99_ms: tuple[float | None, ...]
    latency_p99_censored_ms: tuple[float | None, ...]
    gaps: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class BrokerTimelines:
    """All brokers of a cluster on one grid, by id."""

    grid: TimeGrid
    brokers: tuple[BrokerTimeline, ...]

    @property
    def skew(self) -> tuple[float | None, ...]:
        """Return for each step the slowest broker's p99 over the median broker's (Kora, figure 5); 1 is even.

        None where fewer than two brokers had a success.
        """
        rows = [row.latency_p99_ms for row in self.brokers]
        return tuple(_skew([ms for row in rows if (ms := row[i]) is not None]) for i in range(self.grid.size))


def make_grid(span: Span) -> TimeGrid:
    """Return a grid of one-minute steps where they fit, else of the smallest round step that fits."""
    length_min = int((span.end - span.start) / timedelta(minutes=1))
    step = next((size for size in STEP_SIZES_MIN if length_min <= size * MAX_STEPS), STEP_SIZES_MIN[-1])
    start = datetime.fromtimestamp(span.start.timestamp() // (60 * step) * 60 * step, UTC)
    return TimeGrid(start, step, -((start - span.end) // timedelta(minutes=step)))


def build_timeline(
    rows: pa.Table, span: Span, objective_us: int | None, held_since: datetime | None = None
) -> ClusterTimeline:
    """Put cluster-minutes on the span's grid; ``held_since`` is the time from which the table holds rows."""
    grid = make_grid(span)
    rows_by_step: dict[int, list[dict[str, Any]]] = {}
    for row in rows.to_pylist():
        rows_by_step.setdefault(grid.step_index(row["minute"].astimezone(UTC)), []).append(row)
    measured_by_step = {
        step: [row for row in rows_of_step if row["brokers_measured"]]
        for step, rows_of_step in rows_by_step.items()
    }
    unmeasured = _unmeasured(rows, span, held_since)
    gaps = unmeasured if len(unmeasured) <= MAX_STEPS else _whole_steps(grid, unmeasured)
    return ClusterTimeline(
        grid=grid,
        minutes=tuple(
            _worst(rows_of_step, objective_us) if (rows_of_step := measured_by_step.get(step)) else None
            for step in range(grid.size)
        ),
        objective_ms=to_milliseconds(objective_us),
        gaps=gaps,
        unmeasured=sum((gap.end - gap.start for gap in unmeasured), timedelta(0)),
        minutes_held=len(rows),
        held_since=held_since if held_since and span.start < held_since else None,
    )


def _unmeasured(rows: pa.Table, span: Span, held_since: datetime | None) -> tuple[Span, ...]:
    """Return the spans without a measurement, from the first row on; nothing was expected before it."""
    minutes = [minute.astimezone(UTC) for minute in rows["minute"].to_pylist()]
    begin = min(minutes, default=max(span.start, held_since or span.start))
    measured = {
        minute
        for minute, measured_brokers in zip(minutes, rows["brokers_measured"].to_pylist(), strict=True)
        if measured_brokers
    }
    minute_grid = TimeGrid(max(begin, span.start), 1, max(0, (span.end - max(begin, span.start)) // MINUTE))
    return merge_marked_steps(minute_grid, [minute not in measured for minute in minute_grid.step_starts])


def _whole_steps(grid: TimeGrid, gaps: Sequence[Span]) -> tuple[Span, ...]:
    """Return the steps that contain any of the gaps, for gaps that are too many to draw."""
    marked = {
        i for gap in gaps for i in range(grid.step_index(gap.start), grid.step_index(gap.end - MINUTE) + 1)
    }
    return merge_marked_steps(grid, [i in marked for i in range(grid.size)])


def _worst(rows: list[dict[str, Any]], objective_us: int | None) -> TimelineStep:
    censored = [row["latency_p99_censored_us"] for row in rows]
    return TimelineStep(
        latency_p99_ms=to_milliseconds(_max([row["latency_p99_us"] for row in rows])),
        latency_p99_censored_ms=to_milliseconds(_max(censored)),
        worst_home=find_worst_home(max(rows, key=lambda row: row["latency_p99_censored_us"] or 0)),
        availability_pooled=min(
            (a for row in rows if (a := row["availability_pooled"]) is not None), default=None
        ),
        bad_minutes=sum(
            1 for us in censored if us is not None and objective_us is not None and us > objective_us
        ),
    )


def build_broker_timelines(rows: pa.Table, span: Span) -> BrokerTimelines:
    """Put broker-minutes of one leg on the span's grid, aggregated by Arrow because a week has many rows."""
    grid = make_grid(span)
    placed = assign_steps(rows, grid)
    first_steps = placed.group_by("broker_id").aggregate([("step", "min")]).to_pylist()
    worst = (
        placed.filter(pc.fill_null(placed["measured"], False))
        .group_by(["broker_id", "step"])
        .aggregate([("latency_p99_us", "max"), ("latency_p99_censored_us", "max")])
        .to_pylist()
    )
    worst_by_cell = {(row["broker_id"], row["step"]): row for row in worst}
    first = {row["broker_id"]: row["step_min"] for row in first_steps}
    return BrokerTimelines(
        grid, tuple(_broker(broker_id, grid, first[broker_id], worst_by_cell) for broker_id in sorted(first))
    )


def assign_steps(rows: pa.Table, grid: TimeGrid) -> pa.Table:
    """Return the rows from the grid's start on, with the index of their step in the column ``step``."""
    in_grid = rows.filter(pc.greater_equal(rows["minute"], pa.scalar(grid.start)))
    epoch_us = in_grid["minute"].cast(pa.timestamp("us", tz="UTC")).cast(pa.int64())
    origin = pa.scalar(int(grid.start.timestamp()) * 1_000_000, pa.int64())
    index = pc.divide(pc.subtract(epoch_us, origin), pa.scalar(grid.step_min * 60_000_000, pa.int64()))
    return in_grid.append_column("step", index)


def _skew(step: Sequence[float]) -> float | None:
    return max(step) / median(step) if len(step) > 1 and median(step) > 0 else None


def _broker(
    broker_id: int, grid: TimeGrid, first_step: int, worst_by_cell: dict[tuple[int, int], dict[str, Any]]
) -> BrokerTimeline:
    cells = [worst_by_cell.get((broker_id, i)) for i in range(grid.size)]
    return BrokerTimeline(
        broker_id=broker_id,
        latency_p99_ms=tuple(to_milliseconds(cell["latency_p99_us_max"]) if cell else None for cell in cells),
        latency_p99_censored_ms=tuple(
            to_milliseconds(cell["latency_p99_censored_us_max"]) if cell else None for cell in cells
        ),
        gaps=merge_marked_steps(
            grid, [cell is None and step >= first_step for step, cell in enumerate(cells)]
        ),
    )


def merge_marked_steps(grid: TimeGrid, marked: Sequence[bool]) -> tuple[Span, ...]:
    """Return the marked steps as spans, with adjacent steps merged."""
    spans: list[Span] = []
    for i, is_marked in enumerate(marked):
        if not is_marked:
            continue
        start = grid.start + i * grid.step
        begin = spans.pop().start if spans and spans[-1].end == start else start
        spans.append(Span(begin, start + grid.step))
    return tuple(spans)


def _max(values: list[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)
