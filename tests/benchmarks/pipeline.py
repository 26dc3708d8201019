"""Measures exact quantiles beside DuckDB and Polars, and the time from bronze to gold."""

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from fleetgauge_core.contract import Leg
from fleetgauge_core.slo.quantile import quantile as quantile_of
from fleetgauge_core.tables import PROBE_MINUTES
from fleetgauge_pipelines.io.record_files import RAW_DDL
from fleetgauge_pipelines.io.tasks import run_tasks
from fleetgauge_pipelines.simulation import SimulatedFleet
from fleetgauge_pipelines.simulation.latency_trend import DAY, HOUR, WEEK
from fleetgauge_pipelines.simulation.records import make_probe_minutes
from tests.benchmarks._bronze import START, count_brokers, simulate_fleet, write_bronze_in_process
from tests.benchmarks._jobs import Jobs, run_session
from tests.benchmarks._measure import (
    Duration,
    Options,
    Result,
    fit_growth_exponent,
    measure_duration,
    time_alternately,
    track_peak_memory,
)
from tests.benchmarks._sample_quantiles import compute_rows, compute_sums
from tests.spark.lakes import opened
from tests.spark.small_batches import process_minute
from tests.spark.small_fleet import FLEET, RECORDS_A_MINUTE
from tests.spark.spark_work import SparkWork, count_spark_work

QUANTILE_ROWS, SAMPLES = 1_440_000, 100
WEEK_BROKERS = 1_000
#: Broker-minutes of the client leg; bronze has twice as many records.
GROWTH_SIZES = (250_000, 500_000, 1_000_000, 2_500_000, 5_000_000, 10_000_000)
LATE_RECORDS = 10_000
STREAM_BROKER_MINUTES = 200_000
#: Minutes, and how many of the first are not counted: a stream runs for weeks with its code compiled.
STEADY_MINUTES, WARM_UP_MINUTES = 30, 10
SMALL_BATCHES = 20
_MINUTE = timedelta(minutes=1)


def measure(options: Options) -> Iterator[Result]:
    """Run all cases, or the selected ones."""
    with tempfile.TemporaryDirectory(prefix="fleetgauge-bench-") as folder, run_session() as spark:
        for name, case in CASES.items():
            if not options.only or name in options.only:
                where = Path(folder, name)
                where.mkdir()
                yield case(spark, where, options)
                shutil.rmtree(where)


# --- p99 and availability of every broker-minute ------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Engine:
    """Every row's p99 and availability as Arrow, in any order; and their sums, which are timed."""

    rows: Callable[[], pa.Table]
    sums: Callable[[], Any]


def measure_p99(spark: SparkSession, where: Path, options: Options, sort: bool) -> Result:
    path, rows = where / "minutes.parquet", options.scale_rows(QUANTILE_ROWS)
    _write_samples(path, rows, ascending=not sort)
    ours = _build_spark(spark, path, sort)
    peers = {"duckdb": _build_duckdb(path, sort), "polars": _build_polars(path, sort)}
    expected = ours.rows().sort_by("id")
    for name, peer in peers.items():
        if not expected.equals(peer.rows().sort_by("id").cast(expected.schema)):
            raise AssertionError(f"the results of {name} differ from those of Spark")
    times = time_alternately({"ours": ours.sums, **{name: peer.sums for name, peer in peers.items()}})
    with track_peak_memory() as peak:
        ours.sums()
    return Result(f"p99-{'raw' if sort else 'ascending'}", rows, times.pop("ours"), times, peak())


def _write_samples(path: Path, rows: int, ascending: bool) -> None:
    """Write minutes of which a few probes fail, and occasionally all of them."""
    generator, chunk_rows = np.random.default_rng(7), 100_000
    schema = pa.schema([("id", pa.int64()), ("attempted", pa.int32()), ("e2e_us", pa.list_(pa.int32()))])
    with pq.ParquetWriter(path, schema) as writer:
        for first in range(0, rows, chunk_rows):
            n = min(chunk_rows, rows - first)
            samples = generator.lognormal(8.5, 0.6, (n, SAMPLES)).astype("int32")
            if ascending:
                samples.sort(axis=1)
            sizes = SAMPLES - generator.binomial(SAMPLES, 0.002, n)
            sizes[generator.random(n) < 0.0001] = 0
            kept = samples[np.arange(SAMPLES) < sizes[:, None]]
            offsets = np.concatenate([[0], np.cumsum(sizes)]).astype("int32")
            lists = pa.ListArray.from_arrays(pa.array(offsets), pa.array(kept))
            ids, attempted = np.arange(first, first + n), np.full(n, SAMPLES, "int32")
            writer.write_table(pa.table([ids, attempted, lists], schema=schema))


def _build_spark(spark: SparkSession, path: Path, sort: bool) -> Engine:
    """Let tasks read row groups and sort as silver does for the samples of several vantages."""
    groups = pq.read_metadata(path).num_row_groups
    parts = np.array_split(range(groups), min(groups, 4 * spark.sparkContext.defaultParallelism))
    return Engine(
        lambda: pa.concat_tables(run_tasks(spark, partial(compute_rows, path, sort), parts)),
        lambda: run_tasks(spark, partial(compute_sums, path, sort), parts),
    )


def _build_duckdb(path: Path, sort: bool) -> Engine:
    # The p99 of n is the smallest of the n // 100 + 1 largest, which is several times cheaper than sorting.
    largest = f"list_aggregate(e2e_us, 'max', {SAMPLES // 100 + 1})[len(e2e_us) // 100 + 1]"
    rows = (
        f"SELECT id, {largest if sort else 'e2e_us[(len(e2e_us) * 99 + 99) // 100]'} AS p99_us, "
        f"len(e2e_us) / attempted AS availability FROM '{path}'"
    )
    con = duckdb.connect()
    return Engine(
        lambda: con.sql(rows).to_arrow_table(),
        lambda: con.sql(f"SELECT sum(p99_us), sum(availability) FROM ({rows})").fetchall(),
    )


def _build_polars(path: Path, sort: bool) -> Engine:
    n = pl.col("e2e_us").list.len().cast(pl.Int64)
    samples = pl.col("e2e_us").list.sort() if sort else pl.col("e2e_us")
    rows = pl.scan_parquet(path).select(
        "id",
        samples.list.get((n * 99 + 99) // 100 - 1, null_on_oob=True).alias("p99_us"),
        (n / pl.col("attempted")).alias("availability"),
    )
    sums = rows.select(pl.col("p99_us").cast(pl.Int64).sum(), pl.col("availability").sum())
    return Engine(lambda: rows.collect().to_arrow(), lambda: sums.collect(engine="streaming"))


# --- bronze to gold ------------------------------------------------------------------------------------


def measure_week(spark: SparkSession, where: Path, options: Options) -> Result:
    """Measure a week of a thousand brokers, or of fewer at a smaller scale."""
    jobs = Jobs.create(spark, where, simulate_fleet(options.scale_rows(WEEK_BROKERS), WEEK))
    records = write_bronze_in_process(where, jobs.simulated)
    bronze_mb = _measure_mb(where / PROBE_MINUTES.path)
    with track_peak_memory() as peak:
        to_silver, to_gold = jobs.compute(jobs.touch_all())
    more = {
        "broker_minutes_client": count_brokers(jobs.simulated) * WEEK,
        **_list_steps(to_silver=to_silver, to_gold=to_gold),
        "bronze_mb": bronze_mb,
        "silver_mb": _measure_mb(where / "silver"),
    }
    return Result("week", records, (to_silver + to_gold).wall_s, {}, peak(), more)


def _list_steps(**steps: Duration) -> dict[str, float]:
    """Return the seconds of each step, and the CPU seconds of all together."""
    return {f"{name}_s": step.wall_s for name, step in steps.items()} | {
        "cpu_s": round(sum(step.cpu_s for step in steps.values()), 1)
    }


def measure_growth(spark: SparkSession, where: Path, options: Options) -> Result:
    """Measure the same fleet over longer and longer spans."""
    costs: dict[int, Duration] = {}
    for size in (options.scale_rows(full) for full in GROWTH_SIZES):
        folder = where / str(size)
        brokers = count_brokers(simulated := simulate_fleet(WEEK_BROKERS // 10, 1))
        jobs = Jobs.create(
            spark, folder, SimulatedFleet(simulated.seed, simulated.clusters, START, size // brokers)
        )
        records = write_bronze_in_process(folder, jobs.simulated)
        with track_peak_memory() as peak:
            to_silver, to_gold = jobs.compute(jobs.touch_all())
        costs[records] = to_silver + to_gold
        shutil.rmtree(folder)
    exponents = {
        f"exponent_of_{name}": fit_growth_exponent(
            list(costs), [getattr(cost, name) for cost in costs.values()]
        )
        for name in ("wall_s", "cpu_s")
    }
    by_records = {str(records): [cost.wall_s, cost.cpu_s] for records, cost in costs.items()}
    most = max(costs)
    return Result("growth", most, costs[most].wall_s, {}, peak(), {"by_records": by_records, **exponents})


def measure_late_records(spark: SparkSession, where: Path, options: Options) -> Result:
    """Measure until gold has a few minutes of every broker that arrive a day late."""
    jobs = Jobs.create(spark, where, simulate_fleet(options.scale_rows(WEEK_BROKERS), WEEK))
    minutes = LATE_RECORDS // (len(Leg) * count_brokers(jobs.simulated))
    missing = range(WEEK - DAY, WEEK - DAY + minutes)
    records = write_bronze_in_process(where, jobs.simulated, missing)
    jobs.compute(jobs.touch_all())
    raw = _make_raw(spark, where / "late.parquet", jobs.simulated, missing)
    with track_peak_memory() as peak:
        to_bronze, to_silver, to_gold = jobs.ingest(raw)
    more = {
        "late_records": raw.count(),
        **_list_steps(to_bronze=to_bronze, to_silver=to_silver, to_gold=to_gold),
    }
    total = to_bronze + to_silver + to_gold
    return Result("late", records, total.wall_s, {}, peak(), more)


def measure_stream(spark: SparkSession, where: Path, options: Options) -> Result:
    """Measure one minute of a very large fleet as a single batch; the lake has the minute before."""
    simulated = simulate_fleet(options.scale_rows(STREAM_BROKER_MINUTES) // len(Leg), 2)
    jobs = Jobs.create(spark, where, simulated)
    jobs.ingest(_make_raw(spark, where / "first.parquet", simulated, range(1)))
    raw = _make_raw(spark, where / "second.parquet", simulated, range(1, 2))
    with track_peak_memory() as peak:
        to_bronze, to_silver, to_gold = jobs.ingest(raw)
    more = {
        "in_silver_s": (to_bronze + to_silver).wall_s,
        **_list_steps(to_bronze=to_bronze, to_silver=to_silver, to_gold=to_gold),
    }
    total = to_bronze + to_silver + to_gold
    return Result("stream", raw.count(), total.wall_s, {}, peak(), more)


def measure_steady_stream(spark: SparkSession, where: Path, options: Options) -> Result:
    """Measure from raw records to silver and to gold: a thousand brokers, a minute's records per batch."""
    simulated = simulate_fleet(options.scale_rows(WEEK_BROKERS), STEADY_MINUTES)
    jobs = Jobs.create(spark, where, simulated)
    records, in_silver, in_gold = 0, [], []
    with track_peak_memory() as peak:
        for minute in range(STEADY_MINUTES):
            raw = _make_raw(spark, where / f"{minute}.parquet", simulated, range(minute, minute + 1))
            to_bronze, to_silver, to_gold = jobs.ingest(raw)
            records += raw.count()
            in_silver.append((to_bronze + to_silver).wall_s)
            in_gold.append((to_bronze + to_silver + to_gold).wall_s)
    more = {
        f"p{percent}_in_{table}_s": quantile_of(percent, sorted(times[WARM_UP_MINUTES:]))
        for table, times in (("silver", in_silver), ("gold", in_gold))
        for percent in (50, 95)
    }
    return Result("steady", records, more["p95_in_gold_s"] or 0.0, {}, peak(), more)


def measure_small_stream(spark: SparkSession, where: Path, options: Options) -> Result:
    """Measure a batch with a minute of three clusters of three brokers, through the whole pipeline."""
    _, pipeline = opened(spark, where, FLEET)
    costs: list[Duration] = []
    works: list[SparkWork] = []
    batches = WARM_UP_MINUTES + options.scale_rows(SMALL_BATCHES)
    with track_peak_memory() as peak:
        for number in range(batches):
            work = partial(process_minute, spark, pipeline, number)
            works.append(
                count_spark_work(spark, where, lambda work=work: costs.append(measure_duration(work)))
            )
    wall_s, cpu_s = (
        sorted(getattr(cost, name) for cost in costs[WARM_UP_MINUTES:]) for name in ("wall_s", "cpu_s")
    )
    more = {"p95_s": quantile_of(95, wall_s), "cpu_s": quantile_of(50, cpu_s), **asdict(works[-1])}
    return Result("steady-small", batches * RECORDS_A_MINUTE, median(wall_s), {}, peak(), more)


def _make_raw(spark: SparkSession, path: Path, simulated: SimulatedFleet, minutes: range) -> DataFrame:
    """Return the records of some minutes of an hour as rows of the topic."""
    values, sources = [], []
    for cluster in range(simulated.clusters):
        part = simulated.simulate_week(cluster, minutes.start // WEEK)
        for record in make_probe_minutes(part, minutes.start // HOUR):
            if (record.minute - simulated.start) // _MINUTE in minutes:
                values.append(record.encode())
                sources.append(f"late/{cluster}/{len(sources)}")
    positions = np.arange(len(values))
    hint = pa.nulls(len(values), pa.string())
    pq.write_table(
        pa.table(
            {"value": pa.array(values, pa.binary()), "source": sources, "position": positions, "hint": hint}
        ),
        path,
        row_group_size=max(1, len(values) // 8),
    )
    return spark.read.schema(RAW_DDL).parquet(str(path))


def _measure_mb(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*.parquet")) // 10**6


CASES: Mapping[str, Callable[[SparkSession, Path, Options], Result]] = {
    "p99-raw": lambda *arguments: measure_p99(*arguments, sort=True),
    "p99-ascending": lambda *arguments: measure_p99(*arguments, sort=False),
    "week": measure_week,
    "growth": measure_growth,
    "late": measure_late_records,
    "stream": measure_stream,
    "steady": measure_steady_stream,
    "steady-small": measure_small_stream,
}
