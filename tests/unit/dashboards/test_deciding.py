"""Ranks, and whose minute it is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_core.slo.quantile import quantile, quantile_from_bad_side
from fleetgauge_dashboards.views.deciding_minutes import (
    Row,
    decided,
    ordinal,
    worst_home,
)
from tests.unit.dashboards.frames import minute


@pytest.mark.parametrize(
    ("number", "words"),
    [(1, "1st"), (2, "2nd"), (3, "3rd"), (11, "11th"), (101, "101st"), (112, "112th"), (9_980, "9,980th")],
)
def test_ordinals(number: int, words: str) -> None:
    assert ordinal(number) == words


@pytest.mark.parametrize(
    ("p99", "censored", "home"), [(50, 50, 1), (50, 10_000_000, 2), (None, 10_000_000, 2)]
)
def test_where_failures_make_the_minute_the_home_with_most_of_them_is_worst(
    p99: int | None, censored: int, home: int
) -> None:
    row = {"latency_p99_us": p99, "latency_p99_censored_us": censored}
    assert worst_home(row | {"latency_worst_home": 1, "availability_worst_home": 2}) == home


_MINUTES = st.lists(st.tuples(st.none() | st.integers(1, 30), st.integers(0, 10)), min_size=1, max_size=300)


@given(_MINUTES)
def test_what_stands_at_the_rank_is_the_weeks_number(values: list[tuple[int | None, int]]) -> None:
    rows: list[Row] = [
        {
            "minute": minute(number),
            "latency_p99_us": us,
            "latency_p99_censored_us": us or 10_000_000,
            "latency_worst_home": 1,
            "availability": tenths / 10,
            "availability_worst_home": 2,
        }
        for number, (us, tenths) in enumerate(values)
    ]
    latencies = sorted(us for us, _ in values if us is not None)
    week = {
        "latency_p99_us": quantile(99, latencies),
        "latency_p99_censored_us": quantile(99, sorted(us or 10_000_000 for us, _ in values)),
        "availability_p99": quantile_from_bad_side(99, sorted(tenths / 10 for _, tenths in values)),
    }
    for one in decided(week, rows, complete=True):
        assert one.found == one.value
        assert (one.sharing > 0) == (one.value is not None)
        column = "availability" if one.metric == "availability_p99" else one.metric
        assert {rows[(at.minute - minute(0)).seconds // 60][column] for at in one.deciding} <= {one.value}
