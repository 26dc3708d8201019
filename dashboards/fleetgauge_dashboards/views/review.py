"""Build the weekly reliability review.

It compares the week with the week before and shows what burned budgets and what was done about it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from fleetgauge_core.fleet import WHOLE_FLEET
from fleetgauge_core.slo.levels import MIN_FLEET_COVERAGE
from fleetgauge_core.slo.weeks import WeekSpan
from fleetgauge_dashboards.reader.review_week import TREND_WEEKS, ReviewRows, StoredMinutes
from fleetgauge_dashboards.views.actions import RecordedAction, select_actions_of_week
from fleetgauge_dashboards.views.alert_remarks import select_acknowledgements, select_judgements
from fleetgauge_dashboards.views.alert_week import AlertWeek, summarize_alert_week
from fleetgauge_dashboards.views.alerts import fold_alerts
from fleetgauge_dashboards.views.bad_periods import is_bad_minute
from fleetgauge_dashboards.views.causes import BurnCause, rank_burn_causes
from fleetgauge_dashboards.views.cluster import week_span
from fleetgauge_dashboards.views.cluster_budgets import (
    Row,
    availability_left_minutes,
    select_latest_revisions,
    sort_clusters_worst_first,
)
from fleetgauge_dashboards.views.drills import DrilledGroup, parse_drilled_groups
from fleetgauge_dashboards.views.incidents import (
    DurationSummary,
    WeekIncident,
    list_incidents,
    summarize_durations,
)
from fleetgauge_dashboards.views.record_losses import RecordLoss, parse_losses
from fleetgauge_dashboards.views.recovery_weeks import RecoveryWeek, build_recovery_week
from fleetgauge_dashboards.views.samples import available_minutes
from fleetgauge_dashboards.views.week_changes import (
    ClusterBudgets,
    WeekChanges,
    find_week_changes,
    summarize_budgets,
)

HEADLINE_METRICS = ("latency_p99_us", "availability_ratio", "availability_p99", "latency_budget_left_minutes")
WORST_CLUSTERS = 10


@dataclass(frozen=True, slots=True)
class ClusterQuantiles:
    """Quantiles of one metric over clusters; None where no cluster counts."""

    median: float | None
    p90: float | None
    p99: float | None
    clusters: int
    clusters_excluded: int


@dataclass(frozen=True, slots=True)
class ReviewHeadline:
    """One metric of the fleet: this week, the week before, and the p99 of the last weeks, oldest first."""

    metric: str
    now: ClusterQuantiles | None
    before: ClusterQuantiles | None
    trend: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class TierSummary:
    """The latency budget left and the availability of a tier's clusters."""

    tier: str
    budget_left: ClusterQuantiles
    availability: ClusterQuantiles | None


@dataclass(frozen=True, slots=True)
class BudgetTotals:
    """How many clusters kept their budgets, and the sum of their bad minutes."""

    clusters: int
    bad_minutes: int
    latency_kept: int
    availability_kept: int


@dataclass(frozen=True, slots=True)
class ExcludedCluster:
    """A cluster that fleet quantiles leave out because its coverage is too low."""

    cluster_id: str
    coverage: float | None


@dataclass(frozen=True, slots=True)
class LateRevision:
    """A closed cluster-week that later data changed."""

    cluster_id: str
    week: date
    revision: int
    reason: str
    latency_p99_us: int | None


@dataclass(frozen=True, slots=True)
class Review:
    """The review of one week, which is closed or still open."""

    week: WeekSpan
    closed: bool
    revision: int
    headlines: tuple[ReviewHeadline, ...]
    budgets: BudgetTotals
    worst: tuple[ClusterBudgets, ...]
    changes: WeekChanges
    causes: tuple[BurnCause, ...]
    incidents: tuple[WeekIncident, ...]
    detected: DurationSummary | None
    acted: DurationSummary | None
    judged: AlertWeek
    acts: tuple[RecordedAction, ...]
    saved_min: int
    tiers: tuple[TierSummary, ...]
    excluded: tuple[ExcludedCluster, ...]
    quarantined: tuple[tuple[str, int], ...]
    broken: tuple[str, ...]
    losses: tuple[RecordLoss, ...]
    revised: tuple[LateRevision, ...]
    recovery: RecoveryWeek | None
    drills: tuple[DrilledGroup, ...]


def resolve_review_week(
    weeks: Sequence[date], requested: date | None, zone: str, now: datetime
) -> WeekSpan | None:
    """Return the requested week, else the newest that has ended, else the newest; None without weeks."""
    spans = {week: _span(week, zone) for week in weeks}
    ended = [week for week, span in spans.items() if span.end <= now]
    selected = requested if requested in spans else max(ended or weeks, default=None)
    return None if selected is None else spans[selected]


def _span(week: date, zone: str) -> WeekSpan:
    span = week_span(week, zone)
    return WeekSpan(week, span.start, span.end)


def build_review(week: WeekSpan, rows: ReviewRows) -> Review:
    """Build the review of a week that the lake has.

    The review of a closed week does not depend on when it is built.
    """
    week_before = week.week - timedelta(days=7)
    rows_now, rows_week_before = (
        select_latest_revisions(rows.cluster_weeks, day, ["cluster_id"]) for day in (week.week, week_before)
    )
    actions = select_actions_of_week(rows.actions, week)
    found_incidents = list_incidents(rows.events, actions, _bad_minutes(rows.stored_minutes, rows_now), week)
    rows_before = {row["cluster_id"]: row for row in rows_week_before}
    return Review(
        week=week,
        closed=bool(rows_now) and all(row["closed"] for row in rows_now),
        revision=max((row["revision"] for row in rows_now), default=0),
        headlines=tuple(_headline(metric, week.week, rows.fleet_weeks) for metric in HEADLINE_METRICS),
        budgets=_budgets(rows_now),
        worst=tuple(
            summarize_budgets(row, rows_before)
            for row in sort_clusters_worst_first(rows_now)[:WORST_CLUSTERS]
        ),
        changes=find_week_changes(rows_now, rows_week_before),
        causes=rank_burn_causes(rows.causes, week.week),
        incidents=found_incidents,
        detected=summarize_durations(incident.detected_s for incident in found_incidents),
        acted=summarize_durations(incident.acted_s for incident in found_incidents),
        judged=_summarize_alerts(rows, week),
        acts=actions,
        saved_min=sum(incident.saved_min or 0 for incident in found_incidents),
        tiers=_tiers(
            select_latest_revisions(rows.fleet_weeks, week.week, ["segment", "segment_value", "metric"])
        ),
        excluded=_excluded(rows_now),
        quarantined=tuple(sorted(rows.quarantined.items(), key=lambda reason: (-reason[1], reason[0]))),
        broken=tuple(rows.failed_checks),
        losses=parse_losses(rows.losses),
        revised=_revised(rows.revised),
        recovery=build_recovery_week(rows.recovery_weeks, week.week),
        drills=parse_drilled_groups(rows.drills)[::-1],
    )


def _summarize_alerts(rows: ReviewRows, week: WeekSpan) -> AlertWeek:
    """Summarize the week's alerts as they were known when the week closed."""
    events = [event for event in rows.events if event.at < week.closes_at]
    return summarize_alert_week(
        fold_alerts(events), select_judgements(rows.actions), select_acknowledgements(rows.actions), week
    )


def _bad_minutes(
    stored_minutes: Mapping[str, StoredMinutes], cluster_weeks: Sequence[Row]
) -> dict[str, frozenset[datetime]]:
    objectives = {row["cluster_id"]: row["latency_objective_us"] for row in cluster_weeks}
    return {
        cluster_id: frozenset(
            row["minute"].astimezone(UTC)
            for row in available_minutes(stored.minutes, stored.evidence)
            if is_bad_minute(row, objectives.get(cluster_id))
        )
        for cluster_id, stored in stored_minutes.items()
    }


def _headline(metric: str, week: date, fleet_weeks: Iterable[Row]) -> ReviewHeadline:
    whole = (*WHOLE_FLEET, metric)
    of_fleet = [row for row in fleet_weeks if (row["segment"], row["segment_value"], row["metric"]) == whole]
    by_week = {
        day: select_latest_revisions(of_fleet, day, ["metric"])[0]
        for day in {row["week"] for row in of_fleet}
    }
    weeks = [week - timedelta(days=7 * back) for back in reversed(range(TREND_WEEKS))]
    return ReviewHeadline(
        metric,
        _quantiles(by_week.get(week)),
        _quantiles(by_week.get(week - timedelta(days=7))),
        tuple(by_week[day]["p99"] if day in by_week else None for day in weeks),
    )


def _quantiles(row: Row | None) -> ClusterQuantiles | None:
    if row is None:
        return None
    return ClusterQuantiles(row["median"], row["p90"], row["p99"], row["clusters"], row["clusters_excluded"])


def _budgets(cluster_weeks: Sequence[Row]) -> BudgetTotals:
    budgets_left = [
        (row["latency_budget_left_minutes"], availability_left_minutes(row)) for row in cluster_weeks
    ]
    return BudgetTotals(
        len(cluster_weeks),
        sum(row["bad_minutes"] or 0 for row in cluster_weeks),
        sum(latency is not None and latency >= 0 for latency, _ in budgets_left),
        sum(availability is not None and availability >= 0 for _, availability in budgets_left),
    )


def _tiers(rows: Iterable[Row]) -> tuple[TierSummary, ...]:
    by_tier_and_metric = {
        (row["segment_value"], row["metric"]): row for row in rows if row["segment"] == "tier"
    }
    tiers = []
    for tier in sorted({value for value, _ in by_tier_and_metric}):
        left = _quantiles(by_tier_and_metric.get((tier, "latency_budget_left_minutes")))
        if left:
            tiers.append(
                TierSummary(tier, left, _quantiles(by_tier_and_metric.get((tier, "availability_ratio"))))
            )
    return tuple(tiers)


def _excluded(cluster_weeks: Iterable[Row]) -> tuple[ExcludedCluster, ...]:
    """Return the excluded clusters, lowest coverage first."""
    excluded = (
        ExcludedCluster(row["cluster_id"], row["coverage"])
        for row in cluster_weeks
        if row["coverage"] is None or row["coverage"] < MIN_FLEET_COVERAGE
    )
    return tuple(sorted(excluded, key=lambda cluster: (cluster.coverage or 0, cluster.cluster_id)))


def _revised(rows: Iterable[Row]) -> tuple[LateRevision, ...]:
    revisions = (
        LateRevision(
            row["cluster_id"],
            row["week"],
            row["revision"],
            row["revision_reason"] or "",
            row["latency_p99_us"],
        )
        for row in rows
    )
    return tuple(
        sorted(revisions, key=lambda revision: (revision.week, revision.cluster_id, revision.revision))
    )
