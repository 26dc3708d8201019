from fleetgauge_core.tables import Column, Table, Type

TABLE = Table(
    path="here/things",
    key=("id",),
    columns=(Column("id", Type.STRING), Column("n", Type.LONG), Column("at", Type.TIMESTAMP)),
    volatile=("at",),
)


def test_names_come_in_the_order_of_the_columns() -> None:
    assert TABLE.names == ("id", "n", "at")


def test_content_is_what_is_neither_key_nor_volatile() -> None:
    assert TABLE.content == ("n",)


def test_the_ddl_is_a_spark_schema() -> None:
    assert TABLE.ddl == "id string, n bigint, at timestamp"
