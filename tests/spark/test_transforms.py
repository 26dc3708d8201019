"""Column expressions match the plain definitions, and new tables have the registry's columns."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from fleetgauge_core.slo.levels import (
    CENSORED_LATENCY_US,
    MIN_MEASURED_ATTEMPTS,
    compute_broker_minute_levels,
)
from fleetgauge_core.slo.quantile import quantile as plain_quantile
from fleetgauge_core.slo.quantile import quantile_from_bad_side as plain_quantile_from_bad_side
from fleetgauge_core.tables import (
    ALL_TABLES,
    BROKER_MINUTES,
    CLUSTER_WEEKS,
    PROBE_MINUTES,
    ColumnType,
    Table,
)
from fleetgauge_core.tables.row_diff import diff_rows
from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.io.small_frames import create_dataframe
from fleetgauge_pipelines.transforms.broker_minutes import sum_by_code
from fleetgauge_pipelines.transforms.quantile import censored_quantile, quantile, quantile_from_bad_side
from fleetgauge_pipelines.transforms.row_diff import diff_dataframes

PERCENTS = (1, 50, 90, 95, 99, 100)
AT = datetime(2026, 4, 1, 12, 0, tzinfo=UTC)
DELTA_TYPES = {
    ColumnType.STRING: "string",
    ColumnType.BOOLEAN: "boolean",
    ColumnType.INT: "integer",
    ColumnType.LONG: "long",
    ColumnType.DOUBLE: "double",
    ColumnType.DATE: "date",
    ColumnType.TIMESTAMP: "timestamp",
    ColumnType.BINARY: "binary",
}


# --- Quantiles ---------------------------------------------------------------

#: As many failures as one record may claim.
INT_MAX = 2**31 - 1


def samples() -> list[tuple[int, str, list[int], int]]:
    """Return (id, leg, ascending latencies, attempted) with sizes at the edges of ranks."""
    rng = Random(3)
    sizes = [0, 0, 1, 1, 2, 49, 50, 51, 98, 99, 100, 101, 199, 200, 201, 300]
    sizes += [rng.randint(0, 250) for _ in range(300)]
    drawn = []
    for number, size in enumerate(sizes):
        leg = ("client", "leader")[number % 2]
        highest_us = rng.choice((5, 10_000, CENSORED_LATENCY_US[leg], CENSORED_LATENCY_US[leg] * 2))
        failures = rng.choice((0, 0, 1, 2, rng.randint(0, 120)))
        drawn.append((number, leg, sorted(rng.randint(0, highest_us) for _ in range(size)), size + failures))
    return drawn


@pytest.mark.parametrize("attempted", [INT_MAX, INT_MAX + 1, 100 * INT_MAX])
def test_more_failures_than_an_int_holds_count_at_the_deadline(spark: SparkSession, attempted: int) -> None:
    rows = [([1, 2, 3], attempted), ([], attempted), ([1, 99_000_000], attempted)]
    quantiles = create_dataframe(spark, rows, "latencies array<int>, attempted bigint").select(
        *(
            censored_quantile(a, F.col("latencies"), F.col("attempted"), F.lit(10_000_000)).alias(f"q{a}")
            for a in (1, 50, 99, 100)
        )
    )
    assert [tuple(row) for row in quantiles.collect()] == [(10_000_000,) * 4] * 2 + [
        (10_000_000,) * 3 + (99_000_000,)
    ]


def test_a_sum_of_failures_is_capped_at_the_highest_int(spark: SparkSession) -> None:
    codes = [("A", INT_MAX), ("B", 1), ("A", INT_MAX), ("B", 2)]
    rows = create_dataframe(spark, [(codes,)], "codes array<struct<key: string, value: int>>")
    (row,) = rows.select(sum_by_code(F.col("codes")).alias("failures")).collect()
    assert row["failures"] == {"A": INT_MAX, "B": 3}


def by_hand(a: int, leg: str, latencies: Sequence[int], attempted: int) -> int | None:
    """Compute the quantile with every failure as a value of its own."""
    spelt_out = sorted([*latencies, *[CENSORED_LATENCY_US[leg]] * (attempted - len(latencies))])
    return plain_quantile(a, spelt_out)


def test_column_quantiles_match_the_plain_definition(spark: SparkSession) -> None:
    drawn = samples()
    ddl = "id int, leg string, latencies array<int>, attempted bigint"
    deadline = F.when(F.col("leg") == "client", CENSORED_LATENCY_US["client"]).otherwise(
        CENSORED_LATENCY_US["leader"]
    )
    values = F.col("latencies")
    quantiles = create_dataframe(spark, drawn, ddl).select(
        "id",
        *(quantile(a, values).alias(f"q{a}") for a in PERCENTS),
        *(quantile_from_bad_side(a, values).alias(f"bad{a}") for a in PERCENTS),
        *(censored_quantile(a, values, F.col("attempted"), deadline).alias(f"cens{a}") for a in PERCENTS),
    )

    actual = {row["id"]: row.asDict() for row in quantiles.collect()}

    for number, leg, latencies, attempted in drawn:
        wanted: dict[str, Any] = {"id": number}
        wanted |= {f"q{a}": plain_quantile(a, latencies) for a in PERCENTS}
        wanted |= {f"bad{a}": plain_quantile_from_bad_side(a, latencies) for a in PERCENTS}
        wanted |= {f"cens{a}": by_hand(a, leg, latencies, attempted) for a in PERCENTS}
        assert actual[number] == wanted, (leg, len(latencies), attempted)
        levels = compute_broker_minute_levels(leg, attempted, latencies)
        assert (levels is None) == (attempted < MIN_MEASURED_ATTEMPTS)
        if levels is not None:
            assert (levels.latency_p50_us, levels.latency_p99_us, levels.latency_p99_censored_us) == (
                wanted["q50"],
                wanted["q99"],
                wanted["cens99"],
            )


# --- Changes -----------------------------------------------------------------


def broker_minute(broker_id: int, **different: Any) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(BROKER_MINUTES.column_names)
    row |= {"cluster_id": "orders", "broker_id": broker_id, "leg": "client", "minute": AT, "day": AT.date()}
    row |= {"attempted": 100, "availability": 0.5, "failures": {"A": 1, "B": 2}, "led_by": [1, 2]}
    return row | different


def cluster_week(week: int, revision: int, **different: Any) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(CLUSTER_WEEKS.column_names)
    row |= {"cluster_id": "orders", "week": date(2026, 3, 2) + timedelta(weeks=week), "revision": revision}
    return row | {"latency_p99_us": 7, "closed": False, "computed_at": AT} | different


def broker_minutes_before_and_after() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return (wanted, stored) rows, with a case for each broker."""
    same = [
        (broker_minute(1), broker_minute(1)),
        (broker_minute(2, failures={"B": 2, "A": 1}), broker_minute(2)),
        (broker_minute(3, failures={}), broker_minute(3, failures={})),
        (broker_minute(4, failures=None, led_by=None), broker_minute(4, failures=None, led_by=None)),
        (broker_minute(5, availability=None), broker_minute(5, availability=None)),
    ]
    updated = [
        (broker_minute(11, attempted=101), broker_minute(11)),
        (broker_minute(12, failures={"A": 2, "B": 1}), broker_minute(12)),
        (broker_minute(13, failures={"A": 1}), broker_minute(13)),
        (broker_minute(14, failures={}), broker_minute(14, failures=None)),
        (broker_minute(15, led_by=[2, 1]), broker_minute(15)),
        (broker_minute(16, led_by=[]), broker_minute(16, led_by=None)),
        (broker_minute(17, availability=None), broker_minute(17)),
        (broker_minute(18), broker_minute(18, availability=None)),
        (broker_minute(19, availability=0.1 + 0.2), broker_minute(19, availability=0.3)),
    ]
    both = same + updated
    wanted = [row for row, _ in both] + [broker_minute(21), broker_minute(22, leg="leader")]
    stored = [row for _, row in both] + [broker_minute(31), broker_minute(22, leg="client")]
    return wanted, stored


def cluster_weeks_before_and_after() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    later = AT + timedelta(hours=1)
    wanted = [
        cluster_week(1, 0, computed_at=later),
        cluster_week(2, 0, computed_at=later, latency_p99_us=8),
        cluster_week(3, 1, closed=True),
        cluster_week(4, 1),
    ]
    stored = [
        cluster_week(1, 0),
        cluster_week(2, 0),
        cluster_week(3, 0),
        cluster_week(4, 1, computed_at=None),
    ]
    return wanted, stored


@pytest.mark.parametrize(
    ("table", "wanted", "stored"),
    [
        pytest.param(BROKER_MINUTES, *broker_minutes_before_and_after(), id="broker_minutes"),
        pytest.param(CLUSTER_WEEKS, *cluster_weeks_before_and_after(), id="cluster_weeks"),
        pytest.param(CLUSTER_WEEKS, [], [cluster_week(1, 0)], id="nothing wanted"),
        pytest.param(CLUSTER_WEEKS, [cluster_week(1, 0)], [], id="nothing stored"),
    ],
)
def test_differences_of_frames_are_those_of_rows(
    spark: SparkSession, table: Table, wanted: list[dict[str, Any]], stored: list[dict[str, Any]]
) -> None:
    def frame(rows: list[dict[str, Any]]) -> Any:
        tuples = [tuple(_in_arrow(row[name]) for name in table.column_names) for row in rows]
        return create_dataframe(spark, tuples, table.ddl)

    differences = [row.asDict() for row in diff_dataframes(table, frame(wanted), frame(stored)).collect()]

    def describe(change: str, row: Any) -> tuple[str, tuple[str, ...]]:
        return change, tuple(str(_aware(row[name])) for name in table.column_names)

    expected = sorted(describe(change.value, row) for change, row in diff_rows(table, wanted, stored))
    assert sorted(describe(row["change"], row) for row in differences) == expected
    assert expected


def _in_arrow(value: Any) -> Any:
    return list(value.items()) if isinstance(value, dict) else value


def _aware(value: Any) -> Any:
    """Return a value as text that does not depend on the order of maps or the zone of times."""
    if isinstance(value, dict):
        return sorted(value.items())
    return value.astimezone(UTC) if isinstance(value, datetime) else value


# --- Tables ------------------------------------------------------------------


@pytest.fixture(scope="module")
def empty_lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("empty") / "lake"
    Lake(spark, str(folder)).create_tables()
    return folder


@pytest.mark.parametrize("table", ALL_TABLES, ids=lambda table: table.path)
def test_a_new_table_is_readable_without_a_jvm_and_has_the_registrys_columns(
    empty_lake: Path, table: Table
) -> None:
    delta_table = DeltaTable(str(empty_lake / table.path))

    columns = [(field.name, field.type) for field in delta_table.schema().fields]
    assert [name for name, _ in columns] == list(table.column_names)
    for (name, type_), column in zip(columns, table.columns, strict=True):
        if column.type in DELTA_TYPES:
            assert getattr(type_, "type", None) == DELTA_TYPES[column.type], name
        elif column.type is ColumnType.INT_ARRAY:
            assert type_.element_type.type == "integer", name
        else:
            assert (type_.key_type.type, type_.value_type.type) == ("string", "integer"), name
    assert tuple(delta_table.metadata().partition_columns) == table.partition_by
    assert delta_table.to_pyarrow_table().num_rows == 0


@pytest.mark.parametrize("table", ALL_TABLES, ids=lambda table: table.path)
def test_a_new_table_uses_no_feature_that_delta_rs_lacks(empty_lake: Path, table: Table) -> None:
    delta_table = DeltaTable(str(empty_lake / table.path))

    protocol = delta_table.protocol()
    settings = delta_table.metadata().configuration

    assert protocol.min_reader_version == 1
    assert not protocol.reader_features
    assert protocol.min_writer_version <= 2
    assert not protocol.writer_features
    assert settings.get("delta.enableDeletionVectors", "false") == "false"
    assert settings.get("delta.columnMapping.mode", "none") == "none"
    assert settings.get("delta.enableTypeWidening", "false") == "false"
    assert settings.get("delta.checkpointPolicy", "classic") == "classic"


@pytest.mark.parametrize("left", [(), (".00000000000000000000.json.0b1f.tmp", "._commits.crc")])
def test_a_killed_creation_is_started_again(
    spark: SparkSession, tmp_path: Path, left: tuple[str, ...]
) -> None:
    log = tmp_path / PROBE_MINUTES.path / "_delta_log"
    log.mkdir(parents=True)
    for name in left:
        (log / name).touch()
    Lake(spark, str(tmp_path)).create_tables()
    assert DeltaTable(str(tmp_path / PROBE_MINUTES.path)).version() == 0


def test_creating_existing_tables_changes_nothing(spark: SparkSession, empty_lake: Path) -> None:
    Lake(spark, str(empty_lake)).create_tables()

    assert {DeltaTable(str(empty_lake / table.path)).version() for table in ALL_TABLES} == {0}
