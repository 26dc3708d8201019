"""Burn rates of a whole fleet equal those of single clusters, and the burn-down of a week."""

from datetime import datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_core.slo.burn import (
    LATENCY_OBJECTIVE,
    BurnHistory,
    BurnMinute,
    ServiceLevelIndicator,
)
from fleetgauge_dashboards.links import Span
from fleetgauge_dashboards.views.burn_down import compute_burn_down
from fleetgauge_dashboards.views.latency_burn import WINDOWS_MIN, compute_latency_burns
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
def test_burn_rates_equal_those_of_a_single_clusters_history(
    fleet: dict[str, list[tuple[bool, int]]], late_min: int
) -> None:
    last = minute(400)
    rows = [
        _row(name, last - timedelta(minutes=age_min), *minute_values)
        for name, minutes_of_cluster in fleet.items()
        for age_min, minute_values in enumerate(minutes_of_cluster)
    ]
    now = last + timedelta(minutes=1 + late_min, seconds=5)
    burns = compute_latency_burns(recent(rows), [cluster_week(name) for name in fleet], now)
    for name, minutes_of_cluster in fleet.items():
        history = BurnHistory(
            BurnMinute(last - timedelta(minutes=age_min), bad and measured > 0, 300, 300, 3, measured)
            for age_min, (bad, measured) in enumerate(minutes_of_cluster)
        )
        for length, burn in zip(WINDOWS_MIN, burns[name], strict=True):
            expected = history.measure_window(
                last + timedelta(minutes=1), length, ServiceLevelIndicator.LATENCY, LATENCY_OBJECTIVE
            ).burn
            assert (None if expected is None else round(float(expected), 9)) == (
                None if burn is None else round(burn, 9)
            )


def test_the_window_of_a_silent_cluster_ends_now() -> None:
    rows = [_row("a", minute(n), True, 3) for n in range(30)]
    burns = compute_latency_burns(recent(rows), [cluster_week("a")], minute(80))
    assert burns["a"][0] == 100.0
    assert compute_latency_burns(recent(rows), [cluster_week("a")], minute(200))["a"] == (None, 100.0)


def test_without_minutes_or_weeks_there_are_no_burn_rates() -> None:
    assert compute_latency_burns(recent([]), [cluster_week()], START) == {}
    assert compute_latency_burns(recent([_row("a", START, True, 3)]), [], START) == {}


WEEK = Span(START, START + timedelta(days=7))


def _minutes(bad: set[int], until: int) -> Any:
    return cluster_minutes(
        {"minute": minute(n), "latency_p99_censored_us": OBJECTIVE_US + (n in bad), "brokers_measured": 3}
        for n in range(until)
    )


def test_each_bad_minute_reduces_the_budget_and_an_open_week_starts_with_all_of_it() -> None:
    week = cluster_week(latency_budget_minutes=1.5, latency_budget_left_minutes=-0.5)
    model = compute_burn_down(_minutes({10, 70}, 150), week, WEEK, ())
    assert model is not None
    assert model.at == (START, minute(60), minute(120), minute(150))
    assert model.budget == 100.8
    assert [round(left, 6) for left in model.left] == [100.8, 99.8, 98.8, 98.8]
    assert model.left_now == -0.5


def test_a_closed_weeks_burn_down_ends_at_its_budget_left() -> None:
    week = cluster_week(latency_budget_minutes=100.8, latency_budget_left_minutes=97.8, closed=True)
    model = compute_burn_down(_minutes({1, 2, 3, 4, 5}, 10_080), week, WEEK, (Span(minute(4), minute(6)),))
    assert model is not None
    assert round(model.left[-1], 6) == model.left_now
    assert (model.at[-1], model.budget) == (WEEK.end, 100.8)


def test_expired_minutes_have_no_burn_down() -> None:
    assert compute_burn_down(_minutes(set(), 0), cluster_week(closed=True), WEEK, ()) is None
    assert compute_burn_down(_minutes(set(), 5), cluster_week(latency_objective_us=None), WEEK, ()) is None
