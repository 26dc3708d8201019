"""Writes the lake of a very large fleet: gold of every cluster, silver of some for the open week."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from deltalake import write_deltalake

from fleetgauge_core import tables
from fleetgauge_core.tables import Table
from fleetgauge_core.tables.arrow_schema import arrow_schema

CLUSTERS, WEEKS = 10_000, 35
WITH_MINUTES, BROKERS = 200, 12
OBJECTIVE_US = 100_000
#: The cluster with minutes of each broker.
DETAILED_CLUSTER = "cluster-00000"

Columns = Mapping[str, Any]


def write_lake(
    root: Path, clusters: int, now: datetime, weeks: int = WEEKS, with_minutes: int = WITH_MINUTES
) -> date:
    """Write a lake of seeded random numbers and return its last week, which is open."""
    random = np.random.default_rng(1)
    newest = (now - timedelta(days=now.weekday())).date()
    for back in range(weeks):
        week = newest - timedelta(days=7 * back)
        _append(root, tables.CLUSTER_WEEKS, _simulate_cluster_weeks(random, clusters, week, back))
    _append(root, tables.FLEET_WEEKS, _simulate_fleet_weeks(random, clusters, newest, weeks))
    _append(root, tables.HEALTH_EVENTS, {"event_id": []})
    minutes = _list_last_week(now)
    for cluster in range(min(clusters, with_minutes)):
        _append(root, tables.CLUSTER_MINUTES, _simulate_cluster_minutes(random, cluster, minutes))
    for broker in range(1, BROKERS + 1):
        for leg in ("client", "leader"):
            _append(root, tables.BROKER_MINUTES, _simulate_broker_minutes(random, broker, leg, minutes))
    return newest


def _append(root: Path, table: Table, columns: Columns) -> None:
    rows = len(next(iter(columns.values())))
    typed = arrow_schema(table)
    data = [
        pa.array(columns[field.name], field.type) if field.name in columns else pa.nulls(rows, field.type)
        for field in typed
    ]
    write_deltalake(
        str(root / table.path),
        pa.Table.from_arrays(data, schema=typed),
        mode="append",
        partition_by=list(table.partition_by) or None,
    )


def _simulate_cluster_weeks(random: np.random.Generator, clusters: int, week: date, back: int) -> Columns:
    p99_us = (30_000 * random.lognormal(0, 0.5, clusters)).astype(np.int64)
    bad = random.poisson(np.where(random.random(clusters) < 0.03, 150, 8))
    return {
        "cluster_id": [f"cluster-{n:05}" for n in range(clusters)],
        "week": [week] * clusters,
        "revision": [min(back, 1)] * clusters,
        "latency_p99_us": p99_us,
        "latency_p99_censored_us": p99_us + 1_000 * bad,
        "availability_p99": 1 - random.exponential(1e-3, clusters),
        "availability_ratio": 1 - random.exponential(2e-4, clusters),
        "bad_minutes": bad,
        "latency_objective_us": [OBJECTIVE_US] * clusters,
        "latency_budget_minutes": [100.8] * clusters,
        "latency_budget_left_minutes": 100.8 - bad,
        "availability_objective": [0.9995] * clusters,
        "availability_budget_minutes": [5.04] * clusters,
        "availability_spent_minutes": random.exponential(2, clusters),
        "minutes_measured": [10_070] * clusters,
        "minutes_expected": [10_080] * clusters,
        "coverage": np.where(random.random(clusters) < 0.01, 0.7, 0.998),
        "causes": [[("unknown", int(minutes))] for minutes in bad],
        "closed": [back > 0] * clusters,
        "computed_at": [datetime.combine(week + timedelta(days=9), time(), UTC)] * clusters,
    }


def _simulate_fleet_weeks(random: np.random.Generator, clusters: int, newest: date, weeks: int) -> Columns:
    metrics = ("latency_p99_us", "availability_ratio", "availability_p99", "latency_budget_left_minutes")
    keys = [(newest - timedelta(days=7 * back), metric) for back in range(weeks) for metric in metrics]
    rows = len(keys)
    return {
        "week": [week for week, _ in keys],
        "metric": [metric for _, metric in keys],
        "segment": ["fleet"] * rows,
        "segment_value": [""] * rows,
        "revision": [1] * rows,
        "median": random.uniform(0.9, 1, rows),
        "p90": random.uniform(0.8, 0.9, rows),
        "p99": random.uniform(0.7, 0.8, rows),
        "clusters": [clusters] * rows,
        "clusters_excluded": [0] * rows,
        "closed": [week < newest for week, _ in keys],
    }


def _list_last_week(now: datetime) -> list[datetime]:
    """Return the minutes of the seven days before ``now``."""
    last = now.replace(second=0, microsecond=0) - timedelta(minutes=1)
    return [last - timedelta(minutes=ago) for ago in reversed(range(7 * 24 * 60))]


def _simulate_cluster_minutes(random: np.random.Generator, cluster: int, minutes: list[datetime]) -> Columns:
    rows = len(minutes)
    p99_us = (30_000 * random.lognormal(0, 0.3, rows)).astype(np.int64)
    return {
        "cluster_id": [f"cluster-{cluster:05}"] * rows,
        "minute": minutes,
        "day": [minute.date() for minute in minutes],
        "latency_p99_us": p99_us,
        "latency_worst_home": random.integers(1, BROKERS + 1, rows),
        "latency_p99_censored_us": p99_us,
        "availability": np.ones(rows),
        "availability_pooled": np.ones(rows),
        "brokers_expected": [BROKERS] * rows,
        "brokers_measured": [BROKERS] * rows,
        "attempted": [100 * BROKERS] * rows,
        "succeeded": [100 * BROKERS] * rows,
    }


def _simulate_broker_minutes(
    random: np.random.Generator, broker: int, leg: str, minutes: list[datetime]
) -> Columns:
    rows = len(minutes)
    p99_us = (20_000 * random.lognormal(0, 0.3, rows)).astype(np.int64)
    return {
        "cluster_id": [DETAILED_CLUSTER] * rows,
        "broker_id": [broker] * rows,
        "leg": [leg] * rows,
        "minute": minutes,
        "day": [minute.date() for minute in minutes],
        "attempted": [100] * rows,
        "succeeded": [100] * rows,
        "availability": np.ones(rows),
        "latency_p99_us": p99_us,
        "latency_p99_censored_us": p99_us,
        "measured": [True] * rows,
    }
