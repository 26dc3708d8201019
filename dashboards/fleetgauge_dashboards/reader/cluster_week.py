"""What a lake holds of one cluster's week, from the number down to the probes. Each is asked once."""

from collections.abc import Iterable
from datetime import date, datetime
from typing import Any

from fleetgauge_dashboards.links import Span
from fleetgauge_dashboards.reader.lake import within
from fleetgauge_dashboards.reader.table import Filter, column, read_once
from fleetgauge_pipelines import tables

Row = dict[str, Any]


class ClusterWeekReader:
    """Reads only the days and the cluster that are asked for."""

    def __init__(self, lake: str, cluster_id: str) -> None:
        self._lake = lake
        self._cluster_id = cluster_id
        self._own = column("cluster_id") == cluster_id

    def weeks(self) -> list[Row]:
        """gold/cluster_weeks: every week at every revision."""
        return self._rows(tables.CLUSTER_WEEKS, self._own)

    def minutes(self, span: Span) -> list[Row]:
        """silver/cluster_minutes, in order; fewer than expected once they expire."""
        found = self._rows(tables.CLUSTER_MINUTES, within(self._cluster_id, span))
        return sorted(found, key=lambda row: row["minute"])

    def evidence(self, week: date) -> list[Row]:
        """gold/evidence: what was kept of the minutes that decided the week when it closed."""
        return self._rows(tables.EVIDENCE, self._own & (column("week") == week))

    def records(self, minutes: Iterable[datetime]) -> list[Row]:
        """bronze/probe_minutes of these minutes."""
        asked = sorted(set(minutes))
        if not asked:
            return []
        days = column("day").isin(sorted({minute.date() for minute in asked}))
        return self._rows(tables.PROBE_MINUTES, days & column("minute").isin(asked) & self._own)

    def corrections(self) -> list[Row]:
        """ops/corrections: of every scope, withdrawn ones too."""
        return self._rows(tables.CORRECTIONS, None)

    def _rows(self, table: tables.Table, where: Filter) -> list[Row]:
        rows: list[Row] = read_once(self._lake, table, where).to_pylist()
        return rows
