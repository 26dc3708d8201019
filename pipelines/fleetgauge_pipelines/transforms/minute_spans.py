"""Spans of minutes of clusters, and the rows of tables in them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fleetgauge_pipelines.transforms.lists import Flags, Ints
from fleetgauge_pipelines.transforms.records import to_minute, to_minutes, to_times

_EPOCH, _MINUTES_A_DAY = date(1970, 1, 1), 24 * 60


@dataclass(frozen=True, slots=True)
class MinuteSpans:
    """The first and the last minute, both included and counted from 1970, of each of some clusters.

    There is at least one cluster, and one span of each.
    """

    clusters: Sequence[str]
    firsts: Ints
    lasts: Ints

    @classmethod
    def of(cls, spans: Mapping[str, tuple[datetime, datetime]]) -> "MinuteSpans":
        """Return spans between whole minutes."""
        bounds = np.array([(to_minute(first), to_minute(last)) for first, last in spans.values()], np.int64)
        return cls(list(spans), bounds[:, 0], bounds[:, 1])

    @property
    def days(self) -> list[date]:
        """The UTC days of the spans, by which tables are partitioned."""
        days = {
            day
            for first, last in set(zip(self.firsts.tolist(), self.lasts.tolist(), strict=True))
            for day in range(first // _MINUTES_A_DAY, last // _MINUTES_A_DAY + 1)
        }
        return [_EPOCH + timedelta(days=day) for day in sorted(days)]

    @property
    def where(self) -> pc.Expression:
        """A condition that the rows in the spans meet, and some others.

        It has ranges alone: of most files Arrow then knows that all their rows meet it, and copies none.
        """
        lo, end = to_times(np.array([self.firsts.min(), self.lasts.max() + 1]))
        of_clusters = (pc.field("cluster_id") >= min(self.clusters)) & (
            pc.field("cluster_id") <= max(self.clusters)
        )
        return of_clusters & (pc.field("minute") >= lo) & (pc.field("minute") < end)

    def select(self, rows: pa.Table) -> pa.Table:
        """Return the rows in the spans; they have cluster_id and minute."""
        wanted = self.contain(rows)
        return rows if wanted.all() else rows.filter(pa.array(wanted))

    def contain(self, rows: pa.Table) -> Flags:
        """Return which rows are in the spans."""
        number = pc.index_in(rows["cluster_id"], pa.array(self.clusters, pa.string())).fill_null(-1)
        of_span, minutes = np.asarray(number, np.int64), to_minutes(rows["minute"])
        within: Flags = (minutes >= self.firsts[of_span]) & (minutes <= self.lasts[of_span])
        return within & (of_span >= 0)
