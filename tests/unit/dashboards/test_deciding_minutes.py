"""Ranks, and the minutes and home brokers that decide a number."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_core.slo.quantile import quantile, quantile_from_bad_side
from fleetgauge_dashboards.views.deciding_minutes import (
    Row,
    find_decided_numbers,
    find_worst_home,
    format_ordinal,
)
from tests.unit.dashboards.frames import minute


@pytest.mark.parametrize(
    ("number", "words"),
    [(1, "1st"), (2, "2nd"), (3, "3rd"), (11, "11th"), (101, "101st"), (112, "112th"), (9_980, "9,980th")],
)
def test_numbers_are_formatted_as_ordinals(number: int, words: str) -> None:
    assert format_ordinal(number) == words


@pytest.mark.parametrize(
    ("p99", "censored", "home"), [(50, 50, 1), (50, 10_000_000, 2), (None, 10_000_000, 2)]
)
def test_where_failures_raise_the_p99_the_home_with_most_failures_is_worst(
    p99: int | None, censored: int, home: int
) -> None:
    row = {"latency_p99_us": p99, "latency_p99_censored_us": censored}
    assert find_worst_home(row | {"latency_worst_home": 1, "availability_worst_home": 2}) == home


_MINUTES = st.lists(st.tuples(st.none() | st.integers(1, 30), st.integers(0, 10)), min_size=1, max_size=300)


@given(_MINUTES)
def test_the_value_at_the_rank_is_the_weeks_number(values: list[tuple[int | None, int]]) -> None:
    rows: list[Row] = [
        {
            "minute": minute(index),
            "latency_p99_us": us,
            "latency_p99_censored_us": us or 10_000_000,
            "latency_worst_home": 1,
            "availability": tenths / 10,
            "availability_worst_home": 2,
        }
        for index, (us, tenths) in enumerate(values)
    ]
    latencies = sorted(us for us, _ in values if us is not None)
    week = {
        "latency_p99_us": quantile(99, latencies),
        "latency_p99_censored_us": quantile(99, sorted(us or 10_000_000 for us, _ in values)),
        "availability_p99": quantile_from_bad_side(99, sorted(tenths / 10 for _, tenths in values)),
    }
    for number in find_decided_numbers(week, rows, complete=True):
        assert number.found == number.value
        assert (number.sharing > 0) == (number.value is not None)
        column = "availability" if number.metric == "availability_p99" else number.metric
        assert {
            rows[(deciding.minute - minute(0)).seconds // 60][column] for deciding in number.deciding
        } <= {number.value}
