"""Read what a lake holds about the fleet's week, for its review. Nothing is cached."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from fleetgauge_core import tables
from fleetgauge_core.contract import HealthEvent
from fleetgauge_core.slo.weeks import WeekSpan
from fleetgauge_dashboards.links import Span
from fleetgauge_dashboards.reader.cluster_week import ClusterWeekReader
from fleetgauge_dashboards.reader.lake import LakeReader
from fleetgauge_dashboards.reader.rows import column_names
from fleetgauge_dashboards.reader.table import RowFilter, column, read_once

Row = dict[str, Any]

#: Only what a review needs: with 10,000 clusters every column costs time.
_CLUSTER_WEEK_COLUMNS = (
    "cluster_id",
    "week",
    "revision",
    "latency_p99_us",
    "latency_p99_censored_us",
    "availability_ratio",
    "bad_minutes",
    "latency_objective_us",
    "latency_budget_minutes",
    "latency_budget_left_minutes",
    "availability_budget_minutes",
    "availability_spent_minutes",
    "coverage",
    "causes",
    "closed",
    "revision_reason",
    "computed_at",
)
#: Weeks in the trend: eight months.
TREND_WEEKS = 35
#: A finding may show its first sign before the week in which it opens.
_LOOK_BACK = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class StoredMinutes:
    """The rows that remain of a cluster's week: silver's minutes, and the samples kept as evidence."""

    minutes: Sequence[Row]
    evidence: Sequence[Row]


@dataclass(frozen=True, slots=True)
class ReviewRows:
    """The table rows that a weekly review is made of.

    Gold rows are of the week and of the week before, at every revision. ``actions`` began between the week's
    start and its closing; ``stored_minutes`` are by cluster, of clusters with an action on a broker.
    ``recovery_weeks`` and ``drills`` are of the week alone.
    """

    cluster_weeks: Sequence[Row]
    fleet_weeks: Sequence[Row]
    causes: Sequence[Row]
    events: Sequence[HealthEvent]
    actions: Sequence[Row]
    stored_minutes: Mapping[str, StoredMinutes]
    quarantined: Mapping[str, int]
    failed_checks: Sequence[str]
    losses: Sequence[Row]
    revised: Sequence[Row]
    recovery_weeks: Sequence[Row] = ()
    drills: Sequence[Row] = ()


class ReviewReader:
    """A reader of the rows behind a lake's weekly reviews."""

    def __init__(self, lake: LakeReader) -> None:
        self._lake = lake

    def read(self, week: WeekSpan) -> ReviewRows:
        """Read all rows that the week's review is made of."""
        both_weeks = column("week").isin([week.week, week.week - timedelta(days=7)])
        before_closing = (column("starts") >= week.start) & (column("starts") < week.closes_at)
        actions = self._rows(tables.ACTIONS, before_closing)
        return ReviewRows(
            cluster_weeks=self._rows(tables.CLUSTER_WEEKS, both_weeks, _CLUSTER_WEEK_COLUMNS),
            fleet_weeks=self._fleet_weeks(week.week),
            causes=self._rows(tables.BURN_CAUSES, both_weeks & (column("segment") == "fleet")),
            events=self._events(week),
            actions=actions,
            stored_minutes=self._stored_minutes(week, actions),
            quarantined=self._quarantined(week),
            failed_checks=[
                check.expectation for check in self._lake.failed_week_checks() if check.week == week.week
            ],
            losses=self._rows(tables.QUALITY, (column("suite") == "topics") & _in_week("at", week)),
            revised=self._revised(week),
            recovery_weeks=self._rows(tables.RECOVERY_WEEKS, column("week") == week.week),
            drills=self._rows(tables.DRILLS, _in_week("at", week)),
        )

    def _stored_minutes(self, week: WeekSpan, actions: Sequence[Row]) -> dict[str, StoredMinutes]:
        """Read the minutes of the few clusters in which an action was taken on a broker."""
        stored_minutes = {}
        for cluster_id in sorted({row["cluster_id"] for row in actions if row["broker_id"] is not None}):
            reader = ClusterWeekReader(self._lake.root, cluster_id)
            minutes = reader.minutes(Span(week.start, week.end))
            stored_minutes[cluster_id] = StoredMinutes(minutes, reader.evidence(week.week))
        return stored_minutes

    def _fleet_weeks(self, until: date) -> list[Row]:
        """Read the weeks of the whole fleet and of its tiers, up to ``until``."""
        since = until - timedelta(days=7 * (TREND_WEEKS - 1))
        in_segments = column("segment").isin(["fleet", "tier"])
        return self._rows(
            tables.FLEET_WEEKS, in_segments & (column("week") >= since) & (column("week") <= until)
        )

    def _events(self, week: WeekSpan) -> list[HealthEvent]:
        """Read the state changes up to the week's closing, and those that led to them."""
        in_range = (column("at") >= week.start - _LOOK_BACK) & (column("at") < week.closes_at)
        rows = self._rows(tables.HEALTH_EVENTS, in_range, column_names(HealthEvent))
        return [HealthEvent(**row) for row in rows]

    def _quarantined(self, week: WeekSpan) -> dict[str, int]:
        """Return how many records were quarantined in the week, by reason."""
        in_week = _in_week("ingested_at", week)
        counts = read_once(self._lake.root, tables.QUARANTINE, in_week, ("reason",))["reason"].value_counts()
        return {row["values"]: row["counts"] for row in counts.to_pylist()}

    def _revised(self, week: WeekSpan) -> list[Row]:
        """Read the cluster-weeks of any age that got another revision in this week."""
        is_revision = column("revision") > 1
        return self._rows(
            tables.CLUSTER_WEEKS, is_revision & _in_week("computed_at", week), _CLUSTER_WEEK_COLUMNS
        )

    def _rows(self, table: tables.Table, where: RowFilter, names: tuple[str, ...] | None = None) -> list[Row]:
        rows: list[Row] = read_once(self._lake.root, table, where, names).to_pylist()
        return rows


def _in_week(name: str, week: WeekSpan) -> RowFilter:
    return (column(name) >= week.start) & (column(name) < week.end)
