"""Which minutes silver holds of each cluster, and so which minutes a batch has to compute."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from itertools import chain, zip_longest
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fleetgauge_core.fleet import Cluster, Fleet
from fleetgauge_core.slo.minute_range import (
    ClusterMinuteBounds,
    MinuteRange,
    ceil_to_minute,
    find_affected_range,
)
from fleetgauge_core.tables import BROKER_MINUTES, CLUSTER_MINUTES, PROBE_MINUTES, Table
from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.io.table_files import TableFiles
from fleetgauge_pipelines.transforms.grouping import Grouping
from fleetgauge_pipelines.transforms.minute_spans import MinuteSpans
from fleetgauge_pipelines.transforms.record_summaries import (
    SUMMARY_COLUMNS,
    RecordSummary,
    merge_summaries,
    summarize_records,
)
from fleetgauge_pipelines.transforms.records import to_minute, to_time
from fleetgauge_pipelines.transforms.silver import ObservedMinutes

_MINUTE = timedelta(minutes=1)

#: Late records change all minutes up to the next minute with a record. If there is none within this time,
#: everything up to the watermark is computed again.
_NEXT_RECORD_WITHIN = timedelta(hours=1)


#: Two records so near in time show that a cluster was measured then. One that comes later than this is late.
_NEAR_RECORD_WITHIN = timedelta(hours=1)

_MINUTES = ("cluster_id", "minute")
_FIRST = Grouping(("cluster_id",), (("minute", "min"),))
_WRITTEN = Grouping(("cluster_id",), (("minute", "max"), ("recorded", "min")))
_FIRST_AND_LAST = Grouping(("cluster_id",), (("minute", "min"), ("minute", "max")))
_FIRST_AND_COUNT = Grouping(("cluster_id",), (("minute", "min"), ("minute", "count")))
#: No record of bronze lacks a minute or the time at which it was ingested: their counts are those of records.
_RECORDS_OF_MINUTE = Grouping(_MINUTES, (("ingested_at", "min"), ("ingested_at", "count")))
_BROKERS = Grouping(("cluster_id", "broker_id"))


class SilverBounds:
    """The first and last minute of each cluster in silver, read once and updated as silver is written."""

    def __init__(self, lake: Lake, fleet: Fleet) -> None:
        self._lake = lake
        self._clusters = {cluster.id: cluster for cluster in fleet.clusters}
        self._bounds: dict[str, ClusterMinuteBounds] = {}
        #: The last minute that either silver table holds: a batch that failed may have written only one.
        self._written: dict[str, datetime] = {}
        self._kept_from: datetime | None = None

    def open(self) -> None:
        """Read which minutes silver holds, and the first day of bronze that has not expired."""
        self._read_bounds()
        self._kept_from = self._lake.kept_from(PROBE_MINUTES)

    def find_ranges_to_compute(
        self, touched: Mapping[str, tuple[datetime, datetime]], clock: datetime
    ) -> list[MinuteRange]:
        """Return the minutes that a batch changes; ``touched`` has its first and last minute by cluster."""
        touched = self._skip_lone_records(touched, clock)
        next_records, firsts = self._find_next_records(touched), self._extend_back(touched)
        ranges = (
            find_affected_range(
                cluster_id,
                firsts[cluster_id],
                hi,
                self._bounds.get(cluster_id),
                self._clip_since(cluster),
                cluster.until,
                next_records.get(cluster_id),
            )
            for cluster_id, (_, hi) in touched.items()
            if (cluster := self._clusters[cluster_id])
        )
        return [range_ for range_ in ranges if range_ is not None]

    def clip_to_stored(self, cluster_id: str, lo: datetime, hi: datetime | None) -> MinuteRange | None:
        """Return the minutes from ``lo`` to ``hi`` (None: no end) that silver holds; None if it has none."""
        bounds = self._bounds.get(cluster_id)
        if bounds is None:
            return None
        lo = max(lo.replace(second=0, microsecond=0), bounds.first_minute)
        hi = min(hi or bounds.last_minute, bounds.last_minute)
        return MinuteRange(cluster_id, lo, hi) if lo <= hi else None

    def is_new(self, piece: Sequence[MinuteRange]) -> bool:
        """Return whether silver holds no minute of the ranges, so that it need not be read."""
        return all(
            range_.first > self._written.get(range_.cluster_id, range_.first - _MINUTE) for range_ in piece
        )

    def mark_written(self, piece: Sequence[MinuteRange]) -> None:
        """Take over that minutes are written. Call it before the first of the two tables is written."""
        for range_ in piece:
            self._written[range_.cluster_id] = max(
                range_.last, self._written.get(range_.cluster_id, range_.last)
            )

    def find_initial_brokers(self, ranges: Sequence[MinuteRange]) -> dict[str, tuple[int, ...] | None]:
        """Return by cluster the brokers expected before the first record of its range; None if unknown."""
        at_watermark = {
            range_.cluster_id: self._bounds[range_.cluster_id].expected_brokers
            for range_ in ranges
            if range_.expected_from
        }
        at_watermark |= self._read_brokers_at_watermark(
            [cluster_id for cluster_id, brokers in at_watermark.items() if brokers is None]
        )
        reported = self._read_first_reported_brokers(
            {
                range_.cluster_id: range_.first_record_minute
                for range_ in ranges
                if not range_.expected_from and range_.first_record_minute is not None
            }
        )
        return {
            range_.cluster_id: (at_watermark if range_.expected_from else reported).get(range_.cluster_id)
            for range_ in ranges
        }

    def first_minute(self, cluster_id: str) -> datetime | None:
        """Return the first minute that silver holds of a cluster; None without one."""
        bounds = self._bounds.get(cluster_id)
        return bounds.first_minute if bounds else None

    def extend(
        self,
        ranges: Sequence[MinuteRange],
        touched: Mapping[str, tuple[datetime, datetime]],
        observed: Mapping[str, ObservedMinutes],
    ) -> None:
        """Update the bounds after the ranges were written; a cluster without a counted minute has none."""
        for range_ in ranges:
            first_minute = self._find_first_counted(range_.cluster_id, observed.get(range_.cluster_id))
            if first_minute is None or first_minute > range_.last:
                continue
            first_record, _ = touched[range_.cluster_id]
            before = self._bounds.get(range_.cluster_id) or ClusterMinuteBounds(
                first_minute, range_.last, first_record
            )
            is_newest = range_.last >= before.last_minute
            self._bounds[range_.cluster_id] = ClusterMinuteBounds(
                first_minute,
                max(range_.last, before.last_minute),
                min(first_record, before.first_record_minute),
                find_brokers_at_end(range_, observed) if is_newest else before.expected_brokers,
            )

    def _find_first_counted(self, cluster_id: str, observed: ObservedMinutes | None) -> datetime | None:
        """Return the cluster's first minute that counts: its ``since``, or its first measured minute."""
        since, stored = self._clusters[cluster_id].since, self.first_minute(cluster_id)
        if since is not None:
            return ceil_to_minute(since)
        measured = observed.first_measured if observed else None
        firsts = (stored, None if measured is None else to_time(measured))
        return min((minute for minute in firsts if minute is not None), default=None)

    def _read_bounds(self) -> None:
        # The watermark is that of the cluster-minutes. They are written last, so after a batch that failed
        # the minutes are computed again from where both tables agree.
        minutes = self._group_by_cluster(
            CLUSTER_MINUTES, _MINUTES, _FIRST_AND_LAST.summarize, _FIRST_AND_LAST
        )
        written = self._group_by_cluster(
            BROKER_MINUTES, (*_MINUTES, "vantages", "agent_late"), _summarize_written, _WRITTEN
        )
        self._written = {cluster_id: row["minute_max"] for cluster_id, row in written.items()}
        for cluster_id, row in minutes.items():
            watermark = row["minute_max"]
            first_record = written[cluster_id]["recorded_min"] if cluster_id in written else None
            self._bounds[cluster_id] = ClusterMinuteBounds(
                row["minute_min"], watermark, first_record or watermark
            )

    def _group_by_cluster(
        self,
        table: Table,
        columns: Sequence[str],
        summarize: Callable[[pa.Table], pa.Table],
        grouping: Grouping,
        where: pc.Expression | None = None,
    ) -> dict[str, dict[str, Any]]:
        """Return the aggregates of a whole table's rows by cluster."""
        groups = self._lake.scan(self._lake.list_files(table), columns, where, summarize, grouping.merge)
        return {row["cluster_id"]: row for row in groups.to_pylist()}

    def _clip_since(self, cluster: Cluster) -> datetime | None:
        # Expired minutes are never computed again, although the cluster was expected then.
        if cluster.since is None or self._kept_from is None:
            return cluster.since
        return max(cluster.since, self._kept_from)

    def _extend_back(self, touched: Mapping[str, tuple[datetime, datetime]]) -> dict[str, datetime]:
        """Return the first minute to read: a record from before `since` names the first expected brokers."""
        firsts = {cluster_id: lo for cluster_id, (lo, _) in touched.items()}
        extended = [
            cluster_id
            for cluster_id, lo in firsts.items()
            if self._clusters[cluster_id].since is not None
            and ((bounds := self._bounds.get(cluster_id)) is None or lo < bounds.first_record_minute)
        ]
        if extended:
            of_clusters = pc.field("cluster_id").isin(pa.array(extended, pa.string()))
            records = self._group_by_cluster(PROBE_MINUTES, _MINUTES, _FIRST.summarize, _FIRST, of_clusters)
            for cluster_id, row in records.items():
                firsts[cluster_id] = min(firsts[cluster_id], row["minute_min"])
        return firsts

    def _skip_lone_records(
        self, touched: Mapping[str, tuple[datetime, datetime]], clock: datetime
    ) -> dict[str, tuple[datetime, datetime]]:
        """Begin each cluster's minutes where its measurement began.

        A record that came late, and has no other near to it in time, does not begin it: it would add all the
        minutes since, in which nobody measured the cluster.
        """
        early = {
            cluster_id: span
            for cluster_id, span in touched.items()
            if span[0] < clock - _NEAR_RECORD_WITHIN
            and self._clusters[cluster_id].since is None
            and ((bounds := self._bounds.get(cluster_id)) is None or span[0] < bounds.first_minute)
        }
        if not early:
            return dict(touched)
        begins = self._find_begins_near(early)
        if lone := {cluster_id: lo for cluster_id, (lo, _) in early.items() if cluster_id not in begins}:
            begins |= self._find_begins_after(lone)
        begun = {
            cluster_id: (begin, span[1])
            for cluster_id, span in early.items()
            if (begin := begins.get(cluster_id)) is not None and begin <= span[1]
        }
        return {cluster_id: span for cluster_id, span in touched.items() if cluster_id not in early} | begun

    def _find_begins_near(self, early: Mapping[str, tuple[datetime, datetime]]) -> dict[str, datetime]:
        """Return each cluster's first minute, or an earlier one near to it, if there are two records."""
        near = {
            cluster_id: (lo - _NEAR_RECORD_WITHIN, lo + _NEAR_RECORD_WITHIN)
            for cluster_id, (lo, _) in early.items()
        }
        records = self._group_within(PROBE_MINUTES, near, _FIRST_AND_COUNT)
        return {
            cluster_id: min(row["minute_min"], early[cluster_id][0])
            for cluster_id, row in records.items()
            if row["minute_count"] > 1
        }

    def _find_begins_after(self, lone: Mapping[str, datetime]) -> dict[str, datetime]:
        """Return by cluster the first later minute whose record came in time, or has another near to it."""
        begins: dict[str, datetime] = {}
        waiting, days = dict(lone), 1
        while waiting and (files := self._list_since(min(waiting.values()))):
            ends = {cluster_id: after + timedelta(days=days) for cluster_id, after in waiting.items()}
            spans = MinuteSpans.of(
                {
                    cluster_id: (after + _MINUTE, ends[cluster_id] + _NEAR_RECORD_WITHIN)
                    for cluster_id, after in waiting.items()
                }
            )
            records = self._lake.scan(
                files.of_days(spans.days),
                (*_MINUTES, "ingested_at"),
                spans.where,
                partial(_group_minutes, spans),
                _RECORDS_OF_MINUTE.merge,
            )
            begins |= find_begins(records, ends, _NEAR_RECORD_WITHIN)
            waiting = {name: end for name, end in ends.items() if name not in begins}
            days *= 2
        return begins

    def _list_since(self, at: datetime) -> TableFiles | None:
        """Return the files of bronze of a time's day and later ones; None if there is none."""
        files = self._lake.list_files(PROBE_MINUTES)
        later = files.select(lambda file: file.day is not None and file.day >= at.date())
        return later if later.files else None

    def _group_within(
        self, table: Table, spans: Mapping[str, tuple[datetime, datetime]], grouping: Grouping
    ) -> dict[str, dict[str, Any]]:
        """Return the aggregates by cluster of the minutes in a span of each."""
        if not spans:
            return {}
        within = MinuteSpans.of(spans)
        groups = self._lake.scan(
            self._lake.list_files(table, within.days),
            _MINUTES,
            within.where,
            partial(_group_rows, within, grouping),
            grouping.merge,
        )
        return {row["cluster_id"]: row for row in groups.to_pylist()}

    def _find_next_records(self, touched: Mapping[str, tuple[datetime, datetime]]) -> dict[str, datetime]:
        """Return the next minute with a record after late records, of clusters where it comes soon enough."""
        late = {
            cluster_id: (hi + _MINUTE, hi + _NEXT_RECORD_WITHIN)
            for cluster_id, (_, hi) in touched.items()
            if (bounds := self._bounds.get(cluster_id)) and hi < bounds.last_minute
        }
        records = self._group_within(PROBE_MINUTES, late, _FIRST)
        return {cluster_id: row["minute_min"] for cluster_id, row in records.items()}

    def _read_brokers_at_watermark(self, clusters: Sequence[str]) -> dict[str, tuple[int, ...]]:
        """Return by cluster the brokers that silver has a row of at the cluster's last minute."""
        if not clusters:
            return {}
        lasts = {cluster_id: self._bounds[cluster_id].last_minute for cluster_id in clusters}
        spans = MinuteSpans.of({cluster_id: (last, last) for cluster_id, last in lasts.items()})
        rows = self._lake.scan(
            self._lake.list_files(BROKER_MINUTES, spans.days),
            (*_MINUTES, "broker_id"),
            spans.where,
            partial(_group_rows, spans, _BROKERS),
            _BROKERS.merge,
        )
        brokers: dict[str, list[int]] = {cluster_id: [] for cluster_id in clusters}
        for row in rows.to_pylist():
            brokers[row["cluster_id"]].append(row["broker_id"])
        return {cluster_id: tuple(sorted(ids)) for cluster_id, ids in brokers.items()}

    def _read_first_reported_brokers(self, firsts: Mapping[str, datetime]) -> dict[str, tuple[int, ...]]:
        """Return by cluster the brokers that the records of its minute name, if there are any."""
        if not firsts:
            return {}
        spans = MinuteSpans.of({cluster_id: (first, first) for cluster_id, first in firsts.items()})
        summaries = self._lake.scan(
            self._lake.list_files(PROBE_MINUTES, spans.days),
            SUMMARY_COLUMNS,
            spans.where,
            partial(_summarize_within, spans),
            _merge_summaries,
        )
        brokers: dict[str, frozenset[int]] = {}
        for summary in summaries:
            brokers[summary.cluster_id] = brokers.get(summary.cluster_id, frozenset()) | summary.brokers
        return {cluster_id: tuple(sorted(ids)) for cluster_id, ids in brokers.items()}


def _summarize_written(rows: pa.Table) -> pa.Table:
    is_recorded = pc.or_(pc.greater(rows["vantages"], 0), rows["agent_late"])
    recorded = pc.if_else(is_recorded, rows["minute"], pa.scalar(None, rows["minute"].type))
    return _WRITTEN.summarize(rows.append_column("recorded", recorded))


def _summarize_within(spans: MinuteSpans, records: pa.Table) -> list[RecordSummary]:
    return summarize_records(spans.select(records))


def _merge_summaries(parts: Iterable[list[RecordSummary]]) -> list[RecordSummary]:
    return merge_summaries(chain.from_iterable(parts))


def _group_rows(spans: MinuteSpans, grouping: Grouping, rows: pa.Table) -> pa.Table:
    return grouping.summarize(spans.select(rows))


def _group_minutes(spans: MinuteSpans, records: pa.Table) -> pa.Table:
    return _group_rows(spans, _RECORDS_OF_MINUTE, records)


def find_begins(records: pa.Table, ends: Mapping[str, datetime], near: timedelta) -> dict[str, datetime]:
    """Return by cluster the first minute, up to its end, whose record came in time or has another near to it.

    ``records`` has for each cluster and minute the number of its records, and when the first was ingested.
    """
    begins: dict[str, datetime] = {}
    in_order = records.sort_by([("cluster_id", "ascending"), ("minute", "ascending")]).to_pylist()
    for row, following in zip_longest(in_order, in_order[1:]):
        cluster_id, minute = row["cluster_id"], row["minute"]
        is_followed = (
            following is not None
            and following["cluster_id"] == cluster_id
            and following["minute"] <= minute + near
        )
        came_in_time = row["ingested_at_min"] <= minute + near
        if minute <= ends[cluster_id] and (came_in_time or is_followed or row["ingested_at_count"] > 1):
            begins.setdefault(cluster_id, minute)
    return begins


def find_brokers_at_end(range_: MinuteRange, observed: Mapping[str, ObservedMinutes]) -> tuple[int, ...]:
    """Return the brokers that are expected in the range's last minute."""
    of_cluster = observed.get(range_.cluster_id)
    return of_cluster.brokers if of_cluster and of_cluster.last == to_minute(range_.last) else ()
