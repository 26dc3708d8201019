"""Writes the bronze table of a simulated fleet, column by column and without Avro."""

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime, timedelta
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from fleetgauge_core.contract import Leg
from fleetgauge_core.tables import PROBE_MINUTES
from fleetgauge_pipelines.simulation import SimulatedFleet, SimulatedWeek
from fleetgauge_pipelines.simulation.latency_trend import DAY, HOUR, WEEK
from fleetgauge_pipelines.simulation.silver import FAILURE, derive_ack_us
from fleetgauge_pipelines.simulation.simulated_week import PROBES_PER_MINUTE

START = datetime(2026, 11, 9, tzinfo=UTC)
SEED = 11
#: Number of brokers whose records of a day are held in memory at once.
_BROKERS_AT_ONCE = 100

Columns = dict[str, Any]


def simulate_fleet(brokers: int, minutes: int) -> SimulatedFleet:
    """Return a fleet of the seed's first clusters that together have at least ``brokers`` brokers."""
    clusters, simulated_brokers = 0, 0
    while simulated_brokers < brokers:
        simulated_brokers += len(SimulatedFleet(SEED, 1, START, 1).profile(clusters).brokers)
        clusters += 1
    return SimulatedFleet(SEED, clusters, START, minutes)


def count_brokers(simulated: SimulatedFleet) -> int:
    return sum(len(profile.brokers) for profile in simulated.profiles)


def write_bronze(lake: Path, simulated: SimulatedFleet, skip: range = range(0)) -> int:
    """Write all records except those of the minutes ``skip`` to the existing table; return their number."""
    table = DeltaTable(str(lake / PROBE_MINUTES.path))
    schema = pa.schema(table.schema().to_arrow())
    written = 0
    for day in range(-(-simulated.minutes // DAY)):
        for clusters in _batch_clusters(simulated):
            batches = [
                pa.RecordBatch.from_pydict(columns, schema)
                for cluster in clusters
                for columns in _simulate_day(simulated, cluster, day, skip)
            ]
            rows = pa.Table.from_batches(batches, schema)
            write_deltalake(table, rows, mode="append")
            written += rows.num_rows
    return written


def write_bronze_in_process(lake: Path, simulated: SimulatedFleet, skip: range = range(0)) -> int:
    """Do what write_bronze does in a separate process, whose memory is free once it has ended."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(write_bronze, lake, simulated, skip).result()


def _batch_clusters(simulated: SimulatedFleet) -> Iterator[list[int]]:
    clusters: list[int] = []
    brokers = 0
    for cluster, profile in enumerate(simulated.profiles):
        clusters.append(cluster)
        brokers += len(profile.brokers)
        if brokers >= _BROKERS_AT_ONCE:
            yield clusters
            clusters, brokers = [], 0
    if clusters:
        yield clusters


def _simulate_day(simulated: SimulatedFleet, cluster: int, day: int, skip: range) -> Iterator[Columns]:
    part = simulated.simulate_week(cluster, day * DAY // WEEK)
    for hour in range(day * DAY // HOUR, min((day + 1) * DAY, simulated.minutes + HOUR - 1) // HOUR):
        for leg in Leg:
            yield _build_columns(part, leg, hour, skip)


def _build_columns(part: SimulatedWeek, leg: Leg, hour: int, skip: range) -> Columns:
    """Return the columns of one leg's records of an hour, in the order of their minutes."""
    during, brokers = part.hour(hour), np.array(part.profile.brokers, "int32")
    minutes = np.arange(len(part.silent))[during]
    kept = ~part.silent[during] & ~np.isin(minutes + part.first_minute, skip)
    samples = part.samples_us(leg, hour)[kept].reshape(-1, PROBES_PER_MINUTE).astype("int32")
    failed = part.leg(leg).failed[during][kept].reshape(-1).astype("int32")
    minute, broker = np.repeat(minutes[kept], len(brokers)), np.tile(brokers, int(kept.sum()))
    rows, succeeded, is_client = len(failed), (PROBES_PER_MINUTE - failed).astype("int32"), leg is Leg.CLIENT
    values = samples[np.arange(PROBES_PER_MINUTE) >= failed[:, None]]
    at = np.datetime64(part.start.replace(tzinfo=None), "us") + minute * np.timedelta64(1, "m")
    e2e, no_samples = _to_lists(values, succeeded), _to_lists(values[:0], np.zeros(rows, "int32"))

    def repeat(value: Any, type_: pa.DataType) -> pa.Array:
        return pa.repeat(pa.scalar(value, type_), rows)

    sequence = (minute.astype("int64") * len(brokers) + broker - 1) * len(Leg) + list(Leg).index(leg)
    broker_ids = pa.array([part.profile.brokers], pa.list_(pa.int32()))
    expected_brokers = broker_ids.take(pa.array(np.zeros(rows, "int32")))
    return {
        **{name: repeat("simulated", pa.string()) for name in ("agent_id", "agent_version", "vantage")},
        "run_id": repeat(f"{part.cluster}/{part.first_minute}", pa.string()),
        "sequence": sequence,
        "cluster_id": repeat(part.profile.cluster_id, pa.string()),
        "kafka_cluster_uuid": repeat(part.profile.kafka_cluster_uuid, pa.string()),
        "broker_id": broker,
        "rack": pa.array(part.profile.racks).take(pa.array(broker - 1)),
        "leg": repeat(leg.value, pa.string()),
        "minute": pa.array(at).cast(pa.timestamp("us", "UTC")),
        "expected_brokers": expected_brokers,
        "attempted": repeat(PROBES_PER_MINUTE, pa.int32()),
        "acknowledged": succeeded,
        "received": succeeded if is_client else np.zeros(rows, "int32"),
        "ack_us": _to_lists(derive_ack_us(values), succeeded) if is_client else e2e,
        "e2e_us": e2e if is_client else no_samples,
        "produce_failures": _to_failure_maps(failed),
        "consume_failures": _to_failure_maps(np.zeros(rows, "int32")),
        **{name: repeat(0, pa.int32()) for name in ("lost", "duplicated", "out_of_order", "leader_epoch")},
        "schedule_lag_p95_us": repeat(900, pa.int32()),
        "schedule_lag_max_us": repeat(2_600, pa.int32()),
        "led_by": _to_lists(broker, np.ones(rows, "int32")),
        "emitted_at": pa.array(at + np.timedelta64(71, "s")).cast(pa.timestamp("us", "UTC")),
        "source": repeat(f"topic/0/{part.cluster}", pa.string()),
        "ingested_at": repeat(part.start + timedelta(days=8), pa.timestamp("us", "UTC")),
        "day": pa.array(at.astype("datetime64[D]")),
    }


def _to_lists(values: Any, sizes: Any) -> pa.ListArray:
    return pa.ListArray.from_arrays(_to_offsets(sizes), pa.array(values.astype("int32")))


def _to_failure_maps(failed: Any) -> pa.MapArray:
    has_failures = failed > 0
    keys = pa.repeat(pa.scalar(FAILURE, pa.string()), int(has_failures.sum()))
    return pa.MapArray.from_arrays(_to_offsets(has_failures), keys, pa.array(failed[has_failures]))


def _to_offsets(sizes: Any) -> pa.Array:
    return pa.array(np.concatenate([[0], np.cumsum(sizes)]).astype("int32"))
