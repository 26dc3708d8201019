import json
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from math import inf, nan
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from deltalake.table import ProtocolVersions
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetgauge_core.lake.table_store import TableStore
from fleetgauge_core.tables import ColumnType, Table
from fleetgauge_core.tables.arrow_schema import arrow_schema
from fleetgauge_core.tables.model import make_columns
from fleetgauge_pipelines.io.table_files import (
    FILE,
    TableFile,
    TableFiles,
    UnreadableTableError,
    commit_files,
    list_files,
    rewrite_file,
    write_files,
)
from fleetgauge_pipelines.io.tasks import divide_files

TABLE = Table(
    path="silver/rows",
    key=("number",),
    columns=make_columns(
        number=ColumnType.INT,
        text=ColumnType.STRING,
        at=ColumnType.TIMESTAMP,
        share=ColumnType.DOUBLE,
        brokers=ColumnType.INT_ARRAY,
        day=ColumnType.DATE,
    ),
    partition_by=("day",),
    small=False,
)
SCHEMA = arrow_schema(TABLE)
DAYS = [date(2026, 3, 31), date(2026, 4, 1)]
LAST_CHARACTER = "\U0010ffff"
#: Longer than a bound of the statistics, or not; the last character of all is where a cut bound ends.
TEXTS = st.text(max_size=3) | st.builds(
    lambda first, rest: first * 32 + rest,
    st.sampled_from(["a", "é", LAST_CHARACTER]),
    st.text(st.sampled_from(["a", "b", LAST_CHARACTER]), max_size=3),
)
TIMES = st.integers(0, 1_000_000).map(
    lambda us: datetime(2026, 4, 1, tzinfo=UTC) + timedelta(microseconds=us)
)
FILES = st.lists(
    st.lists(
        st.fixed_dictionaries(
            {
                "text": st.none() | TEXTS,
                "at": st.none() | TIMES,
                "share": st.none() | st.sampled_from([0.1, 0.9, inf, -inf, nan]),
                "brokers": st.lists(st.integers(0, 3), max_size=2),
                "day": st.sampled_from(DAYS),
            }
        ),
        min_size=1,
        max_size=3,
    ),
    min_size=1,
    max_size=3,
)


def store(lake: str, files: Sequence[Sequence[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Write rows as files of one commit, and return them with their numbers."""
    TableStore(lake, TABLE).create()
    numbered, written, location = [], [], f"{lake}/{TABLE.path}"
    for file in files:
        rows = [row | {"number": len(numbered) + number} for number, row in enumerate(file)]
        numbered += rows
        written += write_files(location, pa.Table.from_pylist(rows, SCHEMA))
    commit_files(DeltaTable(location), written)
    return numbered


@settings(max_examples=60, deadline=None)
@given(FILES)
def test_no_row_is_hidden_by_the_statistics_of_its_file(files: list[list[dict[str, Any]]]) -> None:
    with TemporaryDirectory() as lake:
        rows = store(lake, files)
        version = read_version(f"{lake}/{TABLE.path}")
        for row in rows:
            for name in ("number", "text", "at"):
                if row[name] is not None:
                    is_same = pc.field(name) == pa.scalar(row[name], SCHEMA.field(name).type)
                    same = version.of_days([row["day"]]).read(("number",), is_same)["number"].to_pylist()
                    assert row["number"] in same, name
        every = version.read(TABLE.column_names).sort_by("number").to_pylist()
        assert to_json(every) == to_json(rows)


def read_version(location: str) -> TableFiles:
    """Return the files of the newest version, with bounds of all columns that can be compared."""
    return list_files(DeltaTable(location), location, ("number", "text", "at"), None)


def to_json(rows: Sequence[dict[str, Any]]) -> str:
    """Return rows as a text that is the same for NaN."""
    return json.dumps(rows, default=str, sort_keys=True)


@settings(max_examples=30, deadline=None)
@given(FILES, st.sets(st.integers(0, 8)))
def test_a_file_that_is_written_again_lacks_the_removed_rows_alone(
    files: list[list[dict[str, Any]]], removed: set[int]
) -> None:
    with TemporaryDirectory() as lake:
        rows = store(lake, files)
        location = f"{lake}/{TABLE.path}"
        stored = read_version(location).read(("number", FILE))
        going = stored.filter(pc.is_in(stored["number"], pa.array(sorted(removed), pa.int32())))
        paths = sorted(set(going[FILE].to_pylist()))
        written = [
            file
            for path in paths
            for file in rewrite_file(location, path, TABLE.key, going.filter(pc.equal(going[FILE], path)))
        ]
        if paths:
            commit_files(DeltaTable(location), written, paths)
        left = read_version(location).read(("number",))
        assert sorted(left["number"].to_pylist()) == [
            row["number"] for row in rows if row["number"] not in removed
        ]


def test_statistics_count_rows_and_nulls_and_are_not_below_what_they_cut() -> None:
    at = datetime(2026, 4, 1, 0, 0, 0, 1, UTC)
    rows = [{"number": 1, "text": "a" * 40, "at": at, "brokers": [1], "day": DAYS[1]}]
    rows.append({"number": 2, "text": None, "at": at - timedelta(seconds=1), "brokers": [], "day": DAYS[1]})
    with TemporaryDirectory() as folder:
        (file,) = write_files(folder, pa.Table.from_pylist(rows, SCHEMA))
        stats = json.loads(file.stats)
        assert stats["numRecords"] == pq.read_metadata(f"{folder}/{file.path}").num_rows == 2
        assert stats["nullCount"] == {"number": 0, "text": 1, "at": 0, "share": 2}
        assert stats["minValues"]["text"] == "a" * 32
        assert stats["maxValues"] == {
            "number": 2,
            "text": "a" * 32 + LAST_CHARACTER,
            "at": "2026-04-01T00:00:00.001Z",
        }


def test_a_table_whose_files_do_not_have_its_rows_as_they_are_is_refused() -> None:
    with TemporaryDirectory() as lake:
        location = f"{lake}/{TABLE.path}"
        store(lake, [[{"text": "a", "at": None, "share": None, "brokers": [], "day": DAYS[0]}]])
        with pytest.raises(UnreadableTableError, match="deletionVectors"):
            list_files(_WithDeletionVectors(location), location, (), None)


class _WithDeletionVectors(DeltaTable):
    def protocol(self) -> ProtocolVersions:
        return ProtocolVersions(3, 7, ["deletionVectors"], ["deletionVectors"])


@given(st.lists(st.integers(0, 50), max_size=30), st.integers(1, 9))
def test_files_are_divided_in_their_order_into_few_parts_of_like_size(rows: list[int], most: int) -> None:
    files = tuple(TableFile(str(number), None, 1, count, {}, {}) for number, count in enumerate(rows))
    parts = divide_files(TableFiles("", SCHEMA, files), most)
    assert [file for part in parts for file in part.files] == list(files)
    assert len(parts) <= most
    assert all(part.rows <= -(-sum(rows) // most) + max(rows) for part in parts)
