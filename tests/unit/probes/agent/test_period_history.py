from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_probes.agent.period_history import PeriodHistory

SECOND_NS = 1_000_000_000


@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 30)), max_size=30),
    st.integers(0, 700),
    st.integers(0, 700),
)
def test_an_interval_is_covered_by_what_the_periods_have_in_common_with_it(
    periods: list[tuple[int, int]], bound: int, other_bound: int
) -> None:
    history, covered, start = PeriodHistory(), set[int](), 0
    for gap, length in periods:
        start += gap
        history = history.append(start, start + length)
        covered |= set(range(start, start + length))
    since, until = sorted((bound, other_bound))
    assert history.measure_ns(since, until) == len(covered & set(range(since, until)))


def test_only_the_latest_thousand_periods_are_kept() -> None:
    history = PeriodHistory()
    for number in range(1_500):
        history = history.append(10 * number, 10 * number + 5)
    assert len(history.starts) == len(history.ends) == len(history.totals_before) == 1_000
    assert history.measure_ns(0, 15_000) == 5_000
    assert history.measure_ns(14_990, 14_993) == 3
