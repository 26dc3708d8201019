"""Read what a lake holds about mirrors, consumer groups, producers and drills."""

import pyarrow as pa
from deltalake import DeltaTable

from fleetgauge_core import tables
from fleetgauge_dashboards.reader.table import Row, TableReader, column

MIRROR_MINUTE_COLUMNS = (
    "source",
    "destination",
    "minute",
    "partitions",
    "behind_at_most",
    "behind_s_at_most",
    "behind",
    "behind_s",
    "silent_s",
    "fresh",
    "tracer_p99_ms",
    "looped",
    "source_answers",
    "destination_answers",
)
#: The columns of a mirror's replication lag over many minutes.
RPO_MINUTE_COLUMNS = ("source", "destination", "minute", "behind_s_at_most", "behind_s")
GROUP_MINUTE_COLUMNS = (
    "active",
    "passive",
    "group_id",
    "minute",
    "ready",
    "reasons",
    "unbounded",
    "replay",
    "replay_at_most",
    "lost_at_most",
    "lost_s_at_most",
    "rto_ms",
)
PRODUCER_MINUTE_COLUMNS = (
    "vantage",
    "cluster_id",
    "minute",
    "sent",
    "acknowledged",
    "ack_p99_ms",
    "records_per_s",
    "capacity_records_per_s",
)
#: The newest rows of recovery/drills that are read; each row is one group of a drill.
MAX_DRILL_ROWS = 2_000


class RecoveryReader:
    """A reader of one lake's recovery tables that caches each answer until its table changes."""

    def __init__(self, root: str) -> None:
        self._mirrors = TableReader(root, tables.MIRROR_MINUTES)
        self._groups = TableReader(root, tables.GROUP_MINUTES)
        self._producers = TableReader(root, tables.PRODUCER_MINUTES)
        self._findings = TableReader(root, tables.RECOVERY_FINDINGS)
        self._weeks = TableReader(root, tables.RECOVERY_WEEKS)
        self._drills = TableReader(root, tables.DRILLS)

    @property
    def readers(self) -> tuple[TableReader, ...]:
        """Return the reader of every table."""
        return (self._mirrors, self._groups, self._producers, self._findings, self._weeks, self._drills)

    @property
    def has_rows(self) -> bool:
        """Return whether there is any minute or drill; empty tables exist even where recovery is not used."""
        minutes = (self.mirror_minutes(), self.group_minutes(), self.producer_minutes())
        return any(map(len, (*minutes, self.drills())))

    def mirror_minutes(self) -> pa.Table:
        """Return all mirrors' minutes of the newest two days, in no order."""
        return self._mirrors.read_newest_days(MIRROR_MINUTE_COLUMNS, days=1)

    def rpo_minutes(self, days: int) -> pa.Table:
        """Return all mirrors' replication lag from ``days`` days before the newest day on, in no order."""
        return self._mirrors.read_newest_days(RPO_MINUTE_COLUMNS, days)

    def group_minutes(self) -> pa.Table:
        """Return all consumer groups' minutes of the newest two days, in no order."""
        return self._groups.read_newest_days(GROUP_MINUTE_COLUMNS, days=1)

    def producer_minutes(self) -> pa.Table:
        """Return all vantages' producer minutes of the newest two days, in no order."""
        return self._producers.read_newest_days(PRODUCER_MINUTE_COLUMNS, days=1)

    def findings(self) -> list[Row]:
        """Return every opening and closing of a recovery finding, in no order."""
        return self._findings.read_rows("all")

    def weeks(self) -> list[Row]:
        """Return the rows of the newest closed week and of the newest open week."""
        reader = self._weeks

        def read(delta: DeltaTable) -> list[Row]:
            states = reader.read_columns(delta, ("week", "closed")).group_by(["week", "closed"]).aggregate([])
            newest = {bool(row["closed"]): row["week"] for row in states.sort_by("week").to_pylist()}
            weeks = reader.read_columns(
                delta, reader.table.column_names, column("week").isin(sorted(newest.values()))
            )
            rows: list[Row] = weeks.to_pylist()
            return rows

        return reader.read_cached("newest", read, [])

    def drills(self) -> list[Row]:
        """Return the newest rows of recovery/drills, newest first; each is one group of a drill."""
        reader = self._drills

        def read(delta: DeltaTable) -> list[Row]:
            drills = reader.read_columns(delta, reader.table.column_names)
            rows: list[Row] = (
                drills.sort_by([("at", "descending"), ("group_id", "ascending")])
                .slice(0, MAX_DRILL_ROWS)
                .to_pylist()
            )
            return rows

        return reader.read_cached("newest", read, [])
