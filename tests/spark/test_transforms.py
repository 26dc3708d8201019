"""The column expressions say what the plain definitions say; the tables are what readers expect."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from fleetgauge_core.slo.levels import CENSORED_US, MEASURED_ATTEMPTS, broker_minute_levels
from fleetgauge_core.slo.quantile import quantile as plain_quantile
from fleetgauge_core.slo.quantile import quantile_from_bad_side as plain_quantile_from_bad_side
from fleetgauge_core.tables import (
    ALL,
    BROKER_MINUTES,
    CLUSTER_WEEKS,
    PROBE_MINUTES,
    Table,
    Type,
)
from fleetgauge_core.tables.row_diff import row_changes
from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.io.small_frames import dataframe
from fleetgauge_pipelines.transforms.broker_minutes import sum_by_code
from fleetgauge_pipelines.transforms.quantile import censored_quantile, quantile, quantile_from_bad_side
from fleetgauge_pipelines.transforms.row_diff import changes

PERCENTS = (1, 50, 90, 95, 99, 100)
AT = datetime(2026, 4, 1, 12, 0, tzinfo=UTC)
DELTA_TYPES = {
    Type.STRING: "string",
    Type.BOOLEAN: "boolean",
    Type.INT: "integer",
    Type.LONG: "long",
    Type.DOUBLE: "double",
    Type.DATE: "date",
    Type.TIMESTAMP: "timestamp",
    Type.BINARY: "binary",
}


# --- Quantiles ---------------------------------------------------------------

#: As many failures as one record may claim.
INT_MAX = 2**31 - 1


def samples() -> list[tuple[int, str, list[int], int]]:
    """(id, leg, ascending latencies, attempted): sizes around every rank's edge, some above the deadline."""
    rng = Random(3)
    sizes = [0, 0, 1, 1, 2, 49, 50, 51, 98, 99, 100, 101, 199, 200, 201, 300]
    sizes += [rng.randint(0, 250) for _ in range(300)]
    drawn = []
    for number, size in enumerate(sizes):
        leg = ("client", "leader")[number % 2]
        highest_us = rng.choice((5, 10_000, CENSORED_US[leg], CENSORED_US[leg] * 2))
        failures = rng.choice((0, 0, 1, 2, rng.randint(0, 120)))
        drawn.append((number, leg, sorted(rng.randint(0, highest_us) for _ in range(size)), size + failures))
    return drawn


@pytest.mark.parametrize("attempted", [INT_MAX, INT_MAX + 1, 100 * INT_MAX])
def test_more_failures_than_an_int_holds_are_at_the_deadline(spark: SparkSession, attempted: int) -> None:
    rows = [([1, 2, 3], attempted), ([], attempted), ([1, 99_000_000], attempted)]
    found = dataframe(spark, rows, "latencies array<int>, attempted bigint").select(
        *(
            censored_quantile(a, F.col("latencies"), F.col("attempted"), F.lit(10_000_000)).alias(f"q{a}")
            for a in (1, 50, 99, 100)
        )
    )
    assert [tuple(row) for row in found.collect()] == [(10_000_000,) * 4] * 2 + [
        (10_000_000,) * 3 + (99_000_000,)
    ]


def test_counts_of_a_code_that_no_int_holds_stop_at_the_highest(spark: SparkSession) -> None:
    codes = [("A", INT_MAX), ("B", 1), ("A", INT_MAX), ("B", 2)]
    rows = dataframe(spark, [(codes,)], "codes array<struct<key: string, value: int>>")
    (found,) = rows.select(sum_by_code(F.col("codes")).alias("failures")).collect()
    assert found["failures"] == {"A": INT_MAX, "B": 3}


def by_hand(a: int, leg: str, latencies: Sequence[int], attempted: int) -> int | None:
    """Every failure spelt out."""
    spelt_out = sorted([*latencies, *[CENSORED_US[leg]] * (attempted - len(latencies))])
    return plain_quantile(a, spelt_out)


def test_quantiles_of_columns_are_those_of_the_plain_definition(spark: SparkSession) -> None:
    drawn = samples()
    ddl = "id int, leg string, latencies array<int>, attempted bigint"
    deadline = F.when(F.col("leg") == "client", CENSORED_US["client"]).otherwise(CENSORED_US["leader"])
    values = F.col("latencies")
    found = dataframe(spark, drawn, ddl).select(
        "id",
        *(quantile(a, values).alias(f"q{a}") for a in PERCENTS),
        *(quantile_from_bad_side(a, values).alias(f"bad{a}") for a in PERCENTS),
        *(censored_quantile(a, values, F.col("attempted"), deadline).alias(f"cens{a}") for a in PERCENTS),
    )

    actual = {row["id"]: row.asDict() for row in found.collect()}

    for number, leg, latencies, attempted in drawn:
        wanted: dict[str, Any] = {"id": number}
        wanted |= {f"q{a}": plain_quantile(a, latencies) for a in PERCENTS}
        wanted |= {f"bad{a}": plain_quantile_from_bad_side(a, latencies) for a in PERCENTS}
        wanted |= {f"cens{a}": by_hand(a, leg, latencies, attempted) for a in PERCENTS}
        assert actual[number] == wanted, (leg, len(latencies), attempted)
        levels = broker_minute_levels(leg, attempted, latencies)
        assert (levels is None) == (attempted < MEASURED_ATTEMPTS)
        if levels is not None:
            assert (levels.latency_p50_us, levels.latency_p99_us, levels.latency_p99_censored_us) == (
                wanted["q50"],
                wanted["q99"],
                wanted["cens99"],
            )


# --- Changes -----------------------------------------------------------------


def broker_minute(broker_id: int, **different: Any) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(BROKER_MINUTES.names)
    row |= {"cluster_id": "orders", "broker_id": broker_id, "leg": "client", "minute": AT, "day": AT.date()}
    row |= {"attempted": 100, "availability": 0.5, "failures": {"A": 1, "B": 2}, "led_by": [1, 2]}
    return row | different


def cluster_week(week: int, revision: int, **different: Any) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(CLUSTER_WEEKS.names)
    row |= {"cluster_id": "orders", "week": date(2026, 3, 2) + timedelta(weeks=week), "revision": revision}
    return row | {"latency_p99_us": 7, "closed": False, "computed_at": AT} | different


def broker_minutes_before_and_after() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """(wanted, stored), each broker another case."""
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
def test_changes_of_frames_are_those_of_rows(
    spark: SparkSession, table: Table, wanted: list[dict[str, Any]], stored: list[dict[str, Any]]
) -> None:
    def frame(rows: list[dict[str, Any]]) -> Any:
        tuples = [tuple(_in_arrow(row[name]) for name in table.names) for row in rows]
        return dataframe(spark, tuples, table.ddl)

    found = [row.asDict() for row in changes(table, frame(wanted), frame(stored)).collect()]

    def told(change: str, row: Any) -> tuple[str, tuple[str, ...]]:
        return change, tuple(str(_aware(row[name])) for name in table.names)

    expected = sorted(told(change.value, row) for change, row in row_changes(table, wanted, stored))
    assert sorted(told(row["change"], row) for row in found) == expected
    assert expected


def _in_arrow(value: Any) -> Any:
    return list(value.items()) if isinstance(value, dict) else value


def _aware(value: Any) -> Any:
    """As text, whatever order a map came in and whatever zone a time has."""
    if isinstance(value, dict):
        return sorted(value.items())
    return value.astimezone(UTC) if isinstance(value, datetime) else value


# --- Tables ------------------------------------------------------------------


@pytest.fixture(scope="module")
def empty_lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("empty") / "lake"
    Lake(spark, str(folder)).create_tables()
    return folder


@pytest.mark.parametrize("table", ALL, ids=lambda table: table.path)
def test_a_new_table_is_readable_without_a_jvm_and_has_the_registrys_columns(
    empty_lake: Path, table: Table
) -> None:
    found = DeltaTable(str(empty_lake / table.path))

    columns = [(field.name, field.type) for field in found.schema().fields]
    assert [name for name, _ in columns] == list(table.names)
    for (name, type_), column in zip(columns, table.columns, strict=True):
        if column.type in DELTA_TYPES:
            assert getattr(type_, "type", None) == DELTA_TYPES[column.type], name
        elif column.type is Type.INTS:
            assert type_.element_type.type == "integer", name
        else:
            assert (type_.key_type.type, type_.value_type.type) == ("string", "integer"), name
    assert tuple(found.metadata().partition_columns) == table.partition_by
    assert found.to_pyarrow_table().num_rows == 0


@pytest.mark.parametrize("table", ALL, ids=lambda table: table.path)
def test_a_new_table_needs_no_feature_that_plain_readers_lack(empty_lake: Path, table: Table) -> None:
    found = DeltaTable(str(empty_lake / table.path))

    protocol = found.protocol()
    settings = found.metadata().configuration

    assert protocol.min_reader_version == 1
    assert not protocol.reader_features
    assert protocol.min_writer_version <= 2
    assert not protocol.writer_features
    assert settings.get("delta.enableDeletionVectors", "false") == "false"
    assert settings.get("delta.columnMapping.mode", "none") == "none"
    assert settings.get("delta.enableTypeWidening", "false") == "false"
    assert settings.get("delta.checkpointPolicy", "classic") == "classic"


@pytest.mark.parametrize("left", [(), (".00000000000000000000.json.0b1f.tmp", "._commits.crc")])
def test_a_creation_that_was_killed_is_begun_again(
    spark: SparkSession, tmp_path: Path, left: tuple[str, ...]
) -> None:
    log = tmp_path / PROBE_MINUTES.path / "_delta_log"
    log.mkdir(parents=True)
    for name in left:
        (log / name).touch()
    Lake(spark, str(tmp_path)).create_tables()
    assert DeltaTable(str(tmp_path / PROBE_MINUTES.path)).version() == 0


def test_making_the_tables_again_changes_nothing(spark: SparkSession, empty_lake: Path) -> None:
    Lake(spark, str(empty_lake)).create_tables()

    assert {DeltaTable(str(empty_lake / table.path)).version() for table in ALL} == {0}
