"""Aggregates of parts, merged, are those of all rows."""

from collections import defaultdict

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_pipelines.transforms.grouping import Grouping

ROWS = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from("abc"), "number": st.none() | st.integers(-9, 9)}),
    max_size=8,
)
SCHEMA = pa.schema([("name", pa.string()), ("number", pa.int64())])
GROUPING = Grouping(("name",), (("number", "min"), ("number", "max"), ("number", "count")))


@given(st.lists(ROWS, min_size=1, max_size=4))
def test_groups_of_parts_are_those_of_all_rows(parts: list[list[dict[str, int]]]) -> None:
    numbers: dict[str, list[int]] = defaultdict(list)
    for part in parts:
        for row in part:
            numbers[row["name"]] += [] if row["number"] is None else [row["number"]]
    merged = GROUPING.merge(GROUPING.summarize(pa.Table.from_pylist(part, SCHEMA)) for part in parts)
    assert {row.pop("name"): row for row in merged.to_pylist()} == {
        name: {
            "number_min": min(present, default=None),
            "number_max": max(present, default=None),
            "number_count": len(present),
        }
        for name, present in numbers.items()
    }


@given(st.lists(ROWS, min_size=1, max_size=4))
def test_without_an_aggregate_the_different_keys_are_left(parts: list[list[dict[str, int]]]) -> None:
    grouping = Grouping(("name", "number"))
    merged = grouping.merge(grouping.summarize(pa.Table.from_pylist(part, SCHEMA)) for part in parts)
    rows = [tuple(row.values()) for row in merged.to_pylist()]
    assert len(rows) == len(set(rows))
    assert set(rows) == {(row["name"], row["number"]) for part in parts for row in part}
