"""Read what a lake holds about the quality of its data. Nothing is cached."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import pyarrow as pa

from fleetgauge_core import tables
from fleetgauge_dashboards.reader.lake import LakeReader
from fleetgauge_dashboards.reader.table import FilePredicates, RowFilter, column, read_once

#: How far back checks and quarantined records are read.
LOOK_BACK = timedelta(days=14)
#: The newest minutes whose time until ingestion is measured.
LATENESS_WINDOW = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class QualityRows:
    """The tables behind the data quality page.

    ``checks`` are expectations checked, ``quarantined`` records refused; ``arrived`` has minute and
    ingested_at of the newest records; ``revised`` are cluster-weeks with a second revision or more.
    """

    checks: pa.Table
    quarantined: pa.Table
    arrived: pa.Table
    revised: pa.Table


class QualityReader:
    """A reader of one lake's data quality."""

    def __init__(self, lake: LakeReader) -> None:
        self._lake = lake

    def read(self, now: datetime, until: datetime | None) -> QualityRows:
        """Read the rows as of ``now``; ``until`` is the end of the lake's newest minute, None without
        minutes.
        """
        since = now - LOOK_BACK
        recent = column("at") >= since
        return QualityRows(
            checks=self._frame(
                tables.QUALITY, recent, ("at", "batch", "suite", "expectation", "success", "observed")
            ),
            quarantined=self._frame(
                tables.QUARANTINE, column("ingested_at") >= since, ("reason", "ingested_at")
            ),
            arrived=self._arrived(until),
            revised=self._frame(
                tables.CLUSTER_WEEKS,
                column("revision") > 1,
                ("cluster_id", "week", "revision", "revision_reason", "computed_at"),
            ),
        )

    def _arrived(self, until: datetime | None) -> pa.Table:
        names = ("minute", "ingested_at")
        if until is None:
            return self._frame(tables.PROBE_MINUTES, column("minute").is_null(), names)
        since = until - LATENESS_WINDOW
        days = (column("day") >= since.date()) & (column("day") <= until.date())
        files = [("day", ">=", f"{since.date()}"), ("day", "<=", f"{until.date()}")]
        return self._frame(tables.PROBE_MINUTES, days & (column("minute") >= since), names, files)

    def _frame(
        self, table: tables.Table, where: RowFilter, names: Sequence[str], files: FilePredicates = ()
    ) -> pa.Table:
        return read_once(self._lake.root, table, where, tuple(names), files)
