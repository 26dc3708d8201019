"""Table maintenance: compact small files, expire old days, and vacuum unreferenced files."""

from collections.abc import Mapping
from datetime import date, datetime, timedelta

from fleetgauge_core.slo.retention import last_closed_day
from fleetgauge_core.tables import PIPELINE_TABLES, PROBE_MINUTES, Table
from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.jobs.progress import ReportProgress

#: A stream whose newest minute is younger than this is not behind, and has time for maintenance.
_MAX_STREAM_DELAY = timedelta(minutes=5)
#: Compacting so few files would not make reading faster.
_MIN_FILES = 8

#: A table, and one of its days if it is partitioned by day.
TablePart = tuple[Table, date | None]


class DailyCompaction:
    """Compacts the files of the day that closed last, once a day and one table at a time, between batches."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._done: dict[Table, date] = {}

    def compact_next_table(self, newest: datetime | None, clock: datetime) -> TablePart | None:
        """Compact at most one table, and none while the stream is behind; return what was compacted.

        ``newest`` is the last minute of the batch, None for a batch without a valid record.
        """
        if newest is None or clock - newest > _MAX_STREAM_DELAY:
            return None
        day = last_closed_day(clock)
        table = next((table for table in PIPELINE_TABLES if self._done.get(table) != day), None)
        if table is None:
            return None
        self._done[table] = day
        part_day = day if table.partition_by else None
        if self._lake.count_files(table, part_day) <= _MIN_FILES:
            return None
        self._lake.compact(table, part_day)
        return table, part_day


def compact_tables(lake: Lake, parts: Mapping[Table, list[date | None]], advance: ReportProgress) -> None:
    """Compact days of tables, each in a separate commit; then vacuum the tables."""
    for table, days in parts.items():
        for done, day in enumerate(days, 1):
            lake.compact(table, day)
            advance(table.path, done, len(days))
    _vacuum(lake, list(parts), advance)


def expire_days(lake: Lake, first_kept: Mapping[Table, date], advance: ReportProgress) -> None:
    """Delete whole days before each table's first kept day; then vacuum the tables."""
    # Bronze first: once its days are marked as expired, no record can arrive that would need the minutes that
    # silver is about to lose.
    for table in sorted(first_kept, key=lambda table: table is not PROBE_MINUTES):
        lake.expire(table, first_kept[table])
    _vacuum(lake, list(first_kept), advance)


def _vacuum(lake: Lake, tables: list[Table], advance: ReportProgress) -> None:
    for done, table in enumerate(tables, 1):
        lake.vacuum(table)
        advance("unreferenced files", done, len(tables))
