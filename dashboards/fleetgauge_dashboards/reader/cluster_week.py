"""Read the rows that a lake holds about one cluster's week, from the weekly number down to the probe records.

Nothing is cached: each call reads the table again.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from fleetgauge_core import tables
from fleetgauge_core.contract import Leg
from fleetgauge_dashboards.links import MINUTE, Span
from fleetgauge_dashboards.reader.lake import cluster_files, minute_files, minute_filter
from fleetgauge_dashboards.reader.table import FilePredicates, RowFilter, column, read_once

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ClusterWeekRows:
    """The table rows about one week of a cluster.

    ``revisions`` ascend and are never empty; ``minutes`` are silver's, ``evidence`` the samples kept at
    closing; ``corrections`` have every scope and include withdrawn ones; ``unmeasured_brokers`` have minute
    and failures of silver/broker_minutes that are not measured on the client leg.
    """

    cluster_id: str
    span: Span
    revisions: Sequence[Row]
    minutes: Sequence[Row]
    evidence: Sequence[Row]
    corrections: Sequence[Row]
    unmeasured_brokers: Sequence[Row]

    @property
    def newest_revision(self) -> Row:
        """Return the row of the highest revision."""
        return self.revisions[-1]


class ClusterWeekReader:
    """A reader of one cluster's rows; it opens only the files that can hold them."""

    def __init__(self, lake: str, cluster_id: str) -> None:
        self._lake = lake
        self._cluster_id = cluster_id
        self._of_cluster = column("cluster_id") == cluster_id

    def weeks(self) -> list[Row]:
        """Return the rows of gold/cluster_weeks: every week at every revision."""
        return self._rows(tables.CLUSTER_WEEKS, self._of_cluster, cluster_files(self._cluster_id))

    def read_week(self, week: date, span: Span) -> ClusterWeekRows:
        """Read all rows about one of the cluster's weeks, whose minutes are in ``span``."""
        revisions = [row for row in self.weeks() if row["week"] == week]
        minutes = self.minutes(span)
        gaps = [row["minute"] for row in minutes if row["brokers_measured"] < row["brokers_expected"]]
        return ClusterWeekRows(
            self._cluster_id,
            span,
            sorted(revisions, key=lambda row: int(row["revision"])),
            minutes,
            self.evidence(week),
            self._rows(tables.CORRECTIONS, None),
            self.unmeasured_brokers(Span(gaps[0], gaps[-1] + MINUTE)) if gaps else (),
        )

    def minutes(self, span: Span) -> list[Row]:
        """Return the rows of silver/cluster_minutes in time order; fewer than expected once they expire."""
        where, files = minute_filter(self._cluster_id, span), minute_files(self._cluster_id, span)
        rows = self._rows(tables.CLUSTER_MINUTES, where, files)
        return sorted(rows, key=lambda row: row["minute"])

    def broker_minutes(self, span: Span) -> list[Row]:
        """Return the rows of silver/broker_minutes of both legs, in no order."""
        where, files = minute_filter(self._cluster_id, span), minute_files(self._cluster_id, span)
        return self._rows(tables.BROKER_MINUTES, where, files)

    def unmeasured_brokers(self, span: Span) -> list[Row]:
        """Return minute and failures of silver/broker_minutes not measured on the client leg, in no order.

        Of brokers with the same codes in a minute there is one row: a week of them may be a million rows.
        """
        is_unmeasured = (column("leg") == Leg.CLIENT.value) & ~column("measured")
        where, files = minute_filter(self._cluster_id, span), minute_files(self._cluster_id, span)
        read = read_once(
            self._lake, tables.BROKER_MINUTES, where & is_unmeasured, ("minute", "failures"), files
        )
        rows = (row for batch in read.to_batches() for row in batch.to_pylist())
        return list({(row["minute"], tuple(dict(row["failures"] or ()))): row for row in rows}.values())

    def evidence(self, week: date) -> list[Row]:
        """Return the rows of gold/evidence: samples of the minutes that decided the week when it closed."""
        where = self._of_cluster & (column("week") == week)
        return self._rows(tables.EVIDENCE, where, cluster_files(self._cluster_id))

    def records(self, minutes: Iterable[datetime]) -> list[Row]:
        """Return the records of bronze/probe_minutes of the given minutes."""
        wanted = sorted(set(minutes))
        if not wanted:
            return []
        days = column("day").isin(sorted({minute.date() for minute in wanted}))
        span = Span(wanted[0], wanted[-1] + MINUTE)
        files = minute_files(self._cluster_id, span)
        return self._rows(
            tables.PROBE_MINUTES, days & column("minute").isin(wanted) & self._of_cluster, files
        )

    def _rows(self, table: tables.Table, where: RowFilter, files: FilePredicates = ()) -> list[Row]:
        rows: list[Row] = read_once(self._lake, table, where, files=files).to_pylist()
        return rows
