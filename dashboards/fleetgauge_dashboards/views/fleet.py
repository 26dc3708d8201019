"""The fleet in one week: its headline quantiles, their trend, and every cluster, worst first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from fleetgauge_dashboards.links import ClusterView, FleetView, href
from fleetgauge_dashboards.reader import ClusterWeek, FleetWeek
from fleetgauge_dashboards.units import count, milliseconds, minutes, percent
from fleetgauge_dashboards.views.alerts import Alert
from fleetgauge_dashboards.views.freshness import Freshness
from fleetgauge_pipelines.slo.levels import FLEET_COVERAGE

LATENCY = "latency_p99_us"
AVAILABILITY = "availability_ratio"
BUDGET = "latency_budget_left_minutes"

#: Under so many clusters the nearest-rank p99 is the worst of them.
CLUSTERS_FOR_A_P99 = 100
#: Clusters in the table: more, nobody reads, and a page of thousands is slow for everybody.
ROWS = 500
#: Weeks in the trend.
TREND_WEEKS = 52


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
class ClusterRow:
    """One line of the table. Numbers in the unit that is shown, for sorting."""

    cluster_id: str
    link: str
    state: str
    rank: int
    latency_p99_ms: float | None
    latency_p99_censored_ms: float | None
    objective_ms: float | None
    availability_percent: float | None
    budget_left_min: float | None
    bad_minutes: int | None
    coverage_percent: float | None


@dataclass(frozen=True, slots=True)
class Fleet:
    """The fleet page; ``rows`` are the worst of the ``matching`` ones among all ``clusters``."""

    week: date
    weeks: tuple[date, ...]
    standing: str
    headlines: tuple[Headline, ...]
    trends: tuple[Trend, ...]
    excluded: str
    clusters: int
    matching: int
    rows: tuple[ClusterRow, ...]


def shown_week(weeks: Sequence[date], asked: date | None) -> date | None:
    """The asked week, or else the newest; None while there is no week at all."""
    return asked if asked in weeks else max(weeks, default=None)


def fleet(
    week: date,
    weeks: Sequence[date],
    clusters: Sequence[ClusterWeek],
    fleet_weeks: Sequence[FleetWeek],
    found: Sequence[Alert],
    fresh: Freshness,
    view: FleetView,
) -> Fleet:
    """One of ``weeks``, which are newest first; ``clusters`` are that week's."""
    metrics = (LATENCY, AVAILABILITY, BUDGET)
    rows, matching = _rows(clusters, found, fresh, week == weeks[0], view)
    return Fleet(
        week=week,
        weeks=tuple(weeks),
        standing=standing(clusters),
        headlines=tuple(_headline(metric, week, fleet_weeks, clusters) for metric in metrics),
        trends=tuple(_trend(metric, week, fleet_weeks) for metric in metrics[:2]),
        excluded=_excluded(clusters),
        clusters=len(clusters),
        matching=matching,
        rows=rows,
    )


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
    rows = sorted((r for r in fleet_weeks if r.metric == metric and r.week <= until), key=lambda r: r.week)
    rows = rows[-TREND_WEEKS:]
    return Trend(
        metric=metric,
        weeks=tuple(row.week for row in rows),
        median=tuple(row.median for row in rows),
        p90=tuple(row.p90 for row in rows),
        p99=tuple(row.p99 for row in rows),
        clusters=tuple(row.clusters for row in rows),
        open_weeks=frozenset(row.week for row in rows if not row.closed),
    )


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


def _rows(
    clusters: Sequence[ClusterWeek],
    found: Sequence[Alert],
    fresh: Freshness,
    is_newest: bool,
    view: FleetView,
) -> tuple[tuple[ClusterRow, ...], int]:
    """The worst of those that are asked for, and how many they are. Only what is shown is made."""
    wanted = (view.search or "").casefold()
    unfinished: dict[str, list[Alert]] = {}
    for alert in found:
        if alert.cleared is None:
            unfinished.setdefault(alert.cluster_id, []).append(alert)
    matching = [
        (week, _state(unfinished.get(week.cluster_id, ()), fresh.silence(week.cluster_id)))
        for week in clusters
        if wanted in week.cluster_id.casefold()
    ]
    matching.sort(key=lambda one: _worst_first(one[0], one[1][0]))
    shown = matching[:ROWS]
    return tuple(_row(week, *state, is_newest, view.fleet) for week, state in shown), len(matching)


def _state(unfinished: Sequence[Alert], silence: str | None) -> tuple[int, str]:
    """The symbol says it without colour."""
    opened = [alert for alert in unfinished if alert.is_open]
    if opened:
        return 0, f"▲ {', '.join(map(_named, opened))}"
    if silence is not None:
        return 1, f"◌ NO DATA for {silence}"
    if unfinished:
        return 2, f"△ suspected {', '.join(map(_named, unfinished))}"
    return 3, "● no alert"


def _named(alert: Alert) -> str:
    return alert.kind if alert.broker_id is None else f"{alert.kind} broker {alert.broker_id}"


def _row(week: ClusterWeek, rank: int, state: str, is_newest: bool, of: str | None) -> ClusterRow:
    return ClusterRow(
        cluster_id=week.cluster_id,
        link=href(ClusterView(week.cluster_id, None if is_newest else week.week, fleet=of)),
        state=state,
        rank=rank,
        latency_p99_ms=_ms(week.latency_p99_us),
        latency_p99_censored_ms=_ms(week.latency_p99_censored_us),
        objective_ms=_ms(week.latency_objective_us),
        availability_percent=None if week.availability_ratio is None else 100 * week.availability_ratio,
        budget_left_min=week.latency_budget_left_minutes,
        bad_minutes=week.bad_minutes,
        coverage_percent=None if week.coverage is None else 100 * week.coverage,
    )


def _worst_first(week: ClusterWeek, rank: int) -> tuple[int, float, int, str]:
    left = week.latency_budget_left_minutes
    return rank, float("inf") if left is None else left, -(week.latency_p99_censored_us or 0), week.cluster_id


def _ms(us: int | None) -> float | None:
    return None if us is None else us / 1000
