"""Answer the questions that the pages ask of a lake's tables."""

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from fleetgauge_core import tables
from fleetgauge_core.contract import HealthEvent, Leg
from fleetgauge_core.slo.change_causes import CAUSE_CHANGE_KINDS
from fleetgauge_dashboards.links import (
    Span,
)
from fleetgauge_dashboards.reader.recency import NOTHING_MEASURED, Recency, compute_recency
from fleetgauge_dashboards.reader.recovery import RecoveryReader
from fleetgauge_dashboards.reader.rows import (
    ClusterWeek,
    FailedWeekCheck,
    FleetWeek,
    column_names,
)
from fleetgauge_dashboards.reader.table import (
    FilePredicates,
    Row,
    RowFilter,
    TableReader,
    UnreadableError,
    column,
)

RECENT_COLUMNS = ("cluster_id", "minute", "brokers_expected", "brokers_measured", "latency_p99_censored_us")
#: The columns that burn rates are computed from, and the days that their longest window spans.
BURN_COLUMNS = (*RECENT_COLUMNS, "attempted", "succeeded")
BURN_DAYS = 4
CLUSTER_MINUTE_COLUMNS = (
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
BROKER_DETAIL_COLUMNS = (
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
BROKER_MINUTE_COLUMNS = ("broker_id", "minute", "measured", "latency_p99_us", "latency_p99_censored_us")

TABLE_MISSING = "the table does not exist"

#: The segment name that stands for the whole fleet.
WHOLE_FLEET = "fleet"


@dataclass(frozen=True, slots=True)
class TableStatus:
    """Whether a table can be read: its version, or the error; both are None while it does not exist yet."""

    path: str
    version: int | None
    error: str | None


class LakeReader:
    """A reader of a lake's tables that caches each answer until the version of its table changes."""

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
        self._changes = TableReader(root, tables.CHANGES)
        self.recovery = RecoveryReader(root)

    @property
    def readers(self) -> tuple[TableReader, ...]:
        """Return the reader of every table."""
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
            self._changes,
            *self.recovery.readers,
        )

    def missing_tables(self) -> tuple[str, ...]:
        """Return the paths of tables that a lake with data always has and that this lake lacks.

        Empty while none of them exists, because then the lake is new.
        """
        always_written = (
            self._cluster_weeks,
            self._fleet_weeks,
            self._cluster_minutes,
            self._broker_minutes,
            self._health_events,
        )
        missing = tuple(reader.table.path for reader in always_written if _is_absent(reader))
        return missing if len(missing) < len(always_written) else ()

    def versions(self) -> tuple[int | None, ...]:
        """Return the version of each table; while they are equal, every answer is."""
        return tuple(reader.version() for reader in self.readers)

    def weeks(self) -> tuple[date, ...]:
        """Return the first days of all weeks of any cluster or of the fleet, newest first."""
        weeks = {
            week
            for reader in (self._cluster_weeks, self._fleet_weeks)
            for week in _distinct_values(reader, "week")
        }
        return tuple(sorted(weeks, reverse=True))

    def clusters(self) -> tuple[str, ...]:
        """Return the ids of all clusters that have a week, sorted."""
        return tuple(sorted(_distinct_values(self._cluster_weeks, "cluster_id")))

    def cluster_weeks(self, week: date) -> tuple[ClusterWeek, ...]:
        """Return the week of every cluster, at its highest revision."""
        return self._newest_cluster_weeks(("week", week), column("week") == week, ())

    def weeks_of_cluster(self, cluster_id: str) -> tuple[ClusterWeek, ...]:
        """Return all weeks of one cluster, each at its highest revision."""
        of_cluster = column("cluster_id") == cluster_id
        return self._newest_cluster_weeks(("cluster", cluster_id), of_cluster, cluster_files(cluster_id))

    def _newest_cluster_weeks(
        self, query: tuple[str, object], where: RowFilter, files: FilePredicates
    ) -> tuple[ClusterWeek, ...]:
        reader = self._cluster_weeks

        def read(delta: DeltaTable) -> tuple[ClusterWeek, ...]:
            rows = (
                reader.read_columns(delta, column_names(ClusterWeek), where, files)
                .sort_by("revision")
                .to_pylist()
            )
            newest = {(row["cluster_id"], row["week"]): ClusterWeek(**row) for row in rows}
            return tuple(newest.values())

        return reader.read_cached(query, read, ())

    def latency_history(self, until: date, weeks: int) -> pa.Table:
        """Return every cluster's latency_p99_us of the ``weeks`` weeks up to ``until``.

        Rows are of every revision, in no order.
        """
        reader, columns = self._cluster_weeks, ("cluster_id", "week", "revision", "latency_p99_us")
        since = until - timedelta(days=7 * (weeks - 1))
        in_weeks = (column("week") >= since) & (column("week") <= until)
        return reader.read_cached(
            ("history", until, weeks),
            lambda delta: reader.read_columns(delta, columns, in_weeks),
            reader.empty_table(columns),
        )

    def fleet_weeks(self, segment: str = WHOLE_FLEET) -> tuple[FleetWeek, ...]:
        """Return the weeks of every value of a segment, each metric at its highest revision."""
        reader = self._fleet_weeks

        def read(delta: DeltaTable) -> tuple[FleetWeek, ...]:
            in_segment = column("segment") == segment
            rows = (
                reader.read_columns(delta, column_names(FleetWeek), in_segment)
                .sort_by("revision")
                .to_pylist()
            )
            newest = {(row["week"], row["metric"], row["segment_value"]): FleetWeek(**row) for row in rows}
            return tuple(newest.values())

        return reader.read_cached(("segment", segment), read, ())

    def segments(self) -> tuple[str, ...]:
        """Return the names of the segments that divide the fleet, such as region, tier or a label."""
        return tuple(sorted(_distinct_values(self._fleet_weeks, "segment") - {WHOLE_FLEET}))

    def burn_causes(self, week: date, segment: str = WHOLE_FLEET, value: str = "") -> list[Row]:
        """Return the rows of gold/burn_causes of a segment's value, of the week and of the week before."""
        weeks = column("week").isin([week, week - timedelta(days=7)])
        in_segment = (column("segment") == segment) & (column("segment_value") == value)
        return self._burn_causes.read_rows((week, segment, value), weeks & in_segment)

    def actions(self) -> list[Row]:
        """Return the rows of ops/actions of all clusters, in no order."""
        return self._actions.read_rows("all")

    def corrections(self) -> list[Row]:
        """Return the rows of ops/corrections of all clusters, withdrawn ones included, in no order."""
        return self._corrections.read_rows("all")

    def changes(self) -> list[Row]:
        """Return the rows of ops/changes of all clusters that may explain minutes, in no order."""
        return self._changes.read_rows("causes", column("kind").isin(sorted(CAUSE_CHANGE_KINDS)))

    def recent_minutes(self) -> pa.Table:
        """Return all clusters' minutes of the newest two days, with the columns of coverage and latency."""
        return self._cluster_minutes.read_newest_days(RECENT_COLUMNS, days=1)

    def recency(self) -> Recency:
        """Return how far the newest minutes reach and how many broker-minutes were measured."""
        recent = self.recent_minutes()
        return self._cluster_minutes.read_cached(
            "recency", lambda _: compute_recency(recent), NOTHING_MEASURED
        )

    def burn_minutes(self) -> pa.Table:
        """Return all clusters' minutes of the newest days, with the columns that burn rates need."""
        return self._cluster_minutes.read_newest_days(BURN_COLUMNS, BURN_DAYS)

    def first_minute(self) -> datetime | None:
        """Return the start of the first day that silver still holds; None while it holds none."""

        def read(delta: DeltaTable) -> datetime | None:
            first = min((entry["day"] for entry in delta.partitions() if entry["day"]), default=None)
            return None if first is None else datetime.fromisoformat(f"{first}T00:00:00+00:00")

        return self._cluster_minutes.read_cached("since", read, None)

    def cluster_minutes(self, cluster_id: str, span: Span) -> pa.Table:
        """Return one cluster's minutes in the span, in no order."""
        reader = self._cluster_minutes
        return reader.read_cached(
            (cluster_id, span),
            lambda delta: reader.read_columns(
                delta, CLUSTER_MINUTE_COLUMNS, minute_filter(cluster_id, span), minute_files(cluster_id, span)
            ),
            reader.empty_table(CLUSTER_MINUTE_COLUMNS),
        )

    def broker_minutes(self, cluster_id: str, leg: Leg, span: Span) -> pa.Table:
        """Return one leg of every broker of the cluster, in no order."""
        reader = self._broker_minutes
        where = minute_filter(cluster_id, span) & (column("leg") == leg.value)
        return reader.read_cached(
            (cluster_id, leg, span),
            lambda delta: reader.read_columns(
                delta, BROKER_MINUTE_COLUMNS, where, minute_files(cluster_id, span)
            ),
            reader.empty_table(BROKER_MINUTE_COLUMNS),
        )

    def broker_detail(self, cluster_id: str, broker_id: int, span: Span) -> pa.Table:
        """Return both legs of one broker, in no order."""
        reader = self._broker_minutes
        where = minute_filter(cluster_id, span) & (column("broker_id") == broker_id)
        return reader.read_cached(
            (cluster_id, broker_id, span),
            lambda delta: reader.read_columns(
                delta, BROKER_DETAIL_COLUMNS, where, minute_files(cluster_id, span)
            ),
            reader.empty_table(BROKER_DETAIL_COLUMNS),
        )

    def health_events(self) -> tuple[HealthEvent, ...]:
        """Return every state change once, oldest first.

        Raises: UnreadableError when other tables exist and this one does not, so that a lost table does not
        look like a healthy fleet.
        """
        if self._health_events.table.path in self.missing_tables():
            raise UnreadableError(self._health_events.table.path, TABLE_MISSING)
        reader = self._health_events

        def read(delta: DeltaTable) -> tuple[HealthEvent, ...]:
            rows = reader.read_columns(delta, column_names(HealthEvent)).sort_by("at").to_pylist()
            return tuple({row["event_id"]: HealthEvent(**row) for row in rows}.values())

        return reader.read_cached("events", read, ())

    def failed_week_checks(self) -> tuple[FailedWeekCheck, ...]:
        """Return the failed checks for which weeks are held back now."""
        reader = self._quality

        def read(delta: DeltaTable) -> tuple[FailedWeekCheck, ...]:
            if "week" not in {field.name for field in delta.schema().fields}:
                return ()  # The table was written before weekly checks were recorded.
            failed = column("week").is_valid() & ~column("success")
            return tuple(
                FailedWeekCheck(**row)
                for row in reader.read_columns(delta, column_names(FailedWeekCheck), failed).to_pylist()
            )

        return reader.read_cached("weeks", read, ())

    def table_statuses(self) -> tuple[TableStatus, ...]:
        """Return for every table whether it can be read."""
        missing = self.missing_tables()
        return tuple(
            TableStatus(reader.table.path, None, TABLE_MISSING)
            if reader.table.path in missing
            else _table_status(reader)
            for reader in self.readers
        )


def _distinct_values(reader: TableReader, name: str) -> frozenset[Any]:
    """Return every value of a column."""
    return reader.read_cached(
        ("held", name),
        lambda delta: frozenset(reader.read_columns(delta, (name,))[name].unique().to_pylist()),
        frozenset(),
    )


def _is_absent(reader: TableReader) -> bool:
    try:
        return reader.version() is None
    except UnreadableError:
        return False


def _table_status(reader: TableReader) -> TableStatus:
    try:
        return TableStatus(reader.table.path, reader.version(), None)
    except UnreadableError as error:
        return TableStatus(reader.table.path, None, error.reason)


def cluster_files(cluster_id: str) -> FilePredicates:
    """Return the predicates that select files with rows of the cluster."""
    return [("cluster_id", "=", cluster_id)]


def minute_files(cluster_id: str, span: Span) -> FilePredicates:
    """Return the predicates that select files with minutes of the cluster in the span."""
    first, last = span.start.date(), span.end.date()
    return [("day", ">=", f"{first}"), ("day", "<=", f"{last}"), *cluster_files(cluster_id)]


def minute_filter(cluster_id: str, span: Span) -> RowFilter:
    """Return the filter that keeps the cluster's minutes in the span."""
    days = (column("day") >= span.start.date()) & (column("day") <= span.end.date())
    minutes = (column("minute") >= span.start) & (column("minute") < span.end)
    return days & minutes & (column("cluster_id") == cluster_id)
