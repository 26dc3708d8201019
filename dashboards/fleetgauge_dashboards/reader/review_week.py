"""What a lake holds of the fleet's week for its review. Each is asked once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from fleetgauge_core import tables
from fleetgauge_core.slo.weeks import WeekSpan
from fleetgauge_dashboards.links import Span
from fleetgauge_dashboards.reader.cluster_week import ClusterWeekReader
from fleetgauge_dashboards.reader.lake import Lake
from fleetgauge_dashboards.reader.rows import HealthEvent, columns_of
from fleetgauge_dashboards.reader.table import Filter, column, read_once

Row = dict[str, Any]

#: Of 10,000 clusters every column counts.
_CLUSTER_WEEK = (
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
#: Eight months.
TREND_WEEKS = 35
#: A finding may have begun before the week in which it was named.
_BEGUN_BEFORE = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Held:
    """A cluster's minutes of the week from silver, as far as it holds them, and what evidence kept."""

    minutes: Sequence[Row]
    evidence: Sequence[Row]


@dataclass(frozen=True, slots=True)
class Known:
    """Rows as the tables have them: of the week and the one before at every revision, and what happened.

    ``actions`` are those until the week closed, ``held`` minutes of clusters of which a broker was treated;
    of ``recovery_weeks`` and ``drills`` the week's alone.
    """

    cluster_weeks: Sequence[Row]
    fleet_weeks: Sequence[Row]
    causes: Sequence[Row]
    events: Sequence[HealthEvent]
    actions: Sequence[Row]
    held: Mapping[str, Held]
    quarantined: Mapping[str, int]
    broken: Sequence[str]
    revised: Sequence[Row]
    recovery_weeks: Sequence[Row] = ()
    drills: Sequence[Row] = ()


class ReviewReader:
    """Of one lake."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake

    def known(self, week: WeekSpan) -> Known:
        """All that its review is made of."""
        two = column("week").isin([week.week, week.week - timedelta(days=7)])
        until_closed = (column("starts") >= week.start) & (column("starts") < week.closes_at)
        actions = self._rows(tables.ACTIONS, until_closed)
        return Known(
            cluster_weeks=self._rows(tables.CLUSTER_WEEKS, two, _CLUSTER_WEEK),
            fleet_weeks=self._fleet_weeks(week.week),
            causes=self._rows(tables.BURN_CAUSES, two & (column("segment") == "fleet")),
            events=self._events(week),
            actions=actions,
            held=self._held(week, actions),
            quarantined=self._quarantined(week),
            broken=[one.expectation for one in self._lake.broken_weeks() if one.week == week.week],
            revised=self._revised(week),
            recovery_weeks=self._rows(tables.RECOVERY_WEEKS, column("week") == week.week),
            drills=self._rows(tables.DRILLS, _within("at", week)),
        )

    def _held(self, week: WeekSpan, actions: Sequence[Row]) -> dict[str, Held]:
        """Of the clusters of whose brokers one was treated: few, and a week of each."""
        found = {}
        for cluster_id in sorted({row["cluster_id"] for row in actions if row["broker_id"] is not None}):
            reader = ClusterWeekReader(self._lake.root, cluster_id)
            minutes = reader.minutes(Span(week.start, week.end))
            found[cluster_id] = Held(minutes, reader.evidence(week.week))
        return found

    def _fleet_weeks(self, until: date) -> list[Row]:
        """Of the fleet and its tiers."""
        since = until - timedelta(days=7 * (TREND_WEEKS - 1))
        of = column("segment").isin(["fleet", "tier"])
        return self._rows(tables.FLEET_WEEKS, of & (column("week") >= since) & (column("week") <= until))

    def _events(self, week: WeekSpan) -> list[HealthEvent]:
        """Until the week closed, with what led to them."""
        within = (column("at") >= week.start - _BEGUN_BEFORE) & (column("at") < week.closes_at)
        found = self._rows(tables.HEALTH_EVENTS, within, columns_of(HealthEvent))
        return [HealthEvent(**row) for row in found]

    def _quarantined(self, week: WeekSpan) -> dict[str, int]:
        """How many records were refused, by reason."""
        within = _within("ingested_at", week)
        found = read_once(self._lake.root, tables.QUARANTINE, within, ("reason",))["reason"].value_counts()
        return {one["values"]: one["counts"] for one in found.to_pylist()}

    def _revised(self, week: WeekSpan) -> list[Row]:
        """Weeks of any age that got a revision in this one."""
        later = column("revision") > 1
        return self._rows(tables.CLUSTER_WEEKS, later & _within("computed_at", week), _CLUSTER_WEEK)

    def _rows(self, table: tables.Table, where: Filter, names: tuple[str, ...] | None = None) -> list[Row]:
        rows: list[Row] = read_once(self._lake.root, table, where, names).to_pylist()
        return rows


def _within(name: str, week: WeekSpan) -> Filter:
    return (column(name) >= week.start) & (column(name) < week.end)
