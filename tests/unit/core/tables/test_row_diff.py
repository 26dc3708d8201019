from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_core.tables import Column, Table, Type
from fleetgauge_core.tables.row_diff import Change, row_changes

TABLE = Table(
    path="here/things",
    key=("a", "b"),
    columns=tuple(Column(name, Type.INT) for name in ("a", "b", "x", "y", "at")),
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
).map(lambda rows: [{"a": a, "b": b} | rest for (a, b), rest in rows.items()])


def _key(row: Any) -> tuple[Any, ...]:
    return tuple(row[name] for name in TABLE.key)


def _lasting(rows: Any) -> dict[tuple[Any, ...], Row]:
    return {_key(row): {n: row[n] for n in TABLE.names if n not in TABLE.volatile} for row in rows}


def _apply(stored: list[Row], changes: list[tuple[Change, Any]]) -> list[Row]:
    table = {_key(row): row for row in stored}
    for change, row in changes:
        key = _key(row)
        assert (key in table) == (change is not Change.INSERT)
        if change is Change.DELETE:
            del table[key]
        else:
            table[key] = row
    return list(table.values())


@given(ROWS, ROWS)
def test_applying_the_changes_gives_the_wanted_table(wanted: list[Row], stored: list[Row]) -> None:
    assert _lasting(_apply(stored, row_changes(TABLE, wanted, stored))) == _lasting(wanted)


@given(ROWS, ROWS)
def test_a_second_time_there_is_nothing_to_change(wanted: list[Row], stored: list[Row]) -> None:
    assert row_changes(TABLE, wanted, _apply(stored, row_changes(TABLE, wanted, stored))) == []


@given(ROWS, ROWS)
def test_each_key_changes_at_most_once_and_only_if_it_must(wanted: list[Row], stored: list[Row]) -> None:
    changes = row_changes(TABLE, wanted, stored)
    keys = [_key(row) for _, row in changes]
    assert len(keys) == len(set(keys))
    new, old = _lasting(wanted), _lasting(stored)
    assert set(keys) == {key for key in new.keys() | old.keys() if new.get(key) != old.get(key)}


@given(ROWS)
def test_rows_that_differ_only_in_when_they_were_computed_stay(rows: list[Row]) -> None:
    assert row_changes(TABLE, [row | {"at": 99} for row in rows], rows) == []


def test_the_three_kinds_of_change() -> None:
    def row(a: int, x: int | None) -> Row:
        return {"a": a, "b": 0, "x": x, "y": None, "at": 0}

    stored = [row(1, 1), row(2, None), row(3, 3)]
    wanted = [row(1, 1), row(2, 0), row(4, 4)]
    assert row_changes(TABLE, wanted, iter(stored)) == [
        (Change.UPDATE, row(2, 0)),
        (Change.INSERT, row(4, 4)),
        (Change.DELETE, row(3, 3)),
    ]
