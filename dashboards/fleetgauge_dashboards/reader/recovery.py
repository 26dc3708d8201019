"""What a lake holds of mirrors, groups, producers and drills: whether another region could take over."""

import pyarrow as pa
from deltalake import DeltaTable

from fleetgauge_core import tables
from fleetgauge_dashboards.reader.table import Row, TableReader, column

MIRROR_MINUTE = (
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
#: How far a mirror was behind, over many minutes.
RPO_MINUTE = ("source", "destination", "minute", "behind_s_at_most", "behind_s")
GROUP_MINUTE = (
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
PRODUCER_MINUTE = (
    "vantage",
    "cluster_id",
    "minute",
    "sent",
    "acknowledged",
    "ack_p99_ms",
    "records_per_s",
    "capacity_records_per_s",
)
#: The newest rows of drills; a row a group.
DRILLS_READ = 2_000


class RecoveryTables:
    """Of one lake; each question is asked once per version of its table."""

    def __init__(self, root: str) -> None:
        self._mirrors = TableReader(root, tables.MIRROR_MINUTES)
        self._groups = TableReader(root, tables.GROUP_MINUTES)
        self._producers = TableReader(root, tables.PRODUCER_MINUTES)
        self._findings = TableReader(root, tables.RECOVERY_FINDINGS)
        self._weeks = TableReader(root, tables.RECOVERY_WEEKS)
        self._drills = TableReader(root, tables.DRILLS)

    @property
    def readers(self) -> tuple[TableReader, ...]:
        return (self._mirrors, self._groups, self._producers, self._findings, self._weeks, self._drills)

    @property
    def is_told_of(self) -> bool:
        """Whether there is any minute, or a drill: a pipeline makes the tables, used or not."""
        minutes = (self.mirror_minutes(), self.group_minutes(), self.producer_minutes())
        return any(map(len, (*minutes, self.drills())))

    def mirror_minutes(self) -> pa.Table:
        """All mirrors' minutes of the newest two days, in no order."""
        return self._mirrors.newest_days(MIRROR_MINUTE, days=1)

    def rpo_minutes(self, days: int) -> pa.Table:
        """How far all mirrors were behind, from so many days before the newest on; in no order."""
        return self._mirrors.newest_days(RPO_MINUTE, days)

    def group_minutes(self) -> pa.Table:
        """All groups' minutes of the newest two days, in no order."""
        return self._groups.newest_days(GROUP_MINUTE, days=1)

    def producer_minutes(self) -> pa.Table:
        """All vantages' minutes of the newest two days, in no order."""
        return self._producers.newest_days(PRODUCER_MINUTE, days=1)

    def findings(self) -> list[Row]:
        """Every beginning and end of one, in no order."""
        return self._findings.rows("all")

    def weeks(self) -> list[Row]:
        """Those of the newest week that is closed, and of the newest that is open."""
        reader = self._weeks

        def ask(delta: DeltaTable) -> list[Row]:
            held = reader.frame(delta, ("week", "closed")).group_by(["week", "closed"]).aggregate([])
            newest = {bool(row["closed"]): row["week"] for row in held.sort_by("week").to_pylist()}
            found = reader.frame(delta, reader.table.names, column("week").isin(sorted(newest.values())))
            rows: list[Row] = found.to_pylist()
            return rows

        return reader.answer("newest", ask, [])

    def drills(self) -> list[Row]:
        """The newest, newest first; a row a group."""
        reader = self._drills

        def ask(delta: DeltaTable) -> list[Row]:
            found = reader.frame(delta, reader.table.names)
            rows: list[Row] = (
                found.sort_by([("at", "descending"), ("group_id", "ascending")])
                .slice(0, DRILLS_READ)
                .to_pylist()
            )
            return rows

        return reader.answer("newest", ask, [])
