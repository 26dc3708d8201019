"""A cluster's minutes over a span, thinned by the worst of each step so that a page stays light."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fleetgauge_dashboards.links import MINUTE, Span
from fleetgauge_dashboards.views.deciding_minutes import worst_home

#: At most so many points side by side.
COLUMNS = 360
STEPS = (1, 2, 5, 10, 15, 30)


@dataclass(frozen=True, slots=True)
class Grid:
    """Equal steps that cover a span, aligned to the clock."""

    start: datetime
    step_min: int
    size: int

    @property
    def step(self) -> timedelta:
        return timedelta(minutes=self.step_min)

    @property
    def end(self) -> datetime:
        return self.start + self.size * self.step

    @property
    def at(self) -> tuple[datetime, ...]:
        return tuple(self.start + i * self.step for i in range(self.size))

    def index(self, minute: datetime) -> int:
        return (minute - self.start) // self.step


@dataclass(frozen=True, slots=True)
class Minute:
    """The worst of one step: latencies are maxima, availability a minimum."""

    latency_p99_ms: float | None
    latency_p99_censored_ms: float | None
    worst_home: int | None
    availability_pooled: float | None
    bad: int


@dataclass(frozen=True, slots=True)
class Timeline:
    """A cluster's minutes on a grid; None is a step in which nothing was measured.

    ``gaps`` are the stretches that were not measured, minute by minute, ``unmeasured`` is what they last
    together, ``held`` how many minutes there are rows of. ``held_since`` says from when on there can be any,
    where that is later than the span's begin.
    """

    grid: Grid
    minutes: tuple[Minute | None, ...]
    objective_ms: float | None
    gaps: tuple[Span, ...] = ()
    unmeasured: timedelta = timedelta(0)
    held: int = 0
    held_since: datetime | None = None

    @property
    def bad(self) -> int:
        """Minutes of the span that are over the objective."""
        return sum(minute.bad for minute in self.minutes if minute)

    @property
    def worst_homes(self) -> dict[int, tuple[int, ...]]:
        """Of each broker that was ever the worst, the steps in which it was; who was so most often first."""
        found: dict[int, list[int]] = {}
        for step, minute in enumerate(self.minutes):
            if minute is not None and minute.worst_home is not None:
                found.setdefault(minute.worst_home, []).append(step)
        often = sorted(found, key=lambda broker: (-len(found[broker]), broker))
        return {broker: tuple(found[broker]) for broker in often}


@dataclass(frozen=True, slots=True)
class BrokerTimeline:
    """One broker's worst p99 of each step; None where nothing was measured or nothing succeeded."""

    broker_id: int
    latency_p99_ms: tuple[float | None, ...]
    latency_p99_censored_ms: tuple[float | None, ...]
    gaps: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Brokers:
    """Every broker of a cluster on one grid, by id."""

    grid: Grid
    brokers: tuple[BrokerTimeline, ...]

    @property
    def skew(self) -> tuple[float | None, ...]:
        """Of each step the slowest broker's p99 over the median one's (Kora, figure 5); 1 is even.

        None where fewer than two brokers had a success.
        """
        rows = [row.latency_p99_ms for row in self.brokers]
        return tuple(_skew([ms for row in rows if (ms := row[i]) is not None]) for i in range(self.grid.size))


def grid(span: Span) -> Grid:
    """Minute by minute where they fit, in rounder steps where not."""
    length = int((span.end - span.start) / timedelta(minutes=1))
    step = next((s for s in STEPS if length <= s * COLUMNS), STEPS[-1])
    start = datetime.fromtimestamp(span.start.timestamp() // (60 * step) * 60 * step, UTC)
    return Grid(start, step, -((start - span.end) // timedelta(minutes=step)))


def timeline(
    rows: pa.Table, span: Span, objective_us: int | None, held_since: datetime | None = None
) -> Timeline:
    """Cluster-minutes to the span's grid; before ``held_since`` the table holds none."""
    steps = grid(span)
    within: dict[int, list[dict[str, Any]]] = {}
    for row in rows.to_pylist():
        within.setdefault(steps.index(row["minute"].astimezone(UTC)), []).append(row)
    measured = {step: [row for row in own if row["brokers_measured"]] for step, own in within.items()}
    unmeasured = _unmeasured(rows, span, held_since)
    gaps = unmeasured if len(unmeasured) <= COLUMNS else _whole_steps(steps, unmeasured)
    return Timeline(
        grid=steps,
        minutes=tuple(
            _worst(own, objective_us) if (own := measured.get(step)) else None for step in range(steps.size)
        ),
        objective_ms=_ms(objective_us),
        gaps=gaps,
        unmeasured=sum((gap.end - gap.start for gap in unmeasured), timedelta(0)),
        held=len(rows),
        held_since=held_since if held_since and span.start < held_since else None,
    )


def _unmeasured(rows: pa.Table, span: Span, held_since: datetime | None) -> tuple[Span, ...]:
    """Minutes without a measurement, from the first row on: nothing was expected before it."""
    at = [one.astimezone(UTC) for one in rows["minute"].to_pylist()]
    begun = min(at, default=max(span.start, held_since or span.start))
    measured = {
        minute for minute, brokers in zip(at, rows["brokers_measured"].to_pylist(), strict=True) if brokers
    }
    every = Grid(max(begun, span.start), 1, max(0, (span.end - max(begun, span.start)) // MINUTE))
    return runs(every, [minute not in measured for minute in every.at])


def _whole_steps(steps: Grid, gaps: Sequence[Span]) -> tuple[Span, ...]:
    """Gaps too many to draw, as the steps that hold any of them."""
    marked = {i for gap in gaps for i in range(steps.index(gap.start), steps.index(gap.end - MINUTE) + 1)}
    return runs(steps, [i in marked for i in range(steps.size)])


def _worst(rows: list[dict[str, Any]], objective_us: int | None) -> Minute:
    censored = [row["latency_p99_censored_us"] for row in rows]
    return Minute(
        latency_p99_ms=_ms(_max([row["latency_p99_us"] for row in rows])),
        latency_p99_censored_ms=_ms(_max(censored)),
        worst_home=worst_home(max(rows, key=lambda row: row["latency_p99_censored_us"] or 0)),
        availability_pooled=min(
            (a for row in rows if (a := row["availability_pooled"]) is not None), default=None
        ),
        bad=sum(1 for us in censored if us is not None and objective_us is not None and us > objective_us),
    )


def brokers(rows: pa.Table, span: Span) -> Brokers:
    """Broker-minutes of one leg to the span's grid, thinned by arrow: a week holds many."""
    steps = grid(span)
    placed = on_grid(rows, steps)
    begun = placed.group_by("broker_id").aggregate([("step", "min")]).to_pylist()
    worst = (
        placed.filter(pc.fill_null(placed["measured"], False))
        .group_by(["broker_id", "step"])
        .aggregate([("latency_p99_us", "max"), ("latency_p99_censored_us", "max")])
        .to_pylist()
    )
    found = {(row["broker_id"], row["step"]): row for row in worst}
    first = {row["broker_id"]: row["step_min"] for row in begun}
    return Brokers(
        steps, tuple(_broker(broker_id, steps, first[broker_id], found) for broker_id in sorted(first))
    )


def on_grid(rows: pa.Table, steps: Grid) -> pa.Table:
    """The rows from its start on, with the ``step`` in which each is."""
    held = rows.filter(pc.greater_equal(rows["minute"], pa.scalar(steps.start)))
    epoch_us = held["minute"].cast(pa.timestamp("us", tz="UTC")).cast(pa.int64())
    origin = pa.scalar(int(steps.start.timestamp()) * 1_000_000, pa.int64())
    index = pc.divide(pc.subtract(epoch_us, origin), pa.scalar(steps.step_min * 60_000_000, pa.int64()))
    return held.append_column("step", index)


def _skew(step: Sequence[float]) -> float | None:
    return max(step) / median(step) if len(step) > 1 and median(step) > 0 else None


def _broker(
    broker_id: int, steps: Grid, begun: int, found: dict[tuple[int, int], dict[str, Any]]
) -> BrokerTimeline:
    cells = [found.get((broker_id, i)) for i in range(steps.size)]
    return BrokerTimeline(
        broker_id=broker_id,
        latency_p99_ms=tuple(_ms(cell["latency_p99_us_max"]) if cell else None for cell in cells),
        latency_p99_censored_ms=tuple(
            _ms(cell["latency_p99_censored_us_max"]) if cell else None for cell in cells
        ),
        gaps=runs(steps, [cell is None and step >= begun for step, cell in enumerate(cells)]),
    )


def runs(steps: Grid, marked: Sequence[bool]) -> tuple[Span, ...]:
    """Neighbouring marked steps as spans."""
    found: list[Span] = []
    for i, mark in enumerate(marked):
        if not mark:
            continue
        at = steps.start + i * steps.step
        begin = found.pop().start if found and found[-1].end == at else at
        found.append(Span(begin, at + steps.step))
    return tuple(found)


def _max(values: list[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)


def _ms(us: int | None) -> float | None:
    return None if us is None else us / 1000
