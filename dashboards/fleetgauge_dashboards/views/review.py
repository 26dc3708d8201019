"""The weekly reliability review: the week against the one before, what burned, what was done about it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from fleetgauge_core.slo.levels import FLEET_COVERAGE
from fleetgauge_core.slo.weeks import WeekSpan
from fleetgauge_dashboards.reader.review_week import TREND_WEEKS, Held, Known
from fleetgauge_dashboards.views.actions import Act, acts
from fleetgauge_dashboards.views.alert_week import AlertWeek, alert_week
from fleetgauge_dashboards.views.alerts import alerts
from fleetgauge_dashboards.views.causes import Cause, causes
from fleetgauge_dashboards.views.cluster import week_span
from fleetgauge_dashboards.views.drills import DrilledGroup, drilled
from fleetgauge_dashboards.views.episodes import is_bad
from fleetgauge_dashboards.views.incidents import Durations, Incident, incidents, times
from fleetgauge_dashboards.views.movers import Changes, Standing, changes, standing
from fleetgauge_dashboards.views.recovery_weeks import RecoveryWeek, recovery_week
from fleetgauge_dashboards.views.remarks import acknowledged, judged
from fleetgauge_dashboards.views.samples import held_minutes
from fleetgauge_dashboards.views.standings import (
    Row,
    availability_left_minutes,
    week_rows,
    worst_first,
)

METRICS = ("latency_p99_us", "availability_ratio", "availability_p99", "latency_budget_left_minutes")
WORST = 10


@dataclass(frozen=True, slots=True)
class Quantiles:
    """One metric over clusters; None where none counts."""

    median: float | None
    p90: float | None
    p99: float | None
    clusters: int
    clusters_excluded: int


@dataclass(frozen=True, slots=True)
class Headline:
    """One metric of the fleet, the week before, and its p99 of the last weeks, oldest first."""

    metric: str
    now: Quantiles | None
    before: Quantiles | None
    trend: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class Tier:
    """A tier's latency budget left and availability, over its clusters."""

    tier: str
    budget_left: Quantiles
    availability: Quantiles | None


@dataclass(frozen=True, slots=True)
class Budgets:
    """How many clusters kept their budgets, and the bad minutes of all."""

    clusters: int
    bad_minutes: int
    latency_kept: int
    availability_kept: int


@dataclass(frozen=True, slots=True)
class Excluded:
    """A cluster that does not count in the fleet's quantiles, for want of coverage."""

    cluster_id: str
    coverage: float | None


@dataclass(frozen=True, slots=True)
class Revised:
    """A closed week of a cluster that later data changed."""

    cluster_id: str
    week: date
    revision: int
    reason: str
    latency_p99_us: int | None


@dataclass(frozen=True, slots=True)
class Review:
    """One week, closed or to date."""

    week: WeekSpan
    closed: bool
    revision: int
    headlines: tuple[Headline, ...]
    budgets: Budgets
    worst: tuple[Standing, ...]
    changes: Changes
    causes: tuple[Cause, ...]
    incidents: tuple[Incident, ...]
    detected: Durations | None
    acted: Durations | None
    judged: AlertWeek
    acts: tuple[Act, ...]
    saved_min: int
    tiers: tuple[Tier, ...]
    excluded: tuple[Excluded, ...]
    quarantined: tuple[tuple[str, int], ...]
    broken: tuple[str, ...]
    revised: tuple[Revised, ...]
    recovery: RecoveryWeek | None
    drills: tuple[DrilledGroup, ...]


def asked_week(weeks: Sequence[date], asked: date | None, zone: str, now: datetime) -> WeekSpan | None:
    """The asked week, or the newest that is over, or else the newest; None while there is none."""
    spans = {week: _span(week, zone) for week in weeks}
    over = [week for week, span in spans.items() if span.end <= now]
    shown = asked if asked in spans else max(over or weeks, default=None)
    return None if shown is None else spans[shown]


def _span(week: date, zone: str) -> WeekSpan:
    span = week_span(week, zone)
    return WeekSpan(week, span.start, span.end)


def review(week: WeekSpan, known: Known) -> Review:
    """Of a week that the lake has. A closed week's is the same whenever it is asked for."""
    last = week.week - timedelta(days=7)
    now, before = (week_rows(known.cluster_weeks, day, ["cluster_id"]) for day in (week.week, last))
    done = acts(known.actions, week)
    happened = incidents(known.events, done, _bad_minutes(known.held, now), week)
    then = {row["cluster_id"]: row for row in before}
    return Review(
        week=week,
        closed=bool(now) and all(row["closed"] for row in now),
        revision=max((row["revision"] for row in now), default=0),
        headlines=tuple(_headline(metric, week.week, known.fleet_weeks) for metric in METRICS),
        budgets=_budgets(now),
        worst=tuple(standing(row, then) for row in worst_first(now)[:WORST]),
        changes=changes(now, before),
        causes=causes(known.causes, week.week),
        incidents=happened,
        detected=times(one.detected_s for one in happened),
        acted=times(one.acted_s for one in happened),
        judged=_judged(known, week),
        acts=done,
        saved_min=sum(one.saved_min or 0 for one in happened),
        tiers=_tiers(week_rows(known.fleet_weeks, week.week, ["segment", "segment_value", "metric"])),
        excluded=_excluded(now),
        quarantined=tuple(sorted(known.quarantined.items(), key=lambda one: (-one[1], one[0]))),
        broken=tuple(known.broken),
        revised=_revised(known.revised),
        recovery=recovery_week(known.recovery_weeks, week.week),
        drills=drilled(known.drills)[::-1],
    )


def _judged(known: Known, week: WeekSpan) -> AlertWeek:
    """As it was known when the week closed."""
    events = [one for one in known.events if one.at < week.closes_at]
    return alert_week(alerts(events), judged(known.actions), acknowledged(known.actions), week)


def _bad_minutes(held: Mapping[str, Held], now: Sequence[Row]) -> dict[str, frozenset[datetime]]:
    objectives = {row["cluster_id"]: row["latency_objective_us"] for row in now}
    return {
        cluster_id: frozenset(
            row["minute"].astimezone(UTC)
            for row in held_minutes(one.minutes, one.evidence)
            if is_bad(row, objectives.get(cluster_id))
        )
        for cluster_id, one in held.items()
    }


def _headline(metric: str, week: date, fleet_weeks: Iterable[Row]) -> Headline:
    own = [row for row in fleet_weeks if (row["segment"], row["metric"]) == ("fleet", metric)]
    by_week = {day: week_rows(own, day, ["metric"])[0] for day in {row["week"] for row in own}}
    weeks = [week - timedelta(days=7 * back) for back in reversed(range(TREND_WEEKS))]
    return Headline(
        metric,
        _quantiles(by_week.get(week)),
        _quantiles(by_week.get(week - timedelta(days=7))),
        tuple(by_week[day]["p99"] if day in by_week else None for day in weeks),
    )


def _quantiles(row: Row | None) -> Quantiles | None:
    if row is None:
        return None
    return Quantiles(row["median"], row["p90"], row["p99"], row["clusters"], row["clusters_excluded"])


def _budgets(now: Sequence[Row]) -> Budgets:
    lefts = [(row["latency_budget_left_minutes"], availability_left_minutes(row)) for row in now]
    return Budgets(
        len(now),
        sum(row["bad_minutes"] or 0 for row in now),
        sum(latency is not None and latency >= 0 for latency, _ in lefts),
        sum(availability is not None and availability >= 0 for _, availability in lefts),
    )


def _tiers(rows: Iterable[Row]) -> tuple[Tier, ...]:
    of = {(row["segment_value"], row["metric"]): row for row in rows if row["segment"] == "tier"}
    found = []
    for tier in sorted({value for value, _ in of}):
        left = _quantiles(of.get((tier, "latency_budget_left_minutes")))
        if left:
            found.append(Tier(tier, left, _quantiles(of.get((tier, "availability_ratio")))))
    return tuple(found)


def _excluded(now: Iterable[Row]) -> tuple[Excluded, ...]:
    """Who was seen least first."""
    out = (
        Excluded(row["cluster_id"], row["coverage"])
        for row in now
        if row["coverage"] is None or row["coverage"] < FLEET_COVERAGE
    )
    return tuple(sorted(out, key=lambda one: (one.coverage or 0, one.cluster_id)))


def _revised(rows: Iterable[Row]) -> tuple[Revised, ...]:
    found = (
        Revised(
            row["cluster_id"],
            row["week"],
            row["revision"],
            row["revision_reason"] or "",
            row["latency_p99_us"],
        )
        for row in rows
    )
    return tuple(sorted(found, key=lambda one: (one.week, one.cluster_id, one.revision)))
