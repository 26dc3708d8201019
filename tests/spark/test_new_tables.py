"""New tables have the registry's columns, and every reader can read them."""

from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from fleetgauge_core.tables import (
    ALL_TABLES,
    PROBE_MINUTES,
    ColumnType,
    Table,
)
from fleetgauge_pipelines.io.lake import Lake

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
