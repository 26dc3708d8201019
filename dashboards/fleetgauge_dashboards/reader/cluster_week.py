"""What a lake holds of one cluster's week, from the number down to the probes. Each is asked once."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from fleetgauge_core import tables
from fleetgauge_dashboards.links import MINUTE, Span
from fleetgauge_dashboards.reader.lake import files_within, of_cluster, within
from fleetgauge_dashboards.reader.table import Files, Filter, column, read_once

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class KnownWeek:
    """Rows as the tables have them: the week at each revision, its minutes, what was kept and corrected.

    ``revisions`` ascend and are never none; ``corrections`` are of every scope, withdrawn ones too.
    """

    cluster_id: str
    span: Span
    revisions: Sequence[Row]
    minutes: Sequence[Row]
    evidence: Sequence[Row]
    corrections: Sequence[Row]

    @property
    def newest(self) -> Row:
        return self.revisions[-1]


class ClusterWeekReader:
    """Reads only the days and the cluster that are asked for."""

    def __init__(self, lake: str, cluster_id: str) -> None:
        self._lake = lake
        self._cluster_id = cluster_id
        self._own = column("cluster_id") == cluster_id

    def weeks(self) -> list[Row]:
        """gold/cluster_weeks: every week at every revision."""
        return self._rows(tables.CLUSTER_WEEKS, self._own, of_cluster(self._cluster_id))

    def known(self, week: date, span: Span) -> KnownWeek:
        """All that is held of one of its weeks."""
        revisions = [row for row in self.weeks() if row["week"] == week]
        return KnownWeek(
            self._cluster_id,
            span,
            sorted(revisions, key=lambda row: int(row["revision"])),
            self.minutes(span),
            self.evidence(week),
            self._rows(tables.CORRECTIONS, None),
        )

    def minutes(self, span: Span) -> list[Row]:
        """silver/cluster_minutes, in order; fewer than expected once they expire."""
        where, files = within(self._cluster_id, span), files_within(self._cluster_id, span)
        found = self._rows(tables.CLUSTER_MINUTES, where, files)
        return sorted(found, key=lambda row: row["minute"])

    def broker_minutes(self, span: Span) -> list[Row]:
        """silver/broker_minutes of both legs, in no order."""
        where, files = within(self._cluster_id, span), files_within(self._cluster_id, span)
        return self._rows(tables.BROKER_MINUTES, where, files)

    def evidence(self, week: date) -> list[Row]:
        """gold/evidence: what was kept of the minutes that decided the week when it closed."""
        where = self._own & (column("week") == week)
        return self._rows(tables.EVIDENCE, where, of_cluster(self._cluster_id))

    def records(self, minutes: Iterable[datetime]) -> list[Row]:
        """bronze/probe_minutes of these minutes."""
        asked = sorted(set(minutes))
        if not asked:
            return []
        days = column("day").isin(sorted({minute.date() for minute in asked}))
        span = Span(asked[0], asked[-1] + MINUTE)
        files = files_within(self._cluster_id, span)
        return self._rows(tables.PROBE_MINUTES, days & column("minute").isin(asked) & self._own, files)

    def _rows(self, table: tables.Table, where: Filter, files: Files = ()) -> list[Row]:
        rows: list[Row] = read_once(self._lake, table, where, files=files).to_pylist()
        return rows
