"""How fast budgets go now: the same as one cluster's burn is, for a whole fleet."""

from datetime import datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_core.slo.burn import (
    LATENCY_OBJECTIVE,
    BurnHistory,
    BurnMinute,
    Indicator,
)
from fleetgauge_dashboards.links import Span
from fleetgauge_dashboards.views.burn_down import burn_down
from fleetgauge_dashboards.views.burning import WINDOWS_MIN, latency_burns
from tests.unit.dashboards.frames import START, cluster_minutes, cluster_week, minute, recent

OBJECTIVE_US = 100_000


def _row(cluster_id: str, at: datetime, bad: bool, measured: int) -> dict[str, Any]:
    return {
        "cluster_id": cluster_id,
        "minute": at,
        "brokers_expected": 3,
        "brokers_measured": measured,
        "latency_p99_censored_us": (OBJECTIVE_US + bad) if measured else None,
    }


minutes = st.lists(st.tuples(st.booleans(), st.sampled_from([0, 2, 3])), min_size=1, max_size=400)


@given(st.dictionaries(st.sampled_from(["a", "b", "c"]), minutes, min_size=1), st.integers(0, 2))
def test_a_window_is_what_the_burn_of_one_cluster_says(
    fleet: dict[str, list[tuple[bool, int]]], late_min: int
) -> None:
    last = minute(400)
    rows = [
        _row(name, last - timedelta(minutes=ago), *one)
        for name, own in fleet.items()
        for ago, one in enumerate(own)
    ]
    now = last + timedelta(minutes=1 + late_min, seconds=5)
    found = latency_burns(recent(rows), [cluster_week(name) for name in fleet], now)
    for name, own in fleet.items():
        history = BurnHistory(
            BurnMinute(last - timedelta(minutes=ago), bad and measured > 0, 300, 300, 3, measured)
            for ago, (bad, measured) in enumerate(own)
        )
        for length, burn in zip(WINDOWS_MIN, found[name], strict=True):
            said = history.window(
                last + timedelta(minutes=1), length, Indicator.LATENCY, LATENCY_OBJECTIVE
            ).burn
            assert (None if said is None else round(float(said), 9)) == (
                None if burn is None else round(burn, 9)
            )


def test_a_cluster_that_fell_silent_burns_what_the_window_up_to_now_shows() -> None:
    rows = [_row("a", minute(n), True, 3) for n in range(30)]
    found = latency_burns(recent(rows), [cluster_week("a")], minute(80))
    assert found["a"][0] == 100.0
    assert latency_burns(recent(rows), [cluster_week("a")], minute(200))["a"] == (None, 100.0)


def test_without_minutes_or_weeks_nothing_burns() -> None:
    assert latency_burns(recent([]), [cluster_week()], START) == {}
    assert latency_burns(recent([_row("a", START, True, 3)]), [], START) == {}


WEEK = Span(START, START + timedelta(days=7))


def _minutes(bad: set[int], until: int) -> Any:
    return cluster_minutes(
        {"minute": minute(n), "latency_p99_censored_us": OBJECTIVE_US + (n in bad), "brokers_measured": 3}
        for n in range(until)
    )


def test_the_budget_goes_down_by_bad_minutes_and_an_open_week_has_the_whole_of_it() -> None:
    week = cluster_week(latency_budget_minutes=1.5, latency_budget_left_minutes=-0.5)
    model = burn_down(_minutes({10, 70}, 150), week, WEEK, ())
    assert model is not None
    assert model.at == (START, minute(60), minute(120), minute(150))
    assert model.budget == 100.8
    assert [round(left, 6) for left in model.left] == [100.8, 99.8, 98.8, 98.8]
    assert model.left_now == -0.5


def test_a_closed_weeks_line_ends_where_its_number_is() -> None:
    week = cluster_week(latency_budget_minutes=100.8, latency_budget_left_minutes=97.8, closed=True)
    model = burn_down(_minutes({1, 2, 3, 4, 5}, 10_080), week, WEEK, (Span(minute(4), minute(6)),))
    assert model is not None
    assert round(model.left[-1], 6) == model.left_now
    assert (model.at[-1], model.budget) == (WEEK.end, 100.8)


def test_of_minutes_that_have_expired_there_is_no_line() -> None:
    assert burn_down(_minutes(set(), 0), cluster_week(closed=True), WEEK, ()) is None
    assert burn_down(_minutes(set(), 5), cluster_week(latency_objective_us=None), WEEK, ()) is None
