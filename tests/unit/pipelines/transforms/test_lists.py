import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_pipelines.transforms.lists import Lists, pair, rank_of, unique_pairs, unpair

INTS = st.integers(-(2**31), 2**31 - 1)
ROWS = st.lists(st.lists(INTS, max_size=6), min_size=1, max_size=12)


def lists_of(rows: list[list[int]]) -> Lists:
    return Lists.from_arrow(pa.array(rows, pa.list_(pa.int32())))


def to_rows(lists: Lists) -> list[list[int]]:
    rows: list[list[int]] = lists.to_arrow().to_pylist()
    return rows


@given(ROWS, st.data())
def test_lists_survive_any_selection_of_rows(rows: list[list[int]], data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.integers(0, len(rows) - 1)))
    lists = lists_of(rows)
    assert to_rows(lists) == rows
    assert to_rows(lists.take(np.array(chosen, np.int64))) == [rows[row] for row in chosen]


def test_missing_lists_are_empty_and_slices_have_their_own_rows() -> None:
    column = pa.array([[1, 2], None, [3], []], pa.list_(pa.int32()))
    assert to_rows(Lists.from_arrow(column)) == [[1, 2], [], [3], []]
    assert to_rows(Lists.from_arrow(column.slice(2))) == [[3], []]
    assert to_rows(Lists.from_arrow(pa.chunked_array([column.slice(0, 1), column.slice(2)]))) == [
        [1, 2],
        [3],
        [],
    ]


@given(ROWS, st.data())
def test_the_number_at_a_rank_is_that_of_the_list(rows: list[list[int]], data: st.DataObject) -> None:
    ranks = data.draw(st.lists(st.integers(-1, 8), min_size=len(rows), max_size=len(rows)))
    numbers, present = lists_of(rows).at(np.array(ranks))
    for row, rank, number, is_present in zip(rows, ranks, numbers, present, strict=True):
        assert is_present == (1 <= rank <= len(row))
        assert not is_present or number == row[rank - 1]


@given(ROWS, st.integers(0, 8))
def test_the_last_numbers_are_the_end_of_a_list(rows: list[list[int]], count: int) -> None:
    assert to_rows(lists_of(rows).last(count)) == [row[max(0, len(row) - count) :] for row in rows]


@given(ROWS, st.data())
def test_pooled_lists_are_the_sorted_numbers_of_their_group(
    rows: list[list[int]], data: st.DataObject
) -> None:
    groups = data.draw(st.lists(st.integers(0, 3), min_size=len(rows), max_size=len(rows)))
    pooled = lists_of(rows).pool(np.array(groups), 4)
    expected = [
        sorted(number for row, of_row in zip(rows, groups, strict=True) if of_row == group for number in row)
        for group in range(4)
    ]
    assert to_rows(pooled) == expected
    assert to_rows(pooled.distinct()) == [sorted(set(numbers)) for numbers in expected]


@given(ROWS)
def test_ascending_lists_are_each_sorted(rows: list[list[int]]) -> None:
    lists = lists_of(rows)
    assert to_rows(lists.ascending()) == [sorted(row) for row in rows]
    assert to_rows(lists) == rows


@given(ROWS, ROWS)
def test_replaced_lists_are_those_of_the_others(rows: list[list[int]], others: list[list[int]]) -> None:
    count = min(len(rows), len(others))
    replaced = lists_of(rows).replace(np.arange(count), lists_of(others[:count]))
    assert to_rows(replaced) == others[:count] + rows[count:]


@given(ROWS, INTS)
def test_numbers_from_a_threshold_on_are_counted(rows: list[list[int]], threshold: int) -> None:
    ascending = [sorted(row) for row in rows]
    counts = lists_of(ascending).count_at_least(np.full(len(rows), threshold))
    assert counts.tolist() == [sum(number >= threshold for number in row) for row in ascending]


@given(st.lists(st.tuples(st.integers(0, 2**31 - 1), INTS)))
def test_pairs_are_ordered_and_come_apart_again(pairs: list[tuple[int, int]]) -> None:
    high, low = np.array(pairs, np.int64).reshape(-1, 2).T
    assert list(zip(*(part.tolist() for part in unpair(pair(high, low))), strict=True)) == pairs
    assert list(zip(*(part.tolist() for part in unique_pairs(high, low)), strict=True)) == sorted(set(pairs))


def test_ranks_are_the_nearest_ones() -> None:
    assert rank_of(99, np.array([0, 1, 99, 100, 101, 2**31])).tolist() == [0, 1, 99, 99, 100, 2_126_008_812]
