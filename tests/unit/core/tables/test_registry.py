from dataclasses import fields

import pytest

from fleetgauge_core import tables
from fleetgauge_core.contract import ClusterChange, HealthEvent, ProbeMinute
from fleetgauge_core.tables import (
    ALL_TABLES,
    CHANGES,
    CLUSTER_WEEKS,
    HEALTH_EVENTS,
    PROBE_MINUTES,
    ColumnType,
    Table,
)

EACH_TABLE = pytest.mark.parametrize("table", ALL_TABLES, ids=lambda table: table.path)


@EACH_TABLE
def test_key_partition_and_volatile_columns_are_columns(table: Table) -> None:
    assert set(table.key) | set(table.partition_by) | set(table.volatile) <= set(table.column_names)
    assert table.key


@EACH_TABLE
def test_a_column_is_named_once_and_no_key_is_volatile(table: Table) -> None:
    assert len(set(table.column_names)) == len(table.column_names)
    assert not set(table.key) & set(table.volatile)


@EACH_TABLE
def test_columns_have_the_types_that_their_names_imply(table: Table) -> None:
    types = {column.name: column.type for column in table.columns}
    for name, type_ in types.items():
        if name.endswith("_us") and type_ is not ColumnType.INT_ARRAY:
            assert type_ in (ColumnType.LONG, ColumnType.INT)
        if name.startswith("availability") and not name.endswith(("_home", "_verdict")):
            assert type_ is ColumnType.DOUBLE
    assert types.get("minute", ColumnType.TIMESTAMP) is ColumnType.TIMESTAMP
    assert types.get("week", ColumnType.DATE) is ColumnType.DATE
    assert types.get("day", ColumnType.DATE) is ColumnType.DATE


@EACH_TABLE
def test_large_tables_are_partitioned_by_day_and_others_not_at_all(table: Table) -> None:
    is_large = table.path.startswith(("bronze/", "silver/")) or table.path.endswith("_minutes")
    assert table.partition_by == (("day",) if is_large else ())


def test_paths_are_unique_and_start_with_a_layer() -> None:
    paths = [table.path for table in ALL_TABLES]
    assert len(set(paths)) == len(paths)
    assert {path.split("/")[0] for path in paths} <= {"bronze", "silver", "gold", "ops", "recovery"}


def test_every_exported_table_is_in_the_registry() -> None:
    exported = [table for name in tables.__all__ if isinstance(table := getattr(tables, name), Table)]
    assert {table.path for table in exported} == {table.path for table in ALL_TABLES}


@pytest.mark.parametrize(
    ("table", "record"),
    [(PROBE_MINUTES, ProbeMinute), (HEALTH_EVENTS, HealthEvent), (CHANGES, ClusterChange)],
)
def test_a_table_of_records_has_every_field_of_its_record(table: Table, record: type) -> None:
    assert {field.name for field in fields(record)} <= set(table.column_names)


@pytest.mark.parametrize(
    ("path", "key", "columns"),
    [
        ("bronze/probe_minutes", "run_id sequence", "source ingested_at day"),
        ("ops/quarantine", "source", "value reason detail ingested_at"),
        (
            "silver/broker_minutes",
            "cluster_id broker_id leg minute",
            "attempted succeeded acknowledged received availability latency_p50_us latency_p99_us"
            " latency_p99_censored_us latency_max_us ack_p99_us failures lost duplicated vantages"
            " agent_late measured led_by day",
        ),
        (
            "silver/cluster_minutes",
            "cluster_id minute",
            "latency_p99_us latency_worst_home latency_p99_censored_us latency_pooled_p99_us availability"
            " availability_worst_home availability_pooled leader_ack_p99_us leader_worst_broker"
            " brokers_expected brokers_measured cause day",
        ),
        (
            "gold/cluster_weeks",
            "cluster_id week revision",
            "latency_p99_us latency_p99_censored_us availability_p99 availability_ratio bad_minutes"
            " latency_objective_us latency_budget_minutes latency_budget_left_minutes"
            " availability_objective availability_budget_minutes availability_spent_minutes"
            " minutes_measured minutes_expected coverage closed revision_reason definition computed_at",
        ),
        (
            "gold/fleet_weeks",
            "week metric segment segment_value revision",
            "median p90 p99 clusters clusters_excluded closed",
        ),
        (
            "gold/change_costs",
            "cluster_id change_id",
            "kind broker_id starts ends minutes_measured control_weeks bad_minutes bad_minutes_expected"
            " bad_minutes_low bad_minutes_high bad_minutes_verdict latency_budget_share"
            " availability_spent_minutes availability_spent_minutes_expected availability_spent_minutes_low"
            " availability_spent_minutes_high availability_spent_minutes_verdict availability_budget_share"
            " computed_at",
        ),
        (
            "ops/changes",
            "event_id",
            "change_id cluster_id broker_id topic segment segment_value kind phase at starts ends before"
            " after evidence source author title link",
        ),
        (
            "ops/health_events",
            "event_id",
            "cluster_id broker_id at from_state to_state kind evidence fingerprint",
        ),
    ],
)
def test_a_table_has_the_columns_on_which_readers_rely(path: str, key: str, columns: str) -> None:
    table = next(table for table in ALL_TABLES if table.path == path)
    assert table.key == tuple(key.split())
    assert set(columns.split()) <= set(table.column_names)


def test_every_raw_column_of_a_week_has_the_type_of_its_corrected_column() -> None:
    types = {column.name: column.type for column in CLUSTER_WEEKS.columns}
    raw = [name for name in types if name.endswith("_raw")]
    assert {types[name] is types[name.removesuffix("_raw")] for name in raw} == {True}
    assert {"latency_p99_us_raw", "availability_ratio_raw", "bad_minutes_raw"} <= set(raw)
