"""Measures bronze to gold beside the same tables written by DuckDB and by Polars, from the same files."""

import os
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from fleetgauge_core.tables import (
    BROKER_MINUTES,
    CLUSTER_MINUTES,
    CLUSTER_WEEKS,
    FLEET_WEEKS,
    PROBE_MINUTES,
    Table,
)
from fleetgauge_pipelines.jobs.settings import define_week, list_segment_rows, make_week_calendar
from fleetgauge_pipelines.simulation.latency_trend import WEEK
from tests.benchmarks._bronze import simulate_fleet, write_bronze_in_process
from tests.benchmarks._jobs import Jobs, run_session
from tests.benchmarks._measure import Options, Result, time_alternately, track_peak_memory
from tests.benchmarks._peers import PEERS, PeerInput
from tests.oracle.compare import RELATIVE_TOLERANCE

BROKERS = 300
#: A run takes minutes.
RUNS = 3
#: Sums of doubles, whose last bits depend on the order of their terms.
_SUMS = ("availability_spent_minutes",)
_TABLES = (BROKER_MINUTES, CLUSTER_MINUTES, CLUSTER_WEEKS, FLEET_WEEKS)
_MINUTE = timedelta(minutes=1)


def measure(options: Options) -> Iterator[Result]:
    """Measure a week of 300 brokers, or of fewer at a smaller scale; all tables must be equal first."""
    with tempfile.TemporaryDirectory(prefix="fleetgauge-bench-") as name, run_session() as spark:
        folder = Path(name)
        lakes = [_create_lake(spark, folder / "ours", options)]
        records = write_bronze_in_process(folder / "ours", lakes[0].simulated)
        lakes += [_copy_bronze(spark, folder, number, options) for number in range(1 + RUNS)]
        lakes[0].compute(lakes[0].touch_all())
        peer = build_peer_input(lakes[0])
        for peer_name, compute in PEERS.items():
            compute(peer, folder / peer_name)
            for table in _TABLES:
                compare(table, folder / "ours", folder / peer_name)
        unused = iter(lakes[1:])

        def compute_ours() -> None:
            jobs = next(unused)
            jobs.compute(jobs.touch_all())

        works = {name: partial(compute, peer, folder / name) for name, compute in PEERS.items()}
        with track_peak_memory() as peak:
            times = time_alternately({"ours": compute_ours, **works}, RUNS)
        yield Result("peer-pipelines", records, times.pop("ours"), times, peak())


def _create_lake(spark: SparkSession, folder: Path, options: Options) -> Jobs:
    return Jobs.create(spark, folder, simulate_fleet(options.scale_rows(BROKERS), WEEK))


def _copy_bronze(spark: SparkSession, folder: Path, number: int, options: Options) -> Jobs:
    """Return the jobs of another lake with the same files of bronze."""
    jobs = _create_lake(spark, folder / f"ours-{number}", options)
    bronze = folder / f"ours-{number}" / PROBE_MINUTES.path
    shutil.rmtree(bronze)
    shutil.copytree(folder / "ours" / PROBE_MINUTES.path, bronze, copy_function=os.link)
    return jobs


def build_peer_input(jobs: Jobs) -> PeerInput:
    """Return the files of a lake's bronze, and what its fleet file says."""
    files: dict[date, list[str]] = defaultdict(list)
    actions = DeltaTable(jobs.lake.path(PROBE_MINUTES)).get_add_actions(flatten=True)
    for row in pa.table(actions).select(["path", "partition.day"]).to_pylist():
        files[row["partition.day"]].append(f"{jobs.lake.path(PROBE_MINUTES)}/{row['path']}")
    calendar, fleet, end = make_week_calendar(jobs.fleet), jobs.fleet, jobs.simulated.end
    weeks = [
        define_week(fleet, cluster, span, end)
        for cluster in fleet.clusters
        for span in calendar.weeks_between(jobs.simulated.start, end - _MINUTE)
    ]
    spans = [
        {
            "cluster_id": cluster.id,
            "first": jobs.simulated.start,
            "last": end - _MINUTE,
            "objective_us": fleet.latency_objective_us(cluster),
        }
        for cluster in fleet.clusters
    ]
    segments = [
        dict(zip(("cluster_id", "segment", "segment_value"), row, strict=True))
        for row in list_segment_rows(fleet)
    ]
    return PeerInput(
        dict(sorted(files.items())),
        _to_table(spans),
        _to_table([week._asdict() for week in weeks]),
        _to_table(segments),
    )


def compare(table: Table, ours: Path, peer: Path) -> None:
    """Raise AssertionError unless the columns that a peer has written of a table equal ours."""
    theirs = ds.dataset(_find_output(table, peer)).to_table()
    stored = DeltaTable(str(ours / table.path)).to_pyarrow_table(columns=theirs.column_names)
    schema = pa.schema([(field.name, _without_maps(field.type)) for field in stored.schema])
    keys = [(name, "ascending") for name in table.key if name in theirs.column_names]
    stored, theirs = (rows.cast(schema).sort_by(keys) for rows in (stored, theirs))
    for name in schema.names:
        if name in _SUMS:
            np.testing.assert_allclose(theirs[name], stored[name], rtol=RELATIVE_TOLERANCE)
        elif not theirs[name].equals(stored[name]):
            raise AssertionError(f"{table.path}: {peer.name} computes another {name}")


def _find_output(table: Table, peer: Path) -> Path:
    output = peer / Path(table.path).name
    return output if output.is_dir() else output.with_suffix(".parquet")


def _without_maps(type_: pa.DataType) -> pa.DataType:
    """Return lists of entries for maps, which Arrow cannot compare."""
    if not pa.types.is_map(type_):
        return type_
    return pa.list_(pa.struct([("key", type_.key_type), ("value", type_.item_type)]))


def _to_table(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(list(rows))
