"""What keeps a lake small and quick: small files put together, and old days removed."""

from collections.abc import Mapping
from datetime import date, datetime, timedelta

from fleetgauge_core.slo.retention import last_closed_day
from fleetgauge_core.tables import OF_THE_PIPELINE, PROBE_MINUTES, Table
from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.jobs.progress import Advance

#: A pipeline whose newest minute is younger has time for more than its records.
_ABREAST = timedelta(minutes=5)
#: Fewer files than these are no burden to a reader.
_HANDFUL = 8

#: A table, and one of its days if it has days.
Portion = tuple[Table, date | None]


class Tidying:
    """Between batches: puts the files of the day that closed last together, once, a table at a time."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._done: dict[Table, date] = {}

    def step(self, newest: datetime | None, clock: datetime) -> Portion | None:
        """At most one table, and none while behind; ``newest`` is the batch's last minute."""
        if newest is None or clock - newest > _ABREAST:
            return None
        day = last_closed_day(clock)
        table = next((one for one in OF_THE_PIPELINE if self._done.get(one) != day), None)
        if table is None:
            return None
        self._done[table] = day
        portion = day if table.partition_by else None
        if self._lake.count_files(table, portion) <= _HANDFUL:
            return None
        self._lake.compact(table, portion)
        return table, portion


def compact(lake: Lake, portions: Mapping[Table, list[date | None]], advance: Advance) -> None:
    """Portion by portion, each a commit of its own; then remove what no version within retention needs."""
    for table, days in portions.items():
        for done, day in enumerate(days, 1):
            lake.compact(table, day)
            advance(table.path, done, len(days))
    _vacuum(lake, list(portions), advance)


def expire(lake: Lake, first_kept: Mapping[Table, date], advance: Advance) -> None:
    """Remove whole days before each table's first kept one; then the files that held them."""
    # Bronze first: from then on no record comes in that would need what silver is about to lose.
    for table in sorted(first_kept, key=lambda one: one is not PROBE_MINUTES):
        lake.expire(table, first_kept[table])
    _vacuum(lake, list(first_kept), advance)


def _vacuum(lake: Lake, tables: list[Table], advance: Advance) -> None:
    for done, table in enumerate(tables, 1):
        lake.vacuum(table)
        advance("files out of use", done, len(tables))
