"""The exact p99 of each broker-minute from Parquet: our Spark expression against DuckDB by sorting."""

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as F  # noqa: N812

from fleetgauge_pipelines.io.session import open_session
from fleetgauge_pipelines.transforms.quantile import quantile

ROWS, SAMPLES, RUNS = 300_000, 100, 5


def _data(folder: Path) -> Path:
    generator = np.random.default_rng(7)
    samples = np.sort(generator.lognormal(8.5, 0.6, (ROWS, SAMPLES)).astype("int32"), axis=1)
    lists = pa.ListArray.from_arrays(
        pa.array(np.arange(0, ROWS * SAMPLES + 1, SAMPLES, dtype="int32")), pa.array(samples.ravel())
    )
    path = folder / "minutes.parquet"
    pq.write_table(pa.table({"e2e_us": lists}), path, row_group_size=ROWS // 8)
    return path


def _median_s(work: Callable[[], Any]) -> float:
    work()
    times = []
    for _ in range(RUNS):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def measure() -> dict[str, Any]:
    """Seconds (medians) and our time over the peer's; both sum the quantiles, which must agree."""
    with tempfile.TemporaryDirectory() as folder:
        path = _data(Path(folder))
        spark = open_session("bench", lambda _: None)
        try:
            p99 = quantile(99, F.col("e2e_us"))

            def ours() -> int:
                row = spark.read.parquet(str(path)).select(F.sum(p99.cast("long"))).first()
                return int(row[0]) if row else -1

            query = f"SELECT sum(list_sort(e2e_us)[99]) FROM '{path}'"

            def peer() -> int:
                found = duckdb.sql(query).fetchone()
                return int(found[0]) if found else -1

            if ours() != peer():
                raise AssertionError("the two do not agree on the quantiles")
            ours_s, peer_s = _median_s(ours), _median_s(peer)
        finally:
            spark.stop()
    return {
        "rows": ROWS,
        "samples": SAMPLES,
        "spark_s": round(ours_s, 3),
        "duckdb_sorting_s": round(peer_s, 3),
        "ratio": round(ours_s / peer_s, 2),
    }
