"""Bronze to broker-minutes and cluster-minutes."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from fleetgauge_pipelines.io.lake import Lake, settle
from fleetgauge_pipelines.io.rows import dataframe, utc
from fleetgauge_pipelines.jobs.said import Said
from fleetgauge_pipelines.jobs.settings import latency_objective_us
from fleetgauge_pipelines.quality.silver_facts import Facts, silver_facts, together
from fleetgauge_pipelines.slo.days import days_of
from fleetgauge_pipelines.slo.horizon import Horizon, Stretch, first_minute, pieces, stretch
from fleetgauge_pipelines.tables import BROKER_MINUTES, CLUSTER_MINUTES, PROBE_MINUTES, Table
from fleetgauge_pipelines.transforms.broker_minutes import broker_minutes, density
from fleetgauge_pipelines.transforms.causes import REASONS_DDL, causes_again
from fleetgauge_pipelines.transforms.cluster_minutes import cluster_minutes
from fleetgauge_pipelines.transforms.expected import RANGES_DDL, expected_brokers, in_ranges, said_brokers
from fleetgauge_probes.fleet import Cluster, Fleet

#: Silver is made a week at a time, so that a gap of months does not have to fit into memory.
_PIECE = timedelta(days=7)
_MINUTE = timedelta(minutes=1)

#: How far after late records the next one is looked for, before everything up to the watermark is made anew.
_SOON = timedelta(hours=1)


class Silver:
    """Brings silver to what bronze says; keeps what it knows of each cluster's horizon between batches."""

    def __init__(self, spark: SparkSession, lake: Lake, fleet: Fleet) -> None:
        self._spark = spark
        self._lake = lake
        self._fleet = fleet
        self._clusters = {cluster.id: cluster for cluster in fleet.clusters}
        self._horizons: dict[str, Horizon] = {}
        self._kept_from: datetime | None = None

    def open(self) -> None:
        """Learn what silver already holds, and since when bronze does."""
        self._horizons = self._read_horizons()
        self._kept_from = self._lake.kept_from(PROBE_MINUTES)

    def stretches(self, touched: Mapping[str, tuple[datetime, datetime]]) -> list[Stretch]:
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

    def _since(self, cluster: Cluster) -> datetime | None:
        """Of what has expired nothing is computed again, whatever was expected then."""
        if cluster.since is None or self._kept_from is None:
            return cluster.since
        return max(cluster.since, self._kept_from)

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

    def bring_up(
        self, stretches: Sequence[Stretch], touched: Mapping[str, tuple[datetime, datetime]], said: Said
    ) -> tuple[int, Facts]:
        """Bring both silver tables up to bronze; returns changed rows and aggregates for the gate."""
        changed, facts = 0, []
        for piece, ranges, brokers in self._broker_minutes(stretches):
            begins = self._begins(brokers, piece)
            counted = self._from_begin(brokers, begins)
            facts.append(silver_facts(counted))
            minutes = settle(cluster_minutes(counted, self._reasons(piece, said)))
            for table, wanted in ((BROKER_MINUTES, counted), (CLUSTER_MINUTES, minutes)):
                stored = in_ranges(self._on_days_of(table, piece), ranges)
                changed += self._lake.bring_to(table, wanted, stored)
            self._extend_horizons(piece, begins, touched)
        return changed, together(facts)

    def known(self, cluster_id: str, lo: datetime, hi: datetime | None) -> Stretch | None:
        """The minutes from lo to hi (None: to the last) that silver has of a cluster."""
        horizon = self._horizons.get(cluster_id)
        if horizon is None:
            return None
        lo = max(lo.replace(second=0, microsecond=0), horizon.begin)
        hi = min(hi or horizon.watermark, horizon.watermark)
        return Stretch(cluster_id, lo, hi) if lo <= hi else None

    def find_causes(self, stretches: Sequence[Stretch], said: Said) -> int:
        """Find the causes of stored minutes anew: what explains them has changed; returns changed rows."""
        changed = 0
        for piece in pieces(stretches, _PIECE):
            reasons, ranges = self._reasons(piece, said), self._ranges(piece, {})
            minutes, brokers = (
                in_ranges(self._on_days_of(table, piece), ranges)
                for table in (CLUSTER_MINUTES, BROKER_MINUTES)
            )
            stored = minutes.where("latency_p99_censored_us IS NOT NULL")
            changed += self._lake.bring_to(CLUSTER_MINUTES, causes_again(stored, brokers, reasons), stored)
        return changed

    def _reasons(self, piece: Sequence[Stretch], said: Said) -> DataFrame:
        """A row for each cluster of the piece, whether anything is said of it or not."""
        found = said.reasons(min(one.lo for one in piece), max(one.hi for one in piece) + _MINUTE)
        rows = [
            (
                cluster_id,
                latency_objective_us(self._fleet, self._clusters[cluster_id]),
                [(one.starts, one.ends, one.home, one.rank) for one in found.get(cluster_id, ())],
            )
            for cluster_id in sorted({one.cluster_id for one in piece})
        ]
        return dataframe(self._spark, rows, REASONS_DDL)

    def _broker_minutes(
        self, stretches: Sequence[Stretch]
    ) -> Iterator[tuple[list[Stretch], DataFrame, DataFrame]]:
        """The stretches piece by piece: each with its ranges, and what bronze says of them."""
        late_us = round(self._fleet.agent_late_ms * 1000)
        carried = {one.cluster_id: self._known_before(one) for one in stretches}
        brokers: DataFrame | None = None
        for piece in pieces(stretches, _PIECE):
            if brokers is not None:
                carried |= _brokers_at(brokers, min(one.lo for one in piece) - _MINUTE)
            ranges = self._ranges(piece, carried)
            records = in_ranges(self._on_days_of(PROBE_MINUTES, piece), ranges)
            dense = settle(density(records))
            shared = {row["shared"] for row in dense.select("shared").distinct().collect()}
            expected = expected_brokers(records, ranges)
            brokers = settle(broker_minutes(records, expected, dense, shared, late_us))
            yield piece, ranges, brokers

    def _known_before(self, one: Stretch) -> list[int] | None:
        """The brokers that hold before the first record of a stretch, as silver or bronze has them."""
        minute = one.carried_from or one.first_record
        if minute is None:
            return None
        table = BROKER_MINUTES if one.carried_from else PROBE_MINUTES
        there = (F.col("day") == F.lit(minute.date())) & (F.col("cluster_id") == one.cluster_id)
        rows = self._lake.read(table).where(there & (F.col("minute") == F.lit(minute)))
        if one.carried_from:
            return _brokers_at(rows, minute).get(one.cluster_id)
        said = said_brokers(rows).first()
        return list(said["said"]) if said else None

    def _ranges(self, piece: Sequence[Stretch], carried: Mapping[str, list[int] | None]) -> DataFrame:
        rows = [
            (
                one.cluster_id,
                one.lo,
                one.hi,
                carried.get(one.cluster_id),
                list(self._clusters[one.cluster_id].retired),
            )
            for one in piece
        ]
        return dataframe(self._spark, rows, RANGES_DDL)

    def _on_days_of(self, table: Table, piece: Sequence[Stretch]) -> DataFrame:
        """Rows of the piece's days and, so that files of other hours are not even opened, of its span."""
        within = F.col("minute").between(min(one.lo for one in piece), max(one.hi for one in piece))
        days = days_of((one.lo, one.hi) for one in piece)
        return self._lake.read(table).where(F.col("day").isin(days) & within)

    def _begins(self, brokers: DataFrame, stretches: Sequence[Stretch]) -> dict[str, datetime]:
        """Each cluster's first counted minute: `since`, or its first with a measured broker."""
        measured = (
            brokers.where("measured AND leg = 'client'")
            .groupBy("cluster_id")
            .agg(F.min("minute").alias("first"))
        )
        first = {row["cluster_id"]: utc(row["first"]) for row in measured.collect()}
        begins: dict[str, datetime] = {}
        for one in stretches:
            since, known = self._clusters[one.cluster_id].since, self._horizons.get(one.cluster_id)
            candidates = [known.begin] if known else []
            candidates += [first[one.cluster_id]] if one.cluster_id in first else []
            if since is not None:
                begins[one.cluster_id] = first_minute(since)
            elif candidates:
                begins[one.cluster_id] = min(candidates)
        return begins

    def _from_begin(self, brokers: DataFrame, begins: Mapping[str, datetime]) -> DataFrame:
        rows = dataframe(self._spark, list(begins.items()), "cluster_id string, begin timestamp")
        return brokers.join(F.broadcast(rows), "cluster_id").where("minute >= begin").drop("begin")

    def _extend_horizons(
        self,
        stretches: Sequence[Stretch],
        begins: Mapping[str, datetime],
        touched: Mapping[str, tuple[datetime, datetime]],
    ) -> None:
        """Known only for clusters of which silver has rows."""
        for one in stretches:
            begin = begins.get(one.cluster_id)
            if begin is None or begin > one.hi:
                continue
            first, _ = touched[one.cluster_id]
            known = self._horizons.get(one.cluster_id) or Horizon(begin, one.hi, first)
            self._horizons[one.cluster_id] = Horizon(
                begin, max(one.hi, known.watermark), min(first, known.first_record)
            )

    def _read_horizons(self) -> dict[str, Horizon]:
        # The watermark is the cluster-minutes': they are written last, so after
        # a broken-off batch the stretch is computed again from where both agree.
        bounds = (
            self._lake.read(CLUSTER_MINUTES)
            .groupBy("cluster_id")
            .agg(F.min("minute").alias("begin"), F.max("minute").alias("watermark"))
        )
        recorded = self._lake.read(BROKER_MINUTES).where("vantages > 0 OR agent_late")
        firsts = recorded.groupBy("cluster_id").agg(F.min("minute").alias("first"))
        return {
            row["cluster_id"]: Horizon(
                utc(row["begin"]), utc(row["watermark"]), utc(row["first"] or row["watermark"])
            )
            for row in bounds.join(firsts, "cluster_id", "left").collect()
        }

    def _reach(self, cluster: Cluster, touched_lo: datetime) -> datetime:
        """How far back to look: records from before `since` say with which brokers it begins."""
        known = self._horizons.get(cluster.id)
        if cluster.since is None or (known is not None and touched_lo >= known.first_record):
            return touched_lo
        of_cluster = self._lake.read(PROBE_MINUTES).where(F.col("cluster_id") == cluster.id)
        first = of_cluster.agg(F.min("minute").alias("first")).first()
        return min(touched_lo, utc(first["first"])) if first and first["first"] else touched_lo


def _brokers_at(rows: DataFrame, minute: datetime) -> dict[str, list[int]]:
    """Cluster to the brokers that have a row for the minute."""
    there = rows.where(F.col("minute") == F.lit(minute))
    found = there.groupBy("cluster_id").agg(F.collect_set("broker_id").alias("brokers")).collect()
    return {row["cluster_id"]: list(row["brokers"]) for row in found}
