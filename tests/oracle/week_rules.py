"""Cluster-weeks and fleet-weeks (the gold tables), computed from cluster-minutes."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from tests.oracle.correction_rules import CorrectedMinute
from tests.oracle.minute_rules import Row
from tests.oracle.quantile import quantile, quantile_from_bad_side
from tests.oracle.settings import WEEKDAYS, ClusterSettings, Settings

WEEK_CLOSING_DELAY = timedelta(hours=48)
DEFINITION = "v1"
MIN_FLEET_COVERAGE = 0.9
LOWER_IS_BETTER = ("latency_p99_us",)
HIGHER_IS_BETTER = ("availability_p99", "availability_ratio", "latency_budget_left_minutes")

#: The columns that corrections change; each has a twin with the suffix ``_raw``.
CORRECTED_COLUMNS = (
    "latency_p99_us",
    "latency_p99_censored_us",
    "availability_p99",
    "availability_ratio",
    "bad_minutes",
    "latency_objective_us",
    "latency_budget_minutes",
    "latency_budget_left_minutes",
    "availability_objective",
    "availability_budget_minutes",
    "availability_spent_minutes",
    "minutes_measured",
    "minutes_expected",
)

# --- Weeks -------------------------------------------------------------------


def find_week(minute: datetime, settings: Settings) -> date:
    """Return the first local day of the week that contains the minute."""
    local_day = minute.astimezone(ZoneInfo(settings.week_zone)).date()
    return local_day - timedelta(days=(local_day.weekday() - WEEKDAYS.index(settings.week_start)) % 7)


def find_week_bounds(week: date, settings: Settings) -> tuple[datetime, datetime]:
    """Return the start of the week and of the next one in UTC; a clock change may lie between them."""
    zone = ZoneInfo(settings.week_zone)
    first, following = (datetime.combine(day, time(), zone) for day in (week, week + timedelta(days=7)))
    return first.astimezone(UTC), following.astimezone(UTC)


def find_revision(week: date, settings: Settings, clock: datetime) -> Row:
    """Return the revision of a week: 0 while open, 1 from 48 hours after its end on."""
    _, end = find_week_bounds(week, settings)
    closed = clock >= end + WEEK_CLOSING_DELAY
    return {"revision": 1 if closed else 0, "closed": closed}


# --- Cluster-weeks -----------------------------------------------------------


def compute_cluster_weeks(
    minutes: Iterable[Row],
    corrected: Iterable[CorrectedMinute],
    cluster: ClusterSettings,
    settings: Settings,
    clock: datetime,
) -> list[Row]:
    """Return one row per week in which the cluster has a minute, excluded or not."""
    by_week: dict[date, list[Row]] = defaultdict(list)
    for minute in minutes:
        by_week[find_week(minute["minute"], settings)].append(minute)
    corrected_by_week: dict[date, list[CorrectedMinute]] = defaultdict(list)
    for corrected_minute in corrected:
        corrected_by_week[find_week(corrected_minute.minute, settings)].append(corrected_minute)
    return [
        _cluster_week(week, by_week[week], corrected_by_week[week], cluster)
        | _add_revision_reason(find_revision(week, settings, clock))
        for week in sorted(by_week)
    ]


def _add_revision_reason(revision: Row) -> Row:
    return revision | {"revision_reason": "closed" if revision["closed"] else None}


def _cluster_week(
    week: date, minutes: Sequence[Row], corrected: Sequence[CorrectedMinute], cluster: ClusterSettings
) -> Row:
    raw = _week_levels(minutes, cluster)
    levels = _week_levels(
        [corrected_minute.row for corrected_minute in corrected if corrected_minute.row is not None], cluster
    )
    brokers_expected = sum(minute["brokers_expected"] for minute in minutes)
    brokers_measured = sum(minute["brokers_measured"] for minute in minutes)
    return {
        "cluster_id": cluster.cluster_id,
        "week": week,
        **{name: levels[name] for name in CORRECTED_COLUMNS},
        **{f"{name}_raw": raw[name] for name in CORRECTED_COLUMNS},
        "coverage": brokers_measured / brokers_expected if brokers_expected else None,
        "corrections": ",".join(
            sorted(frozenset().union(*(corrected_minute.correction_ids for corrected_minute in corrected)))
        ),
        "causes": dict(Counter(minute["cause"] for minute in minutes if minute["cause"])),
        "definition": DEFINITION,
    }


def _week_levels(minutes: Sequence[Row], cluster: ClusterSettings) -> Row:
    """Return quantiles over the minutes with a value, sums over probes, budgets over expected minutes."""
    attempted = sum(minute["attempted"] for minute in minutes)
    succeeded = sum(minute["succeeded"] for minute in minutes)
    censored_us = _present(minutes, "latency_p99_censored_us")
    bad_minutes = sum(us > cluster.latency_objective_us for us in censored_us)
    latency_budget_minutes = len(minutes) / 100
    return {
        "latency_p99_us": quantile(_present(minutes, "latency_p99_us"), 99),
        "latency_p99_censored_us": quantile(censored_us, 99),
        "availability_p99": quantile_from_bad_side(_present(minutes, "availability"), 99),
        "availability_ratio": succeeded / attempted if attempted else None,
        "bad_minutes": bad_minutes,
        "latency_objective_us": cluster.latency_objective_us,
        "latency_budget_minutes": latency_budget_minutes,
        "latency_budget_left_minutes": latency_budget_minutes - bad_minutes if minutes else None,
        "availability_objective": cluster.availability_objective,
        "availability_budget_minutes": (1 - cluster.availability_objective) * len(minutes),
        "availability_spent_minutes": math.fsum(
            1 - ratio for ratio in _present(minutes, "availability_pooled")
        ),
        "minutes_measured": sum(minute["brokers_measured"] >= 1 for minute in minutes),
        "minutes_expected": len(minutes),
    }


def _present(rows: Iterable[Row], column: str) -> list[Any]:
    return [row[column] for row in rows if row[column] is not None]


# --- Fleet-weeks -------------------------------------------------------------


def compute_fleet_weeks(weeks: Iterable[Row], settings: Settings, clock: datetime) -> list[Row]:
    """Return one row per week, metric and segment that has a cluster-week."""
    by_week: dict[date, list[Row]] = defaultdict(list)
    for row in weeks:
        by_week[row["week"]].append(row)
    return [
        {"week": week, "metric": metric, "segment": segment, "segment_value": value}
        | _distribution(members, metric)
        | find_revision(week, settings, clock)
        for week in sorted(by_week)
        for (segment, value), members in sorted(_by_segment(by_week[week], settings).items())
        for metric in (*LOWER_IS_BETTER, *HIGHER_IS_BETTER)
    ]


def _by_segment(weeks: Iterable[Row], settings: Settings) -> dict[tuple[str, str], list[Row]]:
    segments_of = {cluster.cluster_id: cluster.segments for cluster in settings.clusters}
    members: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in weeks:
        for segment in segments_of[row["cluster_id"]]:
            members[segment].append(row)
    return members


def _distribution(members: Sequence[Row], metric: str) -> Row:
    """Return quantiles over the clusters with enough coverage and a value of the metric."""
    values = [float(row[metric]) for row in members if _is_counted(row, metric)]
    quantile_of = quantile if metric in LOWER_IS_BETTER else quantile_from_bad_side
    return {
        "median": quantile_of(values, 50),
        "p90": quantile_of(values, 90),
        "p99": quantile_of(values, 99),
        "clusters": len(values),
        "clusters_excluded": len(members) - len(values),
    }


def _is_counted(row: Row, metric: str) -> bool:
    covered = row["coverage"] is not None and row["coverage"] >= MIN_FLEET_COVERAGE
    return covered and row[metric] is not None
