from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_core.tables import ColumnType, Table
from fleetgauge_core.tables.arrow_schema import arrow_schema
from fleetgauge_core.tables.model import make_columns
from fleetgauge_core.tables.row_diff import diff_rows
from fleetgauge_pipelines.transforms.row_diff import diff_tables

TABLE = Table(
    path="silver/rows",
    key=("name", "number"),
    columns=make_columns(
        name=ColumnType.STRING,
        number=ColumnType.INT,
        value=ColumnType.DOUBLE,
        brokers=ColumnType.INT_ARRAY,
        counts=ColumnType.COUNT_MAP,
        at=ColumnType.LONG,
    ),
    volatile=("at",),
)
SCHEMA = arrow_schema(TABLE)
ROW = st.fixed_dictionaries(
    {
        "name": st.sampled_from("ab"),
        "number": st.integers(0, 2),
        "value": st.sampled_from([None, 0.5, 1.5]),
        # NULL where the row is older than the column.
        "brokers": st.none() | st.lists(st.integers(0, 1), max_size=2),
        "counts": st.none()
        | st.dictionaries(st.sampled_from("xy"), st.integers(0, 1)).map(
            lambda counts: sorted(counts.items())
        ),
        "at": st.integers(0, 1),
    }
)
ROWS = st.lists(ROW, unique_by=lambda row: (row["name"], row["number"]))


@given(ROWS, ROWS)
def test_the_same_rows_change_as_in_plain_python(
    wanted: list[dict[str, Any]], stored: list[dict[str, Any]]
) -> None:
    diff = diff_tables(TABLE, pa.Table.from_pylist(wanted, SCHEMA), pa.Table.from_pylist(stored, SCHEMA))
    changes = diff_rows(TABLE, wanted, stored)
    keys = {(row["name"], row["number"]) for _, row in changes}
    assert diff.changed == len(changes)
    assert [wanted[row] for row in diff.written] == [
        row for row in wanted if (row["name"], row["number"]) in keys
    ]
    assert [stored[row] for row in diff.removed] == [
        row for row in stored if (row["name"], row["number"]) in keys
    ]
