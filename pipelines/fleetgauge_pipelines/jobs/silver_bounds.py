"""What silver holds of each cluster, and so which minutes a batch makes new."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from fleetgauge_core.fleet import Cluster, Fleet
from fleetgauge_core.slo.days import days_of
from fleetgauge_core.slo.minute_range import (
    Horizon,
    Stretch,
    first_minute,
    stretch,
)
from fleetgauge_core.tables import BROKER_MINUTES, CLUSTER_MINUTES, PROBE_MINUTES
from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.io.small_frames import dataframe, utc
from fleetgauge_pipelines.transforms.expected_brokers import recorded_minutes

_MINUTE = timedelta(minutes=1)

#: How far after late records the next one is looked for, before everything up to the watermark is made anew.
_SOON = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Seen:
    """Of a cluster's broker-minutes: the first that was measured, the last minute and its brokers."""

    first_measured: datetime | None
    last: datetime
    brokers: tuple[int, ...]


class Horizons:
    """Learnt from the tables once, and kept up as they are written."""

    def __init__(self, spark: SparkSession, lake: Lake, fleet: Fleet) -> None:
        self._spark = spark
        self._lake = lake
        self._clusters = {cluster.id: cluster for cluster in fleet.clusters}
        self._horizons: dict[str, Horizon] = {}
        #: The last minute that either table holds: a batch that broke off may have written only one.
        self._written: dict[str, datetime] = {}
        self._kept_from: datetime | None = None

    def open(self) -> None:
        """Learn what silver holds, and since when bronze does."""
        self._read_bounds()
        self._kept_from = self._lake.kept_from(PROBE_MINUTES)

    def stretches(self, touched: Mapping[str, tuple[datetime, datetime]]) -> list[Stretch]:
        """What is to be made; ``touched``: the first and last minute of each cluster's records."""
        next_records = self._next_records(touched)
        found = (
            stretch(
                cluster_id,
                self._reach(cluster, lo),
                hi,
                self._horizons.get(cluster_id),
                self._since(cluster),
                cluster.until,
                next_records.get(cluster_id),
            )
            for cluster_id, (lo, hi) in touched.items()
            if (cluster := self._clusters[cluster_id])
        )
        return [one for one in found if one is not None]

    def known(self, cluster_id: str, lo: datetime, hi: datetime | None) -> Stretch | None:
        """The minutes from lo to hi (None: to the last) that silver has of a cluster."""
        horizon = self._horizons.get(cluster_id)
        if horizon is None:
            return None
        lo = max(lo.replace(second=0, microsecond=0), horizon.begin)
        hi = min(hi or horizon.watermark, horizon.watermark)
        return Stretch(cluster_id, lo, hi) if lo <= hi else None

    def is_new(self, piece: Sequence[Stretch]) -> bool:
        """Whether no table holds a minute of it, so that none needs to be read."""
        return all(one.lo > self._written.get(one.cluster_id, one.lo - _MINUTE) for one in piece)

    def will_write(self, piece: Sequence[Stretch]) -> None:
        """To be said before the first of the tables is written."""
        for one in piece:
            self._written[one.cluster_id] = max(one.hi, self._written.get(one.cluster_id, one.hi))

    def carried(self, stretches: Sequence[Stretch]) -> dict[str, tuple[int, ...] | None]:
        """The brokers that hold before the first record of each stretch, as silver or bronze has them."""
        known = {
            one.cluster_id: self._horizons[one.cluster_id].expected for one in stretches if one.carried_from
        }
        known |= self._expected_at_watermark(
            [cluster_id for cluster_id, brokers in known.items() if brokers is None]
        )
        return {
            one.cluster_id: known[one.cluster_id] if one.carried_from else self._first_said(one)
            for one in stretches
        }

    def begins(self, seen: Mapping[str, Seen], stretches: Sequence[Stretch]) -> dict[str, datetime]:
        """Each cluster's first counted minute: `since`, or its first with a measured broker."""
        found: dict[str, datetime] = {}
        for one in stretches:
            since, known = self._clusters[one.cluster_id].since, self._horizons.get(one.cluster_id)
            candidates = [known.begin] if known else []
            if one.cluster_id in seen and (first := seen[one.cluster_id].first_measured):
                candidates.append(first)
            if since is not None:
                found[one.cluster_id] = first_minute(since)
            elif candidates:
                found[one.cluster_id] = min(candidates)
        return found

    def extend(
        self,
        stretches: Sequence[Stretch],
        begins: Mapping[str, datetime],
        touched: Mapping[str, tuple[datetime, datetime]],
        seen: Mapping[str, Seen],
    ) -> None:
        """Known only for clusters of which silver has rows."""
        for one in stretches:
            begin = begins.get(one.cluster_id)
            if begin is None or begin > one.hi:
                continue
            first, _ = touched[one.cluster_id]
            known = self._horizons.get(one.cluster_id) or Horizon(begin, one.hi, first)
            self._horizons[one.cluster_id] = Horizon(
                begin,
                max(one.hi, known.watermark),
                min(first, known.first_record),
                expected_at_end(one, seen) if one.hi >= known.watermark else known.expected,
            )

    def _read_bounds(self) -> None:
        # The watermark is the cluster-minutes': they are written last, so after
        # a broken-off batch the stretch is computed again from where both agree.
        bounds = (
            self._lake.read(CLUSTER_MINUTES)
            .groupBy("cluster_id")
            .agg(F.min("minute").alias("begin"), F.max("minute").alias("watermark"))
        )
        recorded = F.when(F.expr("vantages > 0 OR agent_late"), F.col("minute"))
        of_brokers = (
            self._lake.read(BROKER_MINUTES)
            .groupBy("cluster_id")
            .agg(F.min(recorded).alias("first"), F.max("minute").alias("written"))
        )
        for row in of_brokers.join(bounds, "cluster_id", "left").collect():
            self._written[row["cluster_id"]] = utc(row["written"])
            if row["watermark"]:
                watermark = utc(row["watermark"])
                self._horizons[row["cluster_id"]] = Horizon(
                    utc(row["begin"]), watermark, utc(row["first"]) if row["first"] else watermark
                )

    def _since(self, cluster: Cluster) -> datetime | None:
        """Of what has expired nothing is computed again, whatever was expected then."""
        if cluster.since is None or self._kept_from is None:
            return cluster.since
        return max(cluster.since, self._kept_from)

    def _reach(self, cluster: Cluster, touched_lo: datetime) -> datetime:
        """How far back to look: records from before `since` say with which brokers it begins."""
        known = self._horizons.get(cluster.id)
        if cluster.since is None or (known is not None and touched_lo >= known.first_record):
            return touched_lo
        of_cluster = self._lake.read(PROBE_MINUTES).where(F.col("cluster_id") == cluster.id)
        first = of_cluster.agg(F.min("minute").alias("first")).first()
        return min(touched_lo, utc(first["first"])) if first and first["first"] else touched_lo

    def _next_records(self, touched: Mapping[str, tuple[datetime, datetime]]) -> dict[str, datetime]:
        """Of clusters that late records touch: the next minute with a record, if it comes soon."""
        late = [
            (cluster_id, hi, hi + _SOON)
            for cluster_id, (_, hi) in touched.items()
            if (known := self._horizons.get(cluster_id)) and hi < known.watermark
        ]
        if not late:
            return {}
        after = dataframe(self._spark, late, "of string, hi timestamp, soon timestamp")
        days = days_of((hi, soon) for _, hi, soon in late)
        records = self._lake.read(PROBE_MINUTES).where(F.col("day").isin(days))
        follows = (F.col("minute") > F.col("hi")) & (F.col("minute") <= F.col("soon"))
        firsts = records.join(F.broadcast(after), (F.col("cluster_id") == F.col("of")) & follows)
        rows = firsts.groupBy("cluster_id").agg(F.min("minute").alias("first")).collect()
        return {row["cluster_id"]: utc(row["first"]) for row in rows}

    def _expected_at_watermark(self, clusters: Sequence[str]) -> dict[str, tuple[int, ...]]:
        """Which brokers silver has a row of at the last minute of each cluster."""
        if not clusters:
            return {}
        ends = [(one, self._horizons[one].watermark) for one in clusters]
        rows = self._lake.read(BROKER_MINUTES).where(F.col("day").isin(days_of((at, at) for _, at in ends)))
        last = F.broadcast(dataframe(self._spark, ends, "of string, at timestamp"))
        there = rows.join(last, (F.col("cluster_id") == F.col("of")) & (F.col("minute") == F.col("at")))
        found = there.groupBy("cluster_id").agg(F.collect_set("broker_id").alias("brokers")).collect()
        return dict.fromkeys(clusters, ()) | {row["cluster_id"]: tuple(row["brokers"]) for row in found}

    def _first_said(self, one: Stretch) -> tuple[int, ...] | None:
        """The brokers that the first records of a stretch name."""
        minute = one.first_record
        if minute is None:
            return None
        there = (F.col("day") == F.lit(minute.date())) & (F.col("cluster_id") == one.cluster_id)
        rows = self._lake.read(PROBE_MINUTES).where(there & (F.col("minute") == F.lit(minute)))
        said = recorded_minutes(rows).first()
        return tuple(said["said"]) if said else None


def last_expected() -> tuple[Column, Column]:
    """(last, brokers) over the minutes of ``expected_brokers``."""
    return F.max("minute").alias("last"), F.max_by("brokers", "minute").alias("brokers")


def seen_in(ends: Iterable[Row], brokers: DataFrame) -> dict[str, Seen]:
    """By cluster; ``ends`` have its ``last_expected``, ``brokers`` its broker-minutes."""
    measured = F.when(F.expr("measured AND leg = 'client'"), F.col("minute"))
    rows = brokers.groupBy("cluster_id").agg(F.min(measured).alias("first")).collect()
    firsts = {row["cluster_id"]: utc(row["first"]) for row in rows if row["first"]}
    return {
        row["cluster_id"]: Seen(firsts.get(row["cluster_id"]), utc(row["last"]), tuple(row["brokers"]))
        for row in ends
    }


def expected_at_end(one: Stretch, seen: Mapping[str, Seen]) -> tuple[int, ...]:
    """The brokers that are expected in the stretch's last minute."""
    found = seen.get(one.cluster_id)
    return found.brokers if found and found.last == one.hi else ()
