"""The fleet in one week: its headline quantiles, their trend, and every cluster, worst first."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta

from fleetgauge_core.slo.levels import FLEET_COVERAGE
from fleetgauge_dashboards.links import FleetView
from fleetgauge_dashboards.reader import WHOLE, ClusterWeek, FleetWeek
from fleetgauge_dashboards.units import count, milliseconds, minutes, percent
from fleetgauge_dashboards.views.fleet_rows import Beside, ClusterRow, Segments, cluster_rows

LATENCY = "latency_p99_us"
AVAILABILITY = "availability_ratio"
BUDGET = "latency_budget_left_minutes"

#: Under so many clusters the nearest-rank p99 is the worst of them.
CLUSTERS_FOR_A_P99 = 100
#: Weeks in the trend.
TREND_WEEKS = 52

_WEEK = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Headline:
    """One metric's three quantiles over clusters, as text, whose they are, and the p99 a week before.

    ``whose`` maps a quantile's name to a cluster that has just that number, for nearest rank picks one.
    """

    metric: str
    median: str
    p90: str
    p99: str
    whose: Mapping[str, str]
    before: str
    sample: str


@dataclass(frozen=True, slots=True)
class Trend:
    """One metric by week, oldest first; the last week may be open."""

    metric: str
    weeks: tuple[date, ...]
    median: tuple[float | None, ...]
    p90: tuple[float | None, ...]
    p99: tuple[float | None, ...]
    clusters: tuple[int, ...]
    open_weeks: frozenset[date]


@dataclass(frozen=True, slots=True)
class SegmentRow:
    """One value of a segment in the week: its quantiles as text, its clusters, where it leads."""

    value: str
    view: FleetView
    clusters: int
    latency: Headline
    availability: Headline
    budget: Headline


@dataclass(frozen=True, slots=True)
class Fleet:
    """The fleet page; ``rows`` are the worst of the ``matching`` ones among all ``clusters``.

    ``divided`` are the trends of a segment's values, of each metric in the same order: the slowest first.
    """

    week: date
    weeks: tuple[date, ...]
    standing: str
    headlines: tuple[Headline, ...]
    trends: tuple[Trend, ...]
    divided: tuple[Mapping[str, Trend], ...]
    segments: tuple[SegmentRow, ...]
    excluded: str
    clusters: int
    matching: int
    rows: tuple[ClusterRow, ...]


def segment_of(view: FleetView) -> tuple[str, str]:
    """Whose numbers are the page's: a segment's value, or the whole fleet's."""
    return (view.by, view.value) if view.by and view.value is not None else (WHOLE, "")


def members(clusters: Sequence[ClusterWeek], segments: Segments, view: FleetView) -> tuple[ClusterWeek, ...]:
    """The clusters that are in what is shown; all, where no fleet file says who is in what."""
    of = segment_of(view)
    if of[0] == WHOLE or not segments:
        return tuple(clusters)
    return tuple(one for one in clusters if of in segments.get(one.cluster_id, ()))


def fleet(
    week: date,
    weeks: Sequence[date],
    clusters: Sequence[ClusterWeek],
    own: Sequence[FleetWeek],
    parts: Sequence[FleetWeek],
    beside: Beside,
    view: FleetView,
) -> Fleet:
    """One of ``weeks``, which are newest first; ``clusters`` are that week's and in what is shown.

    ``own`` are the weeks of what is shown, ``parts`` those of the values by which it is divided, if it is.
    """
    metrics = (LATENCY, AVAILABILITY, BUDGET)
    rows, matching = cluster_rows(week, clusters, beside, view, week == weeks[0])
    return Fleet(
        week=week,
        weeks=tuple(weeks),
        standing=standing(clusters),
        headlines=tuple(_headline(metric, week, own, clusters) for metric in metrics),
        trends=tuple(_trend(metric, week, own) for metric in metrics[:2]),
        divided=_divided(metrics[:2], week, parts) if parts else (),
        segments=_segments(week, parts, view),
        excluded=_excluded(clusters),
        clusters=len(clusters),
        matching=matching,
        rows=rows,
    )


def _by_value(rows: Sequence[FleetWeek]) -> dict[str, list[FleetWeek]]:
    found: dict[str, list[FleetWeek]] = {}
    for row in rows:
        if row.segment_value:
            found.setdefault(row.segment_value, []).append(row)
    return found


def _divided(
    metrics: Sequence[str], week: date, rows: Sequence[FleetWeek]
) -> tuple[Mapping[str, Trend], ...]:
    """Of each metric every value's trend, the value first that is slowest in its newest week."""
    by_value = _by_value(rows)

    def slowest_first(value: str) -> tuple[float, str]:
        p99 = _trend(LATENCY, week, by_value[value]).p99
        newest = p99[-1] if p99 else None
        return (math.inf if newest is None else -newest), value

    order = sorted(by_value, key=slowest_first)
    return tuple({value: _trend(metric, week, by_value[value]) for value in order} for metric in metrics)


def _segments(week: date, rows: Sequence[FleetWeek], view: FleetView) -> tuple[SegmentRow, ...]:
    found = []
    for value, own in sorted(_by_value(rows).items()):
        latency, availability, budget = (
            _headline(metric, week, own, ()) for metric in (LATENCY, AVAILABILITY, BUDGET)
        )
        now = _of(LATENCY, week, own)
        clusters = now.clusters if now else 0
        found.append(SegmentRow(value, replace(view, value=value), clusters, latency, availability, budget))
    return tuple(found)


def standing(weeks: Sequence[ClusterWeek]) -> str:
    """Whether the numbers of the week may still move."""
    closed = bool(weeks) and all(row.closed for row in weeks)
    return standing_in_words(closed, max((row.revision for row in weeks), default=0))


def standing_in_words(closed: bool, revision: int) -> str:
    """``revision`` is the highest of any cluster."""
    if not closed:
        return "open week, to date"
    return "closed" if revision <= 1 else f"closed, revision {revision}"


def _headline(
    metric: str, week: date, fleet_weeks: Sequence[FleetWeek], clusters: Sequence[ClusterWeek]
) -> Headline:
    now = _of(metric, week, fleet_weeks)
    before = _of(metric, week - timedelta(days=7), fleet_weeks)
    return Headline(
        metric=metric,
        median=shown(metric, now.median if now else None),
        p90=shown(metric, now.p90 if now else None),
        p99=shown(metric, now.p99 if now else None),
        whose=_whose(metric, now, clusters) if now else {},
        before=f"p99 a week before: {shown(metric, before.p99)}" if before else "no week before",
        sample=_sample(metric, now),
    )


def _whose(metric: str, row: FleetWeek, clusters: Sequence[ClusterWeek]) -> dict[str, str]:
    """The first by name of those that count and have the value."""
    counted = sorted(
        (one for one in clusters if (one.coverage or 0) >= FLEET_COVERAGE), key=lambda one: one.cluster_id
    )
    found = {
        name: next((one.cluster_id for one in counted if getattr(one, metric) == value), None)
        for name, value in (("median", row.median), ("p90", row.p90), ("p99", row.p99))
        if value is not None
    }
    return {name: cluster for name, cluster in found.items() if cluster is not None}


def _sample(metric: str, row: FleetWeek | None) -> str:
    if row is None or row.clusters == 0:
        return "no cluster counts yet"
    if row.clusters >= CLUSTERS_FOR_A_P99:
        return f"over {count(row.clusters, 'cluster')}"
    extreme = "maximum" if metric == LATENCY else "minimum"
    return f"p99 is the {extreme} of {count(row.clusters, 'cluster')}"


def shown(metric: str, value: float | None) -> str:
    """A metric's value with its unit."""
    match metric:
        case "latency_p99_us":
            return milliseconds(value)
        case "latency_budget_left_minutes":
            return minutes(value)
        case _:
            return percent(value)


def _of(metric: str, week: date, fleet_weeks: Sequence[FleetWeek]) -> FleetWeek | None:
    return next((row for row in fleet_weeks if (row.metric, row.week) == (metric, week)), None)


def _trend(metric: str, until: date, fleet_weeks: Sequence[FleetWeek]) -> Trend:
    since = until - TREND_WEEKS * _WEEK
    rows = {row.week: row for row in fleet_weeks if row.metric == metric and since < row.week <= until}
    weeks = _without_holes(sorted(rows))
    known = [rows.get(week) for week in weeks]
    return Trend(
        metric=metric,
        weeks=weeks,
        median=tuple(row.median if row else None for row in known),
        p90=tuple(row.p90 if row else None for row in known),
        p99=tuple(row.p99 if row else None for row in known),
        clusters=tuple(row.clusters if row else 0 for row in known),
        open_weeks=frozenset(week for week, row in rows.items() if not row.closed),
    )


def _without_holes(weeks: Sequence[date]) -> tuple[date, ...]:
    """A week without a row has its place all the same: its neighbours are none of each other."""
    found = list(weeks[:1])
    for week in weeks[1:]:
        while week - found[-1] > _WEEK:
            found.append(found[-1] + _WEEK)
        found.append(week)
    return tuple(found)


def _excluded(clusters: Sequence[ClusterWeek]) -> str:
    """Who does not count, and why; empty if all do."""
    out = [row for row in clusters if row.coverage is None or row.coverage < FLEET_COVERAGE]
    if not out:
        return ""
    named = ", ".join(
        f"{row.cluster_id} ({percent(row.coverage, 1)})"
        for row in sorted(out, key=lambda r: r.coverage or 0)[:5]
    )
    more = f" and {len(out) - 5} more" if len(out) > 5 else ""
    return f"Not counted, coverage under 90%: {named}{more}"
