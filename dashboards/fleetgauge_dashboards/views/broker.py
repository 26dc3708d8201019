"""One broker over a span: both of its legs, what failed and why, and who led in its place."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import Any

import pyarrow as pa

from fleetgauge_dashboards.links import BrokerView, Leg, Span
from fleetgauge_dashboards.units import NOTHING, count, percent
from fleetgauge_dashboards.views.alerts import Alert
from fleetgauge_dashboards.views.cluster import Number
from fleetgauge_dashboards.views.minutes import Grid, grid, runs

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class LegTimeline:
    """One leg on a grid: latencies are the worst of a step in ms, failures its sums by code."""

    leg: Leg
    p50_ms: tuple[float | None, ...]
    p99_ms: tuple[float | None, ...]
    p99_censored_ms: tuple[float | None, ...]
    failures: Mapping[str, tuple[int, ...]]
    gaps: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class BrokerMinutes:
    """A broker's minutes; ``numbers`` are sums over the span."""

    grid: Grid
    legs: tuple[LegTimeline, ...]
    numbers: tuple[Number, ...]


def broker_minutes(rows: pa.Table, broker_id: int, span: Span) -> BrokerMinutes:
    """``rows``: both legs of the broker, in no order."""
    steps, every = grid(span), rows.to_pylist()
    by_leg = {leg: [row for row in every if row["leg"] == leg] for leg in Leg}
    return BrokerMinutes(
        steps,
        tuple(_leg(leg, by_leg[leg], steps) for leg in Leg),
        (
            *(_availability(leg, by_leg[leg]) for leg in Leg),
            _lost(by_leg[Leg.CLIENT]),
            _led(by_leg[Leg.CLIENT], broker_id),
        ),
    )


def history(found: Sequence[Alert], view: BrokerView) -> tuple[Alert, ...]:
    """The broker's findings, newest first."""
    whom = (view.cluster_id, view.broker_id)
    return tuple(alert for alert in found if (alert.cluster_id, alert.broker_id) == whom)


def _leg(leg: Leg, rows: Iterable[Row], steps: Grid) -> LegTimeline:
    within: dict[int, list[Row]] = {}
    for row in rows:
        if row["measured"]:
            within.setdefault(steps.index(row["minute"].astimezone(UTC)), []).append(row)
    cells = [within.get(i, []) for i in range(steps.size)]
    failures = [sum((Counter(dict(row["failures"] or ())) for row in cell), Counter[str]()) for cell in cells]
    return LegTimeline(
        leg,
        _worst("latency_p50_us", cells),
        _worst("latency_p99_us", cells),
        _worst("latency_p99_censored_us", cells),
        {
            code: tuple(counted[code] for counted in failures)
            for code in sorted(set().union(*failures) if failures else ())
        },
        runs(steps, [not cell for cell in cells]),
    )


def _worst(column: str, cells: Iterable[Sequence[Row]]) -> tuple[float | None, ...]:
    worst = (max((row[column] for row in cell if row[column] is not None), default=None) for cell in cells)
    return tuple(None if us is None else us / 1000 for us in worst)


def _availability(leg: Leg, rows: Sequence[Row]) -> Number:
    attempted = sum(row["attempted"] or 0 for row in rows)
    succeeded = sum(row["succeeded"] or 0 for row in rows)
    return Number(
        f"Availability, {leg} leg",
        percent(succeeded / attempted if attempted else None),
        None,
        (f"{succeeded:,} of {count(attempted, 'probe')} of the minutes shown",),
        "availability_ratio",
    )


def _lost(rows: Sequence[Row]) -> Number:
    lost, twice = (sum(row[name] or 0 for row in rows) for name in ("lost", "duplicated"))
    return Number("Acknowledged, but lost", f"{lost:,}", None, (f"came twice: {twice:,}",), "lost")


def _led(rows: Sequence[Row], broker_id: int) -> Number:
    """In how many minutes somebody else led the broker's probe partition."""
    measured = [row for row in rows if row["measured"]]
    others = sorted({one for row in measured for one in row["led_by"] or () if one != broker_id})
    elsewhere = sum(1 for row in measured if any(one != broker_id for one in row["led_by"] or ()))
    instead = f"by {', '.join(f'broker {one}' for one in others)}" if others else NOTHING
    return Number("Minutes led by others", f"{elsewhere:,} of {len(measured):,}", None, (instead,), "led_by")
