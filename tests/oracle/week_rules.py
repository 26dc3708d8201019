"""From cluster-minutes to cluster-weeks and fleet-weeks (the gold tables)."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from tests.oracle.correction_rules import Corrected
from tests.oracle.minute_rules import Row
from tests.oracle.quantile import quantile, quantile_from_bad_side
from tests.oracle.settings import WEEKDAYS, ClusterSettings, Settings

CLOSES_AFTER = timedelta(hours=48)
DEFINITION = "v1"
COVERAGE_TO_COUNT = 0.9
COUNTED_FROM_ABOVE = ("latency_p99_us",)
COUNTED_FROM_BELOW = ("availability_p99", "availability_ratio", "latency_budget_left_minutes")

#: What corrections change; each has a twin ``_raw`` that they leave alone.
CORRECTED = (
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


def week_of(minute: datetime, settings: Settings) -> date:
    """The local date of the first day of the week that holds the minute."""
    local_day = minute.astimezone(ZoneInfo(settings.week_zone)).date()
    return local_day - timedelta(days=(local_day.weekday() - WEEKDAYS.index(settings.week_start)) % 7)


def week_bounds(week: date, settings: Settings) -> tuple[datetime, datetime]:
    """The week's first moment and the next week's, in UTC; the zone knows how far apart they are."""
    zone = ZoneInfo(settings.week_zone)
    first, following = (datetime.combine(day, time(), zone) for day in (week, week + timedelta(days=7)))
    return first.astimezone(UTC), following.astimezone(UTC)


def revision_of(week: date, settings: Settings, clock: datetime) -> Row:
    """An open week is revision 0; 48 hours after its end it closes as revision 1."""
    _, end = week_bounds(week, settings)
    closed = clock >= end + CLOSES_AFTER
    return {"revision": 1 if closed else 0, "closed": closed}


# --- Cluster-weeks -----------------------------------------------------------


def cluster_weeks(
    minutes: Iterable[Row],
    corrected: Iterable[Corrected],
    cluster: ClusterSettings,
    settings: Settings,
    clock: datetime,
) -> list[Row]:
    """One row for each week in which the cluster has a minute, corrected away or not."""
    by_week: dict[date, list[Row]] = defaultdict(list)
    for minute in minutes:
        by_week[week_of(minute["minute"], settings)].append(minute)
    corrected_by_week: dict[date, list[Corrected]] = defaultdict(list)
    for one in corrected:
        corrected_by_week[week_of(one.minute, settings)].append(one)
    return [
        _cluster_week(week, by_week[week], corrected_by_week[week], cluster)
        | _closing(revision_of(week, settings, clock))
        for week in sorted(by_week)
    ]


def _closing(revision: Row) -> Row:
    return revision | {"revision_reason": "closed" if revision["closed"] else None}


def _cluster_week(
    week: date, minutes: Sequence[Row], corrected: Sequence[Corrected], cluster: ClusterSettings
) -> Row:
    raw = _week_levels(minutes, cluster)
    levels = _week_levels([one.row for one in corrected if one.row is not None], cluster)
    brokers_expected = sum(minute["brokers_expected"] for minute in minutes)
    brokers_measured = sum(minute["brokers_measured"] for minute in minutes)
    return {
        "cluster_id": cluster.cluster_id,
        "week": week,
        **{name: levels[name] for name in CORRECTED},
        **{f"{name}_raw": raw[name] for name in CORRECTED},
        "coverage": brokers_measured / brokers_expected if brokers_expected else None,
        "corrections": ",".join(sorted(frozenset().union(*(one.correction_ids for one in corrected)))),
        "causes": dict(Counter(minute["cause"] for minute in minutes if minute["cause"])),
        "definition": DEFINITION,
    }


def _week_levels(minutes: Sequence[Row], cluster: ClusterSettings) -> Row:
    """Quantiles over minutes that have the value; sums over probes; budgets over expected minutes."""
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


def fleet_weeks(weeks: Iterable[Row], settings: Settings, clock: datetime) -> list[Row]:
    """One row for each week, metric and segment that has a cluster-week."""
    by_week: dict[date, list[Row]] = defaultdict(list)
    for row in weeks:
        by_week[row["week"]].append(row)
    return [
        {"week": week, "metric": metric, "segment": segment, "segment_value": value}
        | _distribution(members, metric)
        | revision_of(week, settings, clock)
        for week in sorted(by_week)
        for (segment, value), members in sorted(_by_segment(by_week[week], settings).items())
        for metric in (*COUNTED_FROM_ABOVE, *COUNTED_FROM_BELOW)
    ]


def _by_segment(weeks: Iterable[Row], settings: Settings) -> dict[tuple[str, str], list[Row]]:
    segments_of = {cluster.cluster_id: cluster.segments for cluster in settings.clusters}
    members: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in weeks:
        for segment in segments_of[row["cluster_id"]]:
            members[segment].append(row)
    return members


def _distribution(members: Sequence[Row], metric: str) -> Row:
    """Quantiles over the clusters that count: enough coverage, and the metric has a value."""
    values = [float(row[metric]) for row in members if _counts(row, metric)]
    count_from = quantile if metric in COUNTED_FROM_ABOVE else quantile_from_bad_side
    return {
        "median": count_from(values, 50),
        "p90": count_from(values, 90),
        "p99": count_from(values, 99),
        "clusters": len(values),
        "clusters_excluded": len(members) - len(values),
    }


def _counts(row: Row, metric: str) -> bool:
    covered = row["coverage"] is not None and row["coverage"] >= COVERAGE_TO_COUNT
    return covered and row[metric] is not None
