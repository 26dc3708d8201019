"""The questions that the pages ask of a lake."""

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from fleetgauge_core import tables
from fleetgauge_dashboards.links import Leg, Span
from fleetgauge_dashboards.reader.recency import NOTHING_MEASURED, Recency, recency
from fleetgauge_dashboards.reader.recovery import RecoveryTables
from fleetgauge_dashboards.reader.rows import BrokenWeek, ClusterWeek, FleetWeek, HealthEvent, columns_of
from fleetgauge_dashboards.reader.table import Files, Filter, Row, TableReader, UnreadableError, column

RECENT = ("cluster_id", "minute", "brokers_expected", "brokers_measured", "latency_p99_censored_us")
#: What burn rates are made of, and how far back the longest of their windows looks.
BURN = (*RECENT, "attempted", "succeeded")
BURN_DAYS = 4
CLUSTER_MINUTE = (
    "minute",
    "latency_p99_us",
    "latency_worst_home",
    "latency_p99_censored_us",
    "latency_pooled_p99_us",
    "availability",
    "availability_worst_home",
    "availability_pooled",
    "brokers_expected",
    "brokers_measured",
)
BROKER_DETAIL = (
    "minute",
    "leg",
    "measured",
    "attempted",
    "succeeded",
    "latency_p50_us",
    "latency_p99_us",
    "latency_p99_censored_us",
    "latency_max_us",
    "failures",
    "lost",
    "duplicated",
    "led_by",
)
BROKER_MINUTE = ("broker_id", "minute", "measured", "latency_p99_us", "latency_p99_censored_us")

NO_TABLE = "there is no such table"

#: The segment that is the fleet itself.
WHOLE = "fleet"


@dataclass(frozen=True, slots=True)
class Readable:
    """Whether a table can be read: its version, or why not; neither while it is not there."""

    path: str
    version: int | None
    error: str | None


class Lake:
    """A lake's tables; each question is asked once per version of its table."""

    def __init__(self, root: str) -> None:
        self.root = root
        self._cluster_weeks = TableReader(root, tables.CLUSTER_WEEKS)
        self._fleet_weeks = TableReader(root, tables.FLEET_WEEKS)
        self._cluster_minutes = TableReader(root, tables.CLUSTER_MINUTES)
        self._broker_minutes = TableReader(root, tables.BROKER_MINUTES)
        self._health_events = TableReader(root, tables.HEALTH_EVENTS)
        self._quality = TableReader(root, tables.QUALITY)
        self._burn_causes = TableReader(root, tables.BURN_CAUSES)
        self._actions = TableReader(root, tables.ACTIONS)
        self._corrections = TableReader(root, tables.CORRECTIONS)
        self.recovery = RecoveryTables(root)

    @property
    def readers(self) -> tuple[TableReader, ...]:
        return (
            self._cluster_weeks,
            self._fleet_weeks,
            self._cluster_minutes,
            self._broker_minutes,
            self._health_events,
            self._quality,
            self._burn_causes,
            self._actions,
            self._corrections,
            *self.recovery.readers,
        )

    def missing(self) -> tuple[str, ...]:
        """Tables that every lake with data has, and this one has not: lost, or not made yet."""
        core = (
            self._cluster_weeks,
            self._fleet_weeks,
            self._cluster_minutes,
            self._broker_minutes,
            self._health_events,
        )
        absent = tuple(reader.table.path for reader in core if _is_absent(reader))
        return absent if len(absent) < len(core) else ()

    def versions(self) -> tuple[int | None, ...]:
        """One version a table: as long as it is the same, every answer is."""
        return tuple(reader.version() for reader in self.readers)

    def weeks(self) -> tuple[date, ...]:
        """The first days of all weeks that any cluster or the fleet has, newest first."""
        found = {day for reader in (self._cluster_weeks, self._fleet_weeks) for day in _held(reader, "week")}
        return tuple(sorted(found, reverse=True))

    def clusters(self) -> tuple[str, ...]:
        """The ids of all that have a week."""
        return tuple(sorted(_held(self._cluster_weeks, "cluster_id")))

    def cluster_weeks(self, week: date) -> tuple[ClusterWeek, ...]:
        """Every cluster's week, at its highest revision."""
        return self._cluster_weeks_where(("week", week), column("week") == week, ())

    def weeks_of(self, cluster_id: str) -> tuple[ClusterWeek, ...]:
        """One cluster's weeks, each at its highest revision."""
        own = column("cluster_id") == cluster_id
        return self._cluster_weeks_where(("cluster", cluster_id), own, of_cluster(cluster_id))

    def _cluster_weeks_where(
        self, query: tuple[str, object], where: Filter, files: Files
    ) -> tuple[ClusterWeek, ...]:
        reader = self._cluster_weeks

        def ask(delta: DeltaTable) -> tuple[ClusterWeek, ...]:
            found = reader.frame(delta, columns_of(ClusterWeek), where, files).sort_by("revision").to_pylist()
            newest = {(row["cluster_id"], row["week"]): ClusterWeek(**row) for row in found}
            return tuple(newest.values())

        return reader.answer(query, ask, ())

    def latency_history(self, until: date, weeks: int) -> pa.Table:
        """Every cluster's latency_p99_us of so many weeks, at every revision, in no order."""
        reader, names = self._cluster_weeks, ("cluster_id", "week", "revision", "latency_p99_us")
        since = until - timedelta(days=7 * (weeks - 1))
        within = (column("week") >= since) & (column("week") <= until)
        return reader.answer(
            ("history", until, weeks), lambda delta: reader.frame(delta, names, within), reader.empty(names)
        )

    def fleet_weeks(self, segment: str = WHOLE) -> tuple[FleetWeek, ...]:
        """The weeks of every value of a segment, each metric at its highest revision."""
        reader = self._fleet_weeks

        def ask(delta: DeltaTable) -> tuple[FleetWeek, ...]:
            own = column("segment") == segment
            found = reader.frame(delta, columns_of(FleetWeek), own).sort_by("revision").to_pylist()
            newest = {(row["week"], row["metric"], row["segment_value"]): FleetWeek(**row) for row in found}
            return tuple(newest.values())

        return reader.answer(("segment", segment), ask, ())

    def segments(self) -> tuple[str, ...]:
        """By what the fleet is divided: region, tier, a label."""
        return tuple(sorted(_held(self._fleet_weeks, "segment") - {WHOLE}))

    def burn_causes(self, week: date, segment: str = WHOLE, value: str = "") -> list[Row]:
        """What burned a segment's budgets in the week and in the one before."""
        weeks = column("week").isin([week, week - timedelta(days=7)])
        of = (column("segment") == segment) & (column("segment_value") == value)
        return self._burn_causes.rows((week, segment, value), weeks & of)

    def actions(self) -> list[Row]:
        """What was done on purpose, of all clusters, in no order."""
        return self._actions.rows("all")

    def corrections(self) -> list[Row]:
        """What was taken out of the levels, of all clusters, withdrawn ones too, in no order."""
        return self._corrections.rows("all")

    def recent_minutes(self) -> pa.Table:
        """All clusters' minutes of the newest two days: who is measured, and until when."""
        return self._cluster_minutes.newest_days(RECENT, days=1)

    def recency(self) -> Recency:
        """What the newest minutes say of how far the data reaches."""
        recent = self.recent_minutes()
        return self._cluster_minutes.answer("recency", lambda _: recency(recent), NOTHING_MEASURED)

    def burn_minutes(self) -> pa.Table:
        """All clusters' minutes of the newest days, with what their burn rates need."""
        return self._cluster_minutes.newest_days(BURN, BURN_DAYS)

    def minutes_since(self) -> datetime | None:
        """Since when silver holds minutes; older ones have expired, or there were none."""

        def ask(delta: DeltaTable) -> datetime | None:
            first = min((entry["day"] for entry in delta.partitions() if entry["day"]), default=None)
            return None if first is None else datetime.fromisoformat(f"{first}T00:00:00+00:00")

        return self._cluster_minutes.answer("since", ask, None)

    def cluster_minutes(self, cluster_id: str, span: Span) -> pa.Table:
        """One cluster's minutes of the span, in no order."""
        reader = self._cluster_minutes
        return reader.answer(
            (cluster_id, span),
            lambda delta: reader.frame(
                delta, CLUSTER_MINUTE, within(cluster_id, span), files_within(cluster_id, span)
            ),
            reader.empty(CLUSTER_MINUTE),
        )

    def broker_minutes(self, cluster_id: str, leg: Leg, span: Span) -> pa.Table:
        """One leg of every broker of the cluster, in no order."""
        reader = self._broker_minutes
        where = within(cluster_id, span) & (column("leg") == leg.value)
        return reader.answer(
            (cluster_id, leg, span),
            lambda delta: reader.frame(delta, BROKER_MINUTE, where, files_within(cluster_id, span)),
            reader.empty(BROKER_MINUTE),
        )

    def broker_detail(self, cluster_id: str, broker_id: int, span: Span) -> pa.Table:
        """Both legs of one broker, in no order."""
        reader = self._broker_minutes
        where = within(cluster_id, span) & (column("broker_id") == broker_id)
        return reader.answer(
            (cluster_id, broker_id, span),
            lambda delta: reader.frame(delta, BROKER_DETAIL, where, files_within(cluster_id, span)),
            reader.empty(BROKER_DETAIL),
        )

    def health_events(self) -> tuple[HealthEvent, ...]:
        """Every change of state, oldest first, each once. A lake that has lost them does not know of none."""
        if self._health_events.table.path in self.missing():
            raise UnreadableError(self._health_events.table.path, NO_TABLE)
        reader = self._health_events

        def ask(delta: DeltaTable) -> tuple[HealthEvent, ...]:
            found = reader.frame(delta, columns_of(HealthEvent)).sort_by("at").to_pylist()
            return tuple({row["event_id"]: HealthEvent(**row) for row in found}.values())

        return reader.answer("events", ask, ())

    def broken_weeks(self) -> tuple[BrokenWeek, ...]:
        """What holds weeks back now."""
        reader = self._quality

        def ask(delta: DeltaTable) -> tuple[BrokenWeek, ...]:
            if "week" not in {field.name for field in delta.schema().fields}:
                return ()  # of a lake that no pipeline has opened since weeks are judged
            broken = column("week").is_valid() & ~column("success")
            return tuple(
                BrokenWeek(**row) for row in reader.frame(delta, columns_of(BrokenWeek), broken).to_pylist()
            )

        return reader.answer("weeks", ask, ())

    def readable(self) -> tuple[Readable, ...]:
        """What can be read, table by table."""
        missing = self.missing()
        return tuple(
            Readable(reader.table.path, None, NO_TABLE) if reader.table.path in missing else _readable(reader)
            for reader in self.readers
        )


def _held(reader: TableReader, name: str) -> frozenset[Any]:
    """Every value of a column."""
    return reader.answer(
        ("held", name),
        lambda delta: frozenset(reader.frame(delta, (name,))[name].unique().to_pylist()),
        frozenset(),
    )


def _is_absent(reader: TableReader) -> bool:
    try:
        return reader.version() is None
    except UnreadableError:
        return False


def _readable(reader: TableReader) -> Readable:
    try:
        return Readable(reader.table.path, reader.version(), None)
    except UnreadableError as error:
        return Readable(reader.table.path, None, error.reason)


def of_cluster(cluster_id: str) -> Files:
    """Files that may hold anything of it."""
    return [("cluster_id", "=", cluster_id)]


def files_within(cluster_id: str, span: Span) -> Files:
    """Files that may hold a cluster's minutes of the span."""
    first, last = span.start.date(), span.end.date()
    return [("day", ">=", f"{first}"), ("day", "<=", f"{last}"), *of_cluster(cluster_id)]


def within(cluster_id: str, span: Span) -> Filter:
    """A cluster's minutes of the span."""
    days = (column("day") >= span.start.date()) & (column("day") <= span.end.date())
    minutes = (column("minute") >= span.start) & (column("minute") < span.end)
    return days & minutes & (column("cluster_id") == cluster_id)
