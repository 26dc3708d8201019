"""Build the fleet page of one week: quantiles over clusters, their trends, and the worst clusters."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta

from fleetgauge_core.slo.levels import MIN_FLEET_COVERAGE
from fleetgauge_dashboards.links import FleetView
from fleetgauge_dashboards.reader import WHOLE_FLEET, ClusterWeek, FleetWeek
from fleetgauge_dashboards.units import format_count, format_milliseconds, format_minutes, format_percent
from fleetgauge_dashboards.views.fleet_rows import ClusterContext, ClusterRow, Segments, build_cluster_rows

LATENCY = "latency_p99_us"
AVAILABILITY = "availability_ratio"
BUDGET = "latency_budget_left_minutes"

#: With fewer clusters the nearest-rank p99 is the worst cluster.
CLUSTERS_FOR_A_P99 = 100
#: Weeks in the trend.
TREND_WEEKS = 52

_WEEK = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class FleetHeadline:
    """The quantiles of one metric over clusters as text, and the p99 of the week before.

    ``clusters`` maps a quantile's name to a cluster with exactly that value, since nearest rank selects a
    cluster.
    """

    metric: str
    median: str
    p90: str
    p99: str
    clusters: Mapping[str, str]
    week_before: str
    sample_note: str


@dataclass(frozen=True, slots=True)
class QuantileTrend:
    """The quantiles of one metric by week, oldest first; the last week may be open."""

    metric: str
    weeks: tuple[date, ...]
    median: tuple[float | None, ...]
    p90: tuple[float | None, ...]
    p99: tuple[float | None, ...]
    clusters: tuple[int, ...]
    open_weeks: frozenset[date]


@dataclass(frozen=True, slots=True)
class SegmentRow:
    """A row for one value of a segment: quantiles as text, number of clusters, and the view it links to."""

    value: str
    view: FleetView
    clusters: int
    latency: FleetHeadline
    availability: FleetHeadline
    budget: FleetHeadline


@dataclass(frozen=True, slots=True)
class FleetOverview:
    """Everything that the fleet page shows.

    ``rows`` are the worst of the ``matching`` clusters among all ``clusters``. ``segment_trends`` has for
    each metric the trends of a segment's values, in the same order: the slowest first.
    """

    week: date
    weeks: tuple[date, ...]
    revision_state: str
    headlines: tuple[FleetHeadline, ...]
    trends: tuple[QuantileTrend, ...]
    segment_trends: tuple[Mapping[str, QuantileTrend], ...]
    segments: tuple[SegmentRow, ...]
    excluded: str
    clusters: int
    matching: int
    rows: tuple[ClusterRow, ...]


def selected_segment(view: FleetView) -> tuple[str, str]:
    """Return the segment and value whose numbers the page shows; the whole fleet by default."""
    return (view.by, view.value) if view.by and view.value is not None else (WHOLE_FLEET, "")


def select_members(
    clusters: Sequence[ClusterWeek], segments: Segments, view: FleetView
) -> tuple[ClusterWeek, ...]:
    """Return the clusters of the selected segment; all clusters where no fleet file defines segments."""
    segment = selected_segment(view)
    if segment[0] == WHOLE_FLEET or not segments:
        return tuple(clusters)
    return tuple(cluster for cluster in clusters if segment in segments.get(cluster.cluster_id, ()))


def build_fleet_overview(
    week: date,
    weeks: Sequence[date],
    clusters: Sequence[ClusterWeek],
    shown_weeks: Sequence[FleetWeek],
    segment_weeks: Sequence[FleetWeek],
    context: ClusterContext,
    view: FleetView,
) -> FleetOverview:
    """Build the page of ``week``, one of ``weeks``, which are newest first.

    ``clusters`` are the week's clusters in the selected segment, ``shown_weeks`` the rows of that segment,
    and ``segment_weeks`` the rows of the values that divide it, if any.
    """
    metrics = (LATENCY, AVAILABILITY, BUDGET)
    rows, matching = build_cluster_rows(week, clusters, context, view, week == weeks[0])
    return FleetOverview(
        week=week,
        weeks=tuple(weeks),
        revision_state=describe_revision_state(clusters),
        headlines=tuple(_headline(metric, week, shown_weeks, clusters) for metric in metrics),
        trends=tuple(_trend(metric, week, shown_weeks) for metric in metrics[:2]),
        segment_trends=_segment_trends(metrics[:2], week, segment_weeks) if segment_weeks else (),
        segments=_segments(week, segment_weeks, view),
        excluded=_excluded(clusters),
        clusters=len(clusters),
        matching=matching,
        rows=rows,
    )


def _by_value(rows: Sequence[FleetWeek]) -> dict[str, list[FleetWeek]]:
    by_value: dict[str, list[FleetWeek]] = {}
    for row in rows:
        if row.segment_value:
            by_value.setdefault(row.segment_value, []).append(row)
    return by_value


def _segment_trends(
    metrics: Sequence[str], week: date, rows: Sequence[FleetWeek]
) -> tuple[Mapping[str, QuantileTrend], ...]:
    """Return for each metric the trend of every value, slowest in its newest week first."""
    by_value = _by_value(rows)

    def slowest_first(value: str) -> tuple[float, str]:
        p99 = _trend(LATENCY, week, by_value[value]).p99
        newest = p99[-1] if p99 else None
        return (math.inf if newest is None else -newest), value

    values = sorted(by_value, key=slowest_first)
    return tuple({value: _trend(metric, week, by_value[value]) for value in values} for metric in metrics)


def _segments(week: date, rows: Sequence[FleetWeek], view: FleetView) -> tuple[SegmentRow, ...]:
    segment_rows = []
    for value, of_value in sorted(_by_value(rows).items()):
        latency, availability, budget = (
            _headline(metric, week, of_value, ()) for metric in (LATENCY, AVAILABILITY, BUDGET)
        )
        latest = _find_row(LATENCY, week, of_value)
        clusters = latest.clusters if latest else 0
        segment_rows.append(
            SegmentRow(value, replace(view, value=value), clusters, latency, availability, budget)
        )
    return tuple(segment_rows)


def describe_revision_state(weeks: Sequence[ClusterWeek]) -> str:
    """Describe whether the numbers of the week may still change."""
    closed = bool(weeks) and all(row.closed for row in weeks)
    return describe_revision(closed, max((row.revision for row in weeks), default=0))


def describe_revision(closed: bool, revision: int) -> str:
    """Describe the week's state; ``revision`` is the highest of any cluster."""
    if not closed:
        return "open week, to date"
    return "closed" if revision <= 1 else f"closed, revision {revision}"


def _headline(
    metric: str, week: date, fleet_weeks: Sequence[FleetWeek], clusters: Sequence[ClusterWeek]
) -> FleetHeadline:
    row = _find_row(metric, week, fleet_weeks)
    row_before = _find_row(metric, week - timedelta(days=7), fleet_weeks)
    return FleetHeadline(
        metric=metric,
        median=format_metric(metric, row.median if row else None),
        p90=format_metric(metric, row.p90 if row else None),
        p99=format_metric(metric, row.p99 if row else None),
        clusters=_clusters_at_quantiles(metric, row, clusters) if row else {},
        week_before=f"p99 a week before: {format_metric(metric, row_before.p99)}"
        if row_before
        else "no earlier week",
        sample_note=_sample_note(metric, row),
    )


def _clusters_at_quantiles(metric: str, row: FleetWeek, clusters: Sequence[ClusterWeek]) -> dict[str, str]:
    """Return for each quantile the first cluster by name that counts and has its value."""
    counted_weeks = sorted(
        (week for week in clusters if (week.coverage or 0) >= MIN_FLEET_COVERAGE),
        key=lambda week: week.cluster_id,
    )
    cluster_ids = {
        name: next((week.cluster_id for week in counted_weeks if getattr(week, metric) == value), None)
        for name, value in (("median", row.median), ("p90", row.p90), ("p99", row.p99))
        if value is not None
    }
    return {name: cluster for name, cluster in cluster_ids.items() if cluster is not None}


def _sample_note(metric: str, row: FleetWeek | None) -> str:
    if row is None or row.clusters == 0:
        return "no cluster with enough coverage yet"
    if row.clusters >= CLUSTERS_FOR_A_P99:
        return f"over {format_count(row.clusters, 'cluster')}"
    extreme = "maximum" if metric == LATENCY else "minimum"
    return f"p99 is the {extreme} of {format_count(row.clusters, 'cluster')}"


def format_metric(metric: str, value: float | None) -> str:
    """Return a metric's value as text with its unit."""
    match metric:
        case "latency_p99_us":
            return format_milliseconds(value)
        case "latency_budget_left_minutes":
            return format_minutes(value)
        case _:
            return format_percent(value)


def _find_row(metric: str, week: date, fleet_weeks: Sequence[FleetWeek]) -> FleetWeek | None:
    return next((row for row in fleet_weeks if (row.metric, row.week) == (metric, week)), None)


def _trend(metric: str, until: date, fleet_weeks: Sequence[FleetWeek]) -> QuantileTrend:
    since = until - TREND_WEEKS * _WEEK
    rows = {row.week: row for row in fleet_weeks if row.metric == metric and since < row.week <= until}
    weeks = _fill_missing_weeks(sorted(rows))
    week_rows = [rows.get(week) for week in weeks]
    return QuantileTrend(
        metric=metric,
        weeks=weeks,
        median=tuple(row.median if row else None for row in week_rows),
        p90=tuple(row.p90 if row else None for row in week_rows),
        p99=tuple(row.p99 if row else None for row in week_rows),
        clusters=tuple(row.clusters if row else 0 for row in week_rows),
        open_weeks=frozenset(week for week, row in rows.items() if not row.closed),
    )


def _fill_missing_weeks(weeks: Sequence[date]) -> tuple[date, ...]:
    """Return all weeks from the first to the last, so that a missing week shows as a gap."""
    filled = list(weeks[:1])
    for week in weeks[1:]:
        while week - filled[-1] > _WEEK:
            filled.append(filled[-1] + _WEEK)
        filled.append(week)
    return tuple(filled)


def _excluded(clusters: Sequence[ClusterWeek]) -> str:
    """Return a sentence about the clusters that do not count; empty if all count."""
    excluded = [row for row in clusters if row.coverage is None or row.coverage < MIN_FLEET_COVERAGE]
    if not excluded:
        return ""
    listed = ", ".join(
        f"{row.cluster_id} ({format_percent(row.coverage, 1)})"
        for row in sorted(excluded, key=lambda week: week.coverage or 0)[:5]
    )
    more = f" and {len(excluded) - 5} more" if len(excluded) > 5 else ""
    return f"Excluded, coverage below 90%: {listed}{more}"
