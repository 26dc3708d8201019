"""Frames and rows as a reader returns them."""

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa

from fleetgauge_core import tables
from fleetgauge_core.tables import Table
from fleetgauge_core.tables.arrow_schema import ARROW_TYPES
from fleetgauge_dashboards.reader import ClusterWeek, FleetWeek
from fleetgauge_dashboards.reader.lake import BROKER_MINUTE_COLUMNS, CLUSTER_MINUTE_COLUMNS, RECENT_COLUMNS

START = datetime(2026, 3, 2, 10, tzinfo=UTC)
WEEK = date(2026, 3, 2)


def minute(number: int) -> datetime:
    return START + timedelta(minutes=number)


def frame(table: Table, names: tuple[str, ...], rows: Iterable[dict[str, Any]]) -> pa.Table:
    types = {column.name: ARROW_TYPES[column.type] for column in table.columns}
    schema = pa.schema([(name, types[name]) for name in names])
    return pa.Table.from_pylist([dict.fromkeys(names) | row for row in rows], schema=schema)


def recent(rows: Iterable[dict[str, Any]]) -> pa.Table:
    return frame(tables.CLUSTER_MINUTES, RECENT_COLUMNS, rows)


def cluster_minutes(rows: Iterable[dict[str, Any]]) -> pa.Table:
    return frame(tables.CLUSTER_MINUTES, CLUSTER_MINUTE_COLUMNS, rows)


def broker_minutes(rows: Iterable[dict[str, Any]]) -> pa.Table:
    return frame(tables.BROKER_MINUTES, BROKER_MINUTE_COLUMNS, rows)


def cluster_week(cluster_id: str = "orders-eu", **changed: Any) -> ClusterWeek:
    values: dict[str, Any] = {
        "cluster_id": cluster_id,
        "week": WEEK,
        "revision": 0,
        "latency_p99_us": 43_100,
        "latency_p99_censored_us": 92_500,
        "availability_ratio": 0.99934,
        "bad_minutes": 38,
        "latency_objective_us": 100_000,
        "latency_budget_minutes": 100.8,
        "latency_budget_left_minutes": 62.8,
        "availability_objective": 0.9995,
        "availability_budget_minutes": 5.04,
        "availability_spent_minutes": 6.65,
        "minutes_measured": 10_067,
        "minutes_expected": 10_080,
        "coverage": 0.9987,
        "closed": False,
        "revision_reason": None,
    }
    return ClusterWeek(**values | changed)


def fleet_week(metric: str, clusters: int = 2, **changed: Any) -> FleetWeek:
    values: dict[str, Any] = {
        "week": WEEK,
        "metric": metric,
        "segment_value": "",
        "revision": 0,
        "median": 1.0,
        "p90": 1.0,
        "p99": 1.0,
        "clusters": clusters,
        "clusters_excluded": 0,
        "closed": False,
    }
    return FleetWeek(**values | changed)
