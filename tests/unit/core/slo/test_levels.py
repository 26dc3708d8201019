"""Service levels of a broker-minute, and error budgets of a week."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_core.slo.levels import (
    CENSORED_LATENCY_US,
    availability_budget_minutes,
    compute_broker_minute_levels,
    latency_budget_minutes,
)

LEGS = st.sampled_from(["client", "leader"])
WEEK = 10_080


@st.composite
def _minutes(draw: st.DrawFn) -> tuple[str, int, list[int]]:
    leg = draw(LEGS)
    attempted = draw(st.integers(50, 300))
    latency = st.integers(0, CENSORED_LATENCY_US[leg])
    return leg, attempted, sorted(draw(st.lists(latency, max_size=attempted)))


@given(_minutes())
def test_levels_agree_with_a_direct_count(minute: tuple[str, int, list[int]]) -> None:
    leg, attempted, latencies = minute
    levels = compute_broker_minute_levels(leg, attempted, latencies)
    assert levels is not None
    assert levels.availability == len(latencies) / attempted
    censored = [*latencies, *[CENSORED_LATENCY_US[leg]] * (attempted - len(latencies))]
    p99 = levels.latency_p99_censored_us
    assert p99 in censored
    assert 100 * sum(us <= p99 for us in censored) >= 99 * attempted
    assert 100 * sum(us < p99 for us in censored) < 99 * attempted


@given(_minutes())
def test_quantiles_ascend_and_the_censored_p99_is_never_lower(
    minute: tuple[str, int, list[int]],
) -> None:
    levels = compute_broker_minute_levels(*minute)
    assert levels is not None
    if minute[2]:
        assert levels.latency_p50_us is not None
        assert levels.latency_p99_us is not None
        assert levels.latency_max_us is not None
        assert levels.latency_p50_us <= levels.latency_p99_us <= levels.latency_max_us
        assert levels.latency_p99_us <= levels.latency_p99_censored_us
    else:
        assert (levels.latency_p50_us, levels.latency_p99_us, levels.latency_max_us) == (None, None, None)


@given(LEGS, st.integers(0, 49))
def test_a_minute_with_fewer_than_fifty_attempts_is_not_measured(leg: str, attempted: int) -> None:
    assert compute_broker_minute_levels(leg, attempted, [1] * attempted) is None


@pytest.mark.parametrize(("leg", "deadline_us"), [("client", 10_000_000), ("leader", 5_000_000)])
def test_the_censored_p99_without_a_success_is_the_deadline(leg: str, deadline_us: int) -> None:
    levels = compute_broker_minute_levels(leg, 100, [])
    assert levels is not None
    assert (levels.availability, levels.latency_p99_censored_us) == (0, deadline_us)


@pytest.mark.parametrize(("failures", "censored_us"), [(0, 7), (1, 7), (2, 10_000_000)])
def test_two_failures_of_a_hundred_probes_raise_the_censored_p99_to_the_deadline_and_one_does_not(
    failures: int, censored_us: int
) -> None:
    levels = compute_broker_minute_levels("client", 100, [7] * (100 - failures))
    assert levels is not None
    assert levels.latency_p99_us == 7
    assert levels.latency_p99_censored_us == censored_us


def test_error_budgets_of_a_week() -> None:
    assert latency_budget_minutes(WEEK) == 100.8
    assert availability_budget_minutes(0.9995, WEEK) == pytest.approx(5.04)
    assert availability_budget_minutes(0.9999, WEEK) == pytest.approx(1.008)
