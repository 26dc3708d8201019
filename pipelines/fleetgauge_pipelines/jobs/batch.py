"""One batch of raw records through bronze, silver and gold.

Every step brings a table to what all of bronze says for the keys that the
batch touches, so a batch may be repeated, or break off anywhere and be
repeated, and the tables come out the same.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cached_property, partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from fleetgauge_pipelines.io.lake import Lake, settle
from fleetgauge_pipelines.io.rows import dataframe
from fleetgauge_pipelines.jobs.settings import calendar, segment_rows, week_row
from fleetgauge_pipelines.quality.batch_gate import SUITE, BatchGate, Verdict
from fleetgauge_pipelines.slo.horizon import Horizon, Stretch, first_minute, pieces, stretch
from fleetgauge_pipelines.slo.revisions import OPEN, Row, latest, revisions
from fleetgauge_pipelines.tables import (
    BROKER_MINUTES,
    CLUSTER_MINUTES,
    CLUSTER_WEEKS,
    FLEET_WEEKS,
    PROBE_MINUTES,
    QUALITY,
    QUARANTINE,
    Table,
)
from fleetgauge_pipelines.transforms.broker_minutes import broker_minutes
from fleetgauge_pipelines.transforms.cluster_minutes import cluster_minutes
from fleetgauge_pipelines.transforms.cluster_weeks import WEEKS_DDL, cluster_weeks
from fleetgauge_pipelines.transforms.decode import check, decode
from fleetgauge_pipelines.transforms.deduplicate import RECORD_COLUMNS, first_of_each
from fleetgauge_pipelines.transforms.expected import RANGES_DDL, expected_brokers, in_ranges, said_brokers
from fleetgauge_pipelines.transforms.fleet_weeks import FLEET_INPUT, SEGMENTS_DDL, fleet_weeks
from fleetgauge_probes.fleet import Cluster, Fleet

#: Silver is made a week at a time, so that a gap of months does not have to fit into memory.
_PIECE = timedelta(days=7)

Facts = dict[str, float | None]


@dataclass(frozen=True, slots=True)
class Ingested:
    """What became of a batch's records, and which minutes they touch (inclusive, per cluster)."""

    received: int
    stored: int
    replayed: int
    quarantined: int
    touched: Mapping[str, tuple[datetime, datetime]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a batch did."""

    ingested: Ingested
    silver_rows_changed: int
    gold_rows_changed: int
    verdicts: tuple[Verdict, ...]
    seconds: float


class Pipeline:
    """A lake's writer: keeps what it knows of each cluster's horizon between batches."""

    def __init__(self, spark: SparkSession, lake: Lake, fleet: Fleet) -> None:
        self._spark = spark
        self._lake = lake
        self._fleet = fleet
        self._clusters = {cluster.id: cluster for cluster in fleet.clusters}
        self._horizons: dict[str, Horizon] = {}

    def open(self) -> None:
        """Make missing tables and learn what silver already holds."""
        self._lake.create_tables()
        self._horizons = self._read_horizons()

    def process(self, raw: DataFrame, batch: str, clock: datetime, oldest: datetime | None = None) -> Outcome:
        """Take a batch all the way. ``raw`` has value, source, position and hint.

        Records of minutes before ``oldest`` go to quarantine.
        """
        started = time.monotonic()
        ingested = self.ingest(raw, clock, oldest)
        stretches = self._stretches(ingested.touched)
        silver_changed, silver_facts = self._silver(stretches, ingested.touched)
        gold_changed = self.compute_weeks(stretches, clock)
        verdicts = self._judge(ingested, silver_facts, batch, clock)
        return Outcome(ingested, silver_changed, gold_changed, verdicts, time.monotonic() - started)

    # Bronze ------------------------------------------------------------------

    def ingest(self, raw: DataFrame, clock: datetime, oldest: datetime | None = None) -> Ingested:
        """Raw records to bronze or quarantine."""
        checked = check(decode(raw), self._clusters, clock, oldest)
        checked = settle(checked.withColumn("reason", F.coalesce("hint", "reason")))
        good = checked.where("reason IS NULL").select("record.*", "value", "source", "position")
        touched = self._touched(good)
        judged = settle(first_of_each(good, self._stored_records(touched)))
        return self._store(checked, judged, touched, clock)

    def _touched(self, good: DataFrame) -> dict[str, tuple[datetime, datetime]]:
        bounds = good.groupBy("cluster_id").agg(F.min("minute").alias("lo"), F.max("minute").alias("hi"))
        return {row["cluster_id"]: (_utc(row["lo"]), _utc(row["hi"])) for row in bounds.collect()}

    def _stored_records(self, touched: Mapping[str, tuple[datetime, datetime]]) -> DataFrame:
        return self._lake.read(PROBE_MINUTES).where(F.col("day").isin(_days(touched.values())))

    def _store(
        self,
        checked: DataFrame,
        judged: DataFrame,
        touched: Mapping[str, tuple[datetime, datetime]],
        clock: datetime,
    ) -> Ingested:
        fates = {row["fate"]: row["count"] for row in judged.groupBy("fate").count().collect()}
        broken = checked.where("reason IS NOT NULL").count()
        if fates.get("new"):
            new = judged.where("fate = 'new'").select(*RECORD_COLUMNS, "source")
            new = new.withColumns({"ingested_at": F.lit(clock), "day": F.to_date("minute")})
            self._lake.append(PROBE_MINUTES, new)
        conflicts = fates.get("conflicting_duplicate", 0)
        if broken or conflicts:
            self._quarantine(checked, judged, clock)
        return Ingested(
            received=broken + sum(fates.values()),
            stored=fates.get("new", 0),
            replayed=fates.get("replay", 0),
            quarantined=broken + conflicts,
            touched=touched,
        )

    def _quarantine(self, checked: DataFrame, judged: DataFrame, clock: datetime) -> None:
        detail = F.concat(
            F.lit("another record has run "), "run_id", F.lit(", sequence "), F.col("sequence").cast("string")
        )
        conflicts = judged.where("fate = 'conflicting_duplicate'").select(
            "source", "value", F.col("fate").alias("reason"), detail.alias("detail")
        )
        broken = checked.where("reason IS NOT NULL").select("source", "value", "reason", "detail")
        rows = broken.unionByName(conflicts).withColumn("ingested_at", F.lit(clock))
        stored = self._lake.read(QUARANTINE).join(rows.select("source"), "source", "left_semi")
        self._lake.bring_to(QUARANTINE, rows, stored)

    def _reach(self, cluster: Cluster, touched_lo: datetime) -> datetime:
        """How far back to look: records from before `since` say with which brokers it begins."""
        known = self._horizons.get(cluster.id)
        if cluster.since is None or (known is not None and touched_lo >= known.first_record):
            return touched_lo
        of_cluster = self._lake.read(PROBE_MINUTES).where(F.col("cluster_id") == cluster.id)
        first = of_cluster.agg(F.min("minute").alias("first")).first()
        return min(touched_lo, _utc(first["first"])) if first and first["first"] else touched_lo

    # Silver ------------------------------------------------------------------

    def _stretches(self, touched: Mapping[str, tuple[datetime, datetime]]) -> list[Stretch]:
        found = (
            stretch(
                cluster_id,
                self._reach(cluster, lo),
                hi,
                self._horizons.get(cluster_id),
                cluster.since,
                cluster.until,
            )
            for cluster_id, (lo, hi) in touched.items()
            if (cluster := self._clusters[cluster_id])
        )
        return [one for one in found if one is not None]

    def _silver(
        self, stretches: Sequence[Stretch], touched: Mapping[str, tuple[datetime, datetime]]
    ) -> tuple[int, Facts]:
        """Bring both silver tables up to bronze; returns changed rows and aggregates for the gate."""
        changed, facts = 0, []
        for piece, ranges, brokers in self._broker_minutes(stretches):
            begins = self._begins(brokers, piece)
            counted = self._from_begin(brokers, begins)
            facts.append(_silver_facts(counted))
            for table, wanted in ((BROKER_MINUTES, counted), (CLUSTER_MINUTES, cluster_minutes(counted))):
                stored = in_ranges(self._on_days_of(table, piece), ranges)
                changed += self._lake.bring_to(table, wanted, stored)
            self._extend_horizons(piece, begins, touched)
        return changed, _together(facts)

    def _broker_minutes(
        self, stretches: Sequence[Stretch]
    ) -> Iterator[tuple[list[Stretch], DataFrame, DataFrame]]:
        """The stretches piece by piece: each with its ranges, and what bronze says of them."""
        late_us = round(self._fleet.agent_late_ms * 1000)
        carried = {one.cluster_id: self._known_before(one) for one in stretches}
        brokers: DataFrame | None = None
        for piece in pieces(stretches, _PIECE):
            if brokers is not None:
                carried |= _brokers_at(brokers, min(one.lo for one in piece) - timedelta(minutes=1))
            ranges = self._ranges(piece, carried)
            records = in_ranges(self._on_days_of(PROBE_MINUTES, piece), ranges)
            brokers = settle(broker_minutes(records, expected_brokers(records, ranges), late_us))
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
        return self._lake.read(table).where(F.col("day").isin(_days((one.lo, one.hi) for one in piece)))

    def _begins(self, brokers: DataFrame, stretches: Sequence[Stretch]) -> dict[str, datetime]:
        """Each cluster's first counted minute: `since`, or its first with a measured broker."""
        measured = (
            brokers.where("measured AND leg = 'client'")
            .groupBy("cluster_id")
            .agg(F.min("minute").alias("first"))
        )
        first = {row["cluster_id"]: _utc(row["first"]) for row in measured.collect()}
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
                _utc(row["begin"]), _utc(row["watermark"]), _utc(row["first"] or row["watermark"])
            )
            for row in bounds.join(firsts, "cluster_id", "left").collect()
        }

    # Gold --------------------------------------------------------------------

    def compute_weeks(self, stretches: Sequence[Stretch], clock: datetime) -> int:
        """Cluster-weeks that the stretches touch or that are due to close, and their fleet-weeks.

        From silver as it is; returns how many rows of gold that changed.
        """
        rows = self._weeks_to_compute(stretches, clock)
        if not rows:
            return 0
        weeks = dataframe(self._spark, rows, WEEKS_DDL)
        days = _days((row[2], row[3]) for row in rows)
        minutes = self._lake.read(CLUSTER_MINUTES).where(F.col("day").isin(days))
        computed = cluster_weeks(minutes, weeks).withColumn("computed_at", F.lit(clock))
        names = sorted({row[1] for row in rows})
        stored = self._lake.rows(CLUSTER_WEEKS, F.col("week").isin(names))
        wanted = _revised(CLUSTER_WEEKS, _collect(computed), stored)
        changed = self._lake.bring_rows_to(CLUSTER_WEEKS, wanted, stored)
        return changed + self._fleet_weeks(wanted, names)

    def _weeks_to_compute(self, stretches: Sequence[Stretch], clock: datetime) -> list[tuple[Any, ...]]:
        spans = calendar(self._fleet)
        touched = {(one.cluster_id, span) for one in stretches for span in spans.between(one.lo, one.hi)}
        still_open = (
            self._lake.read(CLUSTER_WEEKS).where(F.col("revision") == OPEN).select("cluster_id", "week")
        )
        touched |= {
            (row["cluster_id"], span)
            for row in still_open.collect()
            if row["cluster_id"] in self._clusters and clock >= (span := spans.of_day(row["week"])).closes_at
        }
        return [
            week_row(self._fleet, self._clusters[cluster_id], span, clock)
            for cluster_id, span in sorted(touched, key=str)
        ]

    def _fleet_weeks(self, clusters: Sequence[Row], weeks: Sequence[date]) -> int:
        columns = [column for column in CLUSTER_WEEKS.columns if column.name in FLEET_INPUT]
        ddl = ", ".join(f"{column.name} {column.type.value}" for column in columns)
        rows = [
            tuple(row[column.name] for column in columns) for row in latest(clusters, ["cluster_id", "week"])
        ]
        segments = dataframe(self._spark, segment_rows(self._fleet), SEGMENTS_DDL)
        computed = fleet_weeks(dataframe(self._spark, rows, ddl), segments)
        stored = self._lake.rows(FLEET_WEEKS, F.col("week").isin(list(weeks)))
        return self._lake.bring_rows_to(
            FLEET_WEEKS, _revised(FLEET_WEEKS, _collect(computed), stored), stored
        )

    # Quality -----------------------------------------------------------------

    @cached_property
    def _gate(self) -> BatchGate:
        """Made for the first batch: great-expectations takes seconds to import, and weeks alone need none."""
        return BatchGate()

    def _judge(self, ingested: Ingested, silver: Facts, batch: str, clock: datetime) -> tuple[Verdict, ...]:
        accounted = ingested.stored + ingested.replayed + ingested.quarantined
        verdicts = self._gate.judge({"received": ingested.received, "accounted_for": accounted} | silver)
        rows = [
            (f"{batch}/{v.expectation}", clock, batch, SUITE, v.expectation, v.success, v.observed)
            for v in verdicts
        ]
        wanted = [dict(zip(QUALITY.names, row, strict=True)) for row in rows]
        self._lake.bring_rows_to(QUALITY, wanted, self._lake.rows(QUALITY, F.col("batch") == batch))
        return verdicts


#: What the gate is told of the broker-minutes of a batch, and how two pieces' become one.
_FACTS: Mapping[str, Callable[[Iterable[float]], float | None]] = {
    "availability_min": partial(min, default=None),
    "availability_max": partial(max, default=None),
    "quantiles_out_of_order": sum,
    "more_successes_than_attempts": sum,
    "measured_without_attempts": sum,
    "expected_minutes": sum,
}


def _silver_facts(brokers: DataFrame) -> Facts:
    out_of_order = (F.col("latency_p50_us") > F.col("latency_p99_us")) | (
        F.col("latency_p99_us") > F.col("latency_max_us")
    )
    row = brokers.agg(
        F.min("availability").alias("availability_min"),
        F.max("availability").alias("availability_max"),
        F.count_if(out_of_order).alias("quantiles_out_of_order"),
        F.count_if(F.col("succeeded") > F.col("attempted")).alias("more_successes_than_attempts"),
        F.count_if(F.col("measured") & (F.col("attempted") == 0)).alias("measured_without_attempts"),
        F.count(F.lit(1)).alias("expected_minutes"),
    ).first()
    return row.asDict() if row else {}


def _together(facts: Sequence[Facts]) -> Facts:
    return {
        name: fold(value for one in facts if (value := one[name]) is not None)
        for name, fold in _FACTS.items()
    }


def _brokers_at(rows: DataFrame, minute: datetime) -> dict[str, list[int]]:
    """Cluster to the brokers that have a row for the minute."""
    there = rows.where(F.col("minute") == F.lit(minute))
    found = there.groupBy("cluster_id").agg(F.collect_set("broker_id").alias("brokers")).collect()
    return {row["cluster_id"]: list(row["brokers"]) for row in found}


def _revised(table: Table, computed: Sequence[Row], stored: Sequence[Row]) -> list[Row]:
    """All rows for the weeks of ``stored``: computed ones revised, the rest as they are."""
    key = [name for name in table.key if name != "revision"]
    content = [name for name in table.content if name not in ("revision_reason", "closed")]
    by_key: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in stored:
        by_key[tuple(row[name] for name in key)].append(row)
    wanted: list[Row] = []
    for row in computed:
        wanted += revisions(row, by_key.pop(tuple(row[name] for name in key), ()), content)
    return wanted + [row for rows in by_key.values() for row in rows]


def _collect(rows: DataFrame) -> list[Row]:
    return [row.asDict() for row in rows.collect()]


def _days(spans: Iterable[tuple[datetime, datetime]]) -> list[date]:
    """Every UTC day that one of the spans touches."""
    days: set[date] = set()
    for lo, hi in spans:
        days |= {lo.date() + timedelta(days=n) for n in range((hi.date() - lo.date()).days + 1)}
    return sorted(days)


def _utc(at: datetime) -> datetime:
    """Spark hands out naive datetimes in the driver's zone."""
    return at.astimezone(UTC)
