from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_core.tables import Column, ColumnType, Table
from fleetgauge_core.tables.row_diff import RowOperation, diff_rows

TABLE = Table(
    path="ops/examples",
    key=("a", "b"),
    columns=tuple(Column(name, ColumnType.INT) for name in ("a", "b", "x", "y", "at")),
    volatile=("at",),
)
Row = dict[str, Any]
ROWS = st.dictionaries(
    st.tuples(st.integers(0, 3), st.sampled_from(["p", "q"])),
    st.fixed_dictionaries(
        {
            "x": st.none() | st.integers(0, 2),
            "y": st.none() | st.lists(st.integers(0, 1), max_size=2),
            "at": st.integers(0, 1),
        }
    ),
).map(lambda rows: [{"a": a, "b": b} | values for (a, b), values in rows.items()])


def _key(row: Any) -> tuple[Any, ...]:
    return tuple(row[name] for name in TABLE.key)


def _stable_rows(rows: Any) -> dict[tuple[Any, ...], Row]:
    return {_key(row): {n: row[n] for n in TABLE.column_names if n not in TABLE.volatile} for row in rows}


def _apply(stored: list[Row], operations: list[tuple[RowOperation, Any]]) -> list[Row]:
    table = {_key(row): row for row in stored}
    for operation, row in operations:
        key = _key(row)
        assert (key in table) == (operation is not RowOperation.INSERT)
        if operation is RowOperation.DELETE:
            del table[key]
        else:
            table[key] = row
    return list(table.values())


@given(ROWS, ROWS)
def test_applying_the_operations_gives_the_wanted_rows(wanted: list[Row], stored: list[Row]) -> None:
    assert _stable_rows(_apply(stored, diff_rows(TABLE, wanted, stored))) == _stable_rows(wanted)


@given(ROWS, ROWS)
def test_a_second_comparison_finds_no_difference(wanted: list[Row], stored: list[Row]) -> None:
    assert diff_rows(TABLE, wanted, _apply(stored, diff_rows(TABLE, wanted, stored))) == []


@given(ROWS, ROWS)
def test_each_key_has_at_most_one_operation_and_only_if_its_row_differs(
    wanted: list[Row], stored: list[Row]
) -> None:
    operations = diff_rows(TABLE, wanted, stored)
    keys = [_key(row) for _, row in operations]
    assert len(keys) == len(set(keys))
    new, old = _stable_rows(wanted), _stable_rows(stored)
    assert set(keys) == {key for key in new.keys() | old.keys() if new.get(key) != old.get(key)}


@given(ROWS)
def test_rows_that_differ_only_in_volatile_columns_are_equal(rows: list[Row]) -> None:
    assert diff_rows(TABLE, [row | {"at": 99} for row in rows], rows) == []


def test_updates_inserts_and_deletes_are_returned() -> None:
    def row(a: int, x: int | None) -> Row:
        return {"a": a, "b": 0, "x": x, "y": None, "at": 0}

    stored = [row(1, 1), row(2, None), row(3, 3)]
    wanted = [row(1, 1), row(2, 0), row(4, 4)]
    assert diff_rows(TABLE, wanted, iter(stored)) == [
        (RowOperation.UPDATE, row(2, 0)),
        (RowOperation.INSERT, row(4, 4)),
        (RowOperation.DELETE, row(3, 3)),
    ]
