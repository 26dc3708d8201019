"""Which minutes silver holds of each cluster, and so which minutes a batch has to compute."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from fleetgauge_core.fleet import Cluster, Fleet
from fleetgauge_core.slo.minute_range import (
    ClusterMinuteBounds,
    MinuteRange,
    ceil_to_minute,
    find_affected_range,
)
from fleetgauge_core.slo.utc_days import list_utc_days
from fleetgauge_core.tables import BROKER_MINUTES, CLUSTER_MINUTES, PROBE_MINUTES
from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.io.small_frames import create_dataframe, to_utc
from fleetgauge_pipelines.transforms.records import to_minute, to_time
from fleetgauge_pipelines.transforms.silver import ObservedMinutes

_MINUTE = timedelta(minutes=1)

#: Late records change all minutes up to the next minute with a record. If there is none within this time,
#: everything up to the watermark is computed again.
_NEXT_RECORD_WITHIN = timedelta(hours=1)


#: Two records so near in time show that a cluster was measured then. One that comes later than this is late.
_NEAR_RECORD_WITHIN = timedelta(hours=1)
_NEAR_INTERVAL = f"INTERVAL {_NEAR_RECORD_WITHIN.seconds} SECONDS"


class SilverBounds:
    """The first and last minute of each cluster in silver, read once and updated as silver is written."""

    def __init__(self, spark: SparkSession, lake: Lake, fleet: Fleet) -> None:
        self._spark = spark
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
        next_records = self._find_next_records(touched)
        ranges = (
            find_affected_range(
                cluster_id,
                self._extend_back(cluster, lo),
                hi,
                self._bounds.get(cluster_id),
                self._clip_since(cluster),
                cluster.until,
                next_records.get(cluster_id),
            )
            for cluster_id, (lo, hi) in touched.items()
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
        return {
            range_.cluster_id: at_watermark[range_.cluster_id]
            if range_.expected_from
            else self._read_first_reported_brokers(range_)
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
        bounds = (
            self._lake.read(CLUSTER_MINUTES)
            .groupBy("cluster_id")
            .agg(F.min("minute").alias("begin"), F.max("minute").alias("watermark"))
        )
        recorded = F.when(F.expr("vantages > 0 OR agent_late"), F.col("minute"))
        broker_bounds = (
            self._lake.read(BROKER_MINUTES)
            .groupBy("cluster_id")
            .agg(F.min(recorded).alias("first"), F.max("minute").alias("written"))
        )
        for row in broker_bounds.join(bounds, "cluster_id", "left").collect():
            self._written[row["cluster_id"]] = to_utc(row["written"])
            if row["watermark"]:
                watermark = to_utc(row["watermark"])
                self._bounds[row["cluster_id"]] = ClusterMinuteBounds(
                    to_utc(row["begin"]), watermark, to_utc(row["first"]) if row["first"] else watermark
                )

    def _clip_since(self, cluster: Cluster) -> datetime | None:
        # Expired minutes are never computed again, although the cluster was expected then.
        if cluster.since is None or self._kept_from is None:
            return cluster.since
        return max(cluster.since, self._kept_from)

    def _extend_back(self, cluster: Cluster, touched_lo: datetime) -> datetime:
        """Return the first minute to read: a record from before `since` names the first expected brokers."""
        bounds = self._bounds.get(cluster.id)
        if cluster.since is None or (bounds is not None and touched_lo >= bounds.first_record_minute):
            return touched_lo
        records = self._lake.read(PROBE_MINUTES).where(F.col("cluster_id") == cluster.id)
        first = records.agg(F.min("minute").alias("first")).first()
        return min(touched_lo, to_utc(first["first"])) if first and first["first"] else touched_lo

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
        first = F.col("first")
        within = F.expr(_NEAR_INTERVAL)
        records = self._read_of_clusters({cluster_id: lo for cluster_id, (lo, _) in early.items()})
        near = records.where(F.col("minute").between(first - within, first + within))
        begins = (
            near.groupBy("cluster_id")
            .agg(F.count(F.lit(1)).alias("records"), F.least(F.min("minute"), F.min(first)).alias("begin"))
            .where("records > 1")
        )
        return {row["cluster_id"]: to_utc(row["begin"]) for row in begins.collect()}

    def _find_begins_after(self, lone: Mapping[str, datetime]) -> dict[str, datetime]:
        """Return by cluster the first later minute whose record came in time, or has another near to it."""
        within = F.expr(_NEAR_INTERVAL)
        later = self._read_of_clusters(lone).where(F.col("minute") > F.col("first"))
        in_order = Window.partitionBy("cluster_id").orderBy("minute")
        minutes = (
            later.groupBy("cluster_id", "minute")
            .agg(F.min("ingested_at").alias("ingested_at"), F.count(F.lit(1)).alias("records"))
            .withColumn("following", F.lead("minute").over(in_order))
        )
        came_in_time = F.col("ingested_at") <= F.col("minute") + within
        is_followed = F.col("following") <= F.col("minute") + within
        begins = (
            minutes.where(came_in_time | is_followed | (F.col("records") > 1))
            .groupBy("cluster_id")
            .agg(F.min("minute").alias("begin"))
        )
        return {row["cluster_id"]: to_utc(row["begin"]) for row in begins.collect()}

    def _read_of_clusters(self, firsts: Mapping[str, datetime]) -> DataFrame:
        """Return the stored records of clusters, each with its cluster's minute as ``first``."""
        frame = create_dataframe(
            self._spark, list(firsts.items()), "early_cluster_id string, first timestamp"
        )
        records = self._lake.read(PROBE_MINUTES).select("cluster_id", "minute", "ingested_at")
        return records.join(F.broadcast(frame), F.col("cluster_id") == F.col("early_cluster_id"))

    def _find_next_records(self, touched: Mapping[str, tuple[datetime, datetime]]) -> dict[str, datetime]:
        """Return the next minute with a record after late records, of clusters where it comes soon enough."""
        late = [
            (cluster_id, hi, hi + _NEXT_RECORD_WITHIN)
            for cluster_id, (_, hi) in touched.items()
            if (bounds := self._bounds.get(cluster_id)) and hi < bounds.last_minute
        ]
        if not late:
            return {}
        late_ends = create_dataframe(
            self._spark, late, "late_cluster_id string, last_late timestamp, until timestamp"
        )
        days = list_utc_days((last_late, until) for _, last_late, until in late)
        records = self._lake.read(PROBE_MINUTES).where(F.col("day").isin(days))
        follows = (F.col("minute") > F.col("last_late")) & (F.col("minute") <= F.col("until"))
        next_records = records.join(
            F.broadcast(late_ends), (F.col("cluster_id") == F.col("late_cluster_id")) & follows
        )
        rows = next_records.groupBy("cluster_id").agg(F.min("minute").alias("first")).collect()
        return {row["cluster_id"]: to_utc(row["first"]) for row in rows}

    def _read_brokers_at_watermark(self, clusters: Sequence[str]) -> dict[str, tuple[int, ...]]:
        """Return by cluster the brokers that silver has a row of at the cluster's last minute."""
        if not clusters:
            return {}
        watermarks = [(cluster_id, self._bounds[cluster_id].last_minute) for cluster_id in clusters]
        days = list_utc_days((minute, minute) for _, minute in watermarks)
        rows = self._lake.read(BROKER_MINUTES).where(F.col("day").isin(days))
        frame = create_dataframe(self._spark, watermarks, "watermark_cluster_id string, watermark timestamp")
        last_rows = rows.join(
            F.broadcast(frame),
            (F.col("cluster_id") == F.col("watermark_cluster_id")) & (F.col("minute") == F.col("watermark")),
        )
        brokers = last_rows.groupBy("cluster_id").agg(F.collect_set("broker_id").alias("brokers")).collect()
        return dict.fromkeys(clusters, ()) | {row["cluster_id"]: tuple(row["brokers"]) for row in brokers}

    def _read_first_reported_brokers(self, range_: MinuteRange) -> tuple[int, ...] | None:
        """Return the brokers that the first records of a range name."""
        minute = range_.first_record_minute
        if minute is None:
            return None
        of_minute = (pc.field("cluster_id") == range_.cluster_id) & (pc.field("minute") == minute)
        bronze = self._lake.list_files(PROBE_MINUTES, [minute.date()])
        records = bronze.read(("broker_id", "expected_brokers"), of_minute)
        reported = pa.concat_arrays(
            [
                records["broker_id"].combine_chunks(),
                pc.list_flatten(records["expected_brokers"]).combine_chunks(),
            ]
        )
        return tuple(reported.unique().to_pylist()) if records.num_rows else None


def find_brokers_at_end(range_: MinuteRange, observed: Mapping[str, ObservedMinutes]) -> tuple[int, ...]:
    """Return the brokers that are expected in the range's last minute."""
    of_cluster = observed.get(range_.cluster_id)
    return of_cluster.brokers if of_cluster and of_cluster.last == to_minute(range_.last) else ()
