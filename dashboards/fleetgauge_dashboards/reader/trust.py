"""What a lake holds about its own trustworthiness. Each is asked once."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import pyarrow as pa

from fleetgauge_core import tables
from fleetgauge_dashboards.reader.lake import Lake
from fleetgauge_dashboards.reader.table import Files, Filter, column, read_once

#: How far back gates and quarantine are looked at.
LOOK_BACK = timedelta(days=14)
#: Minutes whose way into the lake is measured.
ON_THE_WAY = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Trust:
    """Frames as the tables have them; ``arrived`` are the newest records' minute and ingested_at."""

    checks: pa.Table
    refused: pa.Table
    arrived: pa.Table
    revised: pa.Table


class TrustReader:
    """Of one lake."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake

    def trust(self, now: datetime, until: datetime | None) -> Trust:
        """At ``now``, of a lake whose newest minute ends at ``until``."""
        since = now - LOOK_BACK
        recent = column("at") >= since
        return Trust(
            checks=self._frame(
                tables.QUALITY, recent, ("at", "batch", "suite", "expectation", "success", "observed")
            ),
            refused=self._frame(tables.QUARANTINE, column("ingested_at") >= since, ("reason", "ingested_at")),
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
        since = until - ON_THE_WAY
        days = (column("day") >= since.date()) & (column("day") <= until.date())
        files = [("day", ">=", f"{since.date()}"), ("day", "<=", f"{until.date()}")]
        return self._frame(tables.PROBE_MINUTES, days & (column("minute") >= since), names, files)

    def _frame(self, table: tables.Table, where: Filter, names: Sequence[str], files: Files = ()) -> pa.Table:
        return read_once(self._lake.root, table, where, tuple(names), files)
