from dataclasses import fields

import pytest

from fleetgauge_core import tables
from fleetgauge_core.contract import HealthEvent, ProbeMinute
from fleetgauge_core.tables import (
    ALL,
    CLUSTER_WEEKS,
    HEALTH_EVENTS,
    PROBE_MINUTES,
    Table,
    Type,
)

EVERY = pytest.mark.parametrize("table", ALL, ids=lambda table: table.path)


@EVERY
def test_key_partition_and_volatile_columns_are_columns(table: Table) -> None:
    assert set(table.key) | set(table.partition_by) | set(table.volatile) <= set(table.names)
    assert table.key


@EVERY
def test_a_column_is_named_once_and_no_key_is_volatile(table: Table) -> None:
    assert len(set(table.names)) == len(table.names)
    assert not set(table.key) & set(table.volatile)


@EVERY
def test_columns_have_the_types_that_their_names_say(table: Table) -> None:
    of = {column.name: column.type for column in table.columns}
    for name, type_ in of.items():
        if name.endswith("_us") and type_ is not Type.INTS:
            assert type_ in (Type.LONG, Type.INT)
        if name.startswith("availability") and not name.endswith("_home"):
            assert type_ is Type.DOUBLE
    assert of.get("minute", Type.TIMESTAMP) is Type.TIMESTAMP
    assert of.get("week", Type.DATE) is Type.DATE
    assert of.get("day", Type.DATE) is Type.DATE


@EVERY
def test_the_big_tables_are_partitioned_by_day_and_the_rest_not_at_all(table: Table) -> None:
    is_big = table.path.startswith(("bronze/", "silver/")) or table.path.endswith("_minutes")
    assert table.partition_by == (("day",) if is_big else ())


def test_paths_are_unique_and_lie_in_a_layer() -> None:
    paths = [table.path for table in ALL]
    assert len(set(paths)) == len(paths)
    assert {path.split("/")[0] for path in paths} <= {"bronze", "silver", "gold", "ops", "recovery"}


def test_every_table_that_the_package_names_is_among_them_all() -> None:
    named = [one for name in tables.__all__ if isinstance(one := getattr(tables, name), Table)]
    assert {table.path for table in named} == {table.path for table in ALL}


@pytest.mark.parametrize(("table", "record"), [(PROBE_MINUTES, ProbeMinute), (HEALTH_EVENTS, HealthEvent)])
def test_a_table_of_records_has_every_field_of_its_record(table: Table, record: type) -> None:
    assert {field.name for field in fields(record)} <= set(table.names)


@pytest.mark.parametrize(
    ("path", "key", "some"),
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
            "ops/health_events",
            "event_id",
            "cluster_id broker_id at from_state to_state kind evidence fingerprint",
        ),
    ],
)
def test_readers_find_the_columns_they_rely_on(path: str, key: str, some: str) -> None:
    table = next(one for one in ALL if one.path == path)
    assert table.key == tuple(key.split())
    assert set(some.split()) <= set(table.names)


def test_every_corrected_number_of_a_week_has_its_raw_one_of_the_same_type() -> None:
    of = {column.name: column.type for column in CLUSTER_WEEKS.columns}
    raw = [name for name in of if name.endswith("_raw")]
    assert {of[name] is of[name.removesuffix("_raw")] for name in raw} == {True}
    assert {"latency_p99_us_raw", "availability_ratio_raw", "bad_minutes_raw"} <= set(raw)
