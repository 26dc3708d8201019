from fleetgauge_core.tables import Column, ColumnType, Table

TABLE = Table(
    path="ops/examples",
    key=("id",),
    columns=(
        Column("id", ColumnType.STRING),
        Column("n", ColumnType.LONG),
        Column("at", ColumnType.TIMESTAMP),
    ),
    volatile=("at",),
)


def test_column_names_are_in_the_order_of_the_columns() -> None:
    assert TABLE.column_names == ("id", "n", "at")


def test_compared_columns_are_neither_key_nor_volatile() -> None:
    assert TABLE.compared_columns == ("n",)


def test_the_ddl_is_a_spark_sql_schema() -> None:
    assert TABLE.ddl == "id string, n bigint, at timestamp"
