"""What a change cost: estimates on simulated fleets with planted changes, and worked numbers."""

from math import exp, log, nan, pi, sin
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_core.slo import change_cost
from fleetgauge_core.slo.change_cost import MINUTES_PER_WEEK, ChangeCost, LossSeries

WEEKS = 5


def estimate_cost(losses: dict[int, float], window: range) -> ChangeCost | None:
    return change_cost.estimate_cost(LossSeries.build([*losses], [*losses.values()]), window)


PLANTED = (0.0, 0.05, 0.2)


def simulate_fleet(random: Random) -> list[int]:
    """Return the bad minutes of five weeks; clusters have few or many, in clumps, by the hour of a day."""
    rate, phase, swing = exp(random.uniform(log(0.002), log(0.05))), random.random(), 0.8 * random.random()
    bad, minutes = False, []
    for minute in range(WEEKS * MINUTES_PER_WEEK):
        share = rate * (1 + swing * sin(2 * pi * (minute / 1440 + phase)))
        # A bad minute is followed by another one with two chances in three.
        bad = random.random() > 1 / 3 if bad else random.random() < share / 3 / (1 - share)
        minutes.append(int(bad))
    return minutes


def plant(minutes: list[int], window: range, share: float, random: Random) -> tuple[dict[int, float], int]:
    """Return the losses with a change that makes a share of its minutes bad, and how many it made so."""
    losses = {minute: float(loss) for minute, loss in enumerate(minutes)}
    hit = [minute for minute in window if not minutes[minute] and random.random() < share]
    return losses | dict.fromkeys(hit, 1.0), len(hit)


def estimate_fleets(count: int) -> dict[float, list[tuple[ChangeCost, int]]]:
    random = Random(20260302)
    estimates: dict[float, list[tuple[ChangeCost, int]]] = {share: [] for share in PLANTED}
    for _ in range(count):
        minutes, length = simulate_fleet(random), random.choice([30, 60, 120, 240])
        start = 4 * MINUTES_PER_WEEK + random.randrange(MINUTES_PER_WEEK - length)
        for share in PLANTED:
            losses, cost = plant(minutes, range(start, start + length), share, random)
            estimate = estimate_cost(losses, range(start, start + length))
            assert estimate is not None
            estimates[share].append((estimate, cost))
    return estimates


def is_covered(estimate: ChangeCost, cost: int) -> bool:
    assert estimate.low is not None
    assert estimate.high is not None
    return estimate.low <= cost <= estimate.high


@pytest.mark.thorough
def test_the_interval_holds_what_a_planted_change_cost_in_500_fleets() -> None:
    for share, estimates in estimate_fleets(500).items():
        covered = sum(is_covered(estimate, cost) for estimate, cost in estimates) / len(estimates)
        assert 0.92 <= covered <= 0.98, (share, covered)
        verdicts = [(estimate.verdict, cost) for estimate, cost in estimates]
        false_costs = sum(verdict == "cost" and not cost for verdict, cost in verdicts)
        negligible = [max(1.0, 0.01 * estimate.measured_minutes) for estimate, _ in estimates]
        false_nothings = sum(
            verdict == "nothing" and cost > limit
            for (verdict, cost), limit in zip(verdicts, negligible, strict=True)
        )
        assert (false_costs + false_nothings) / len(estimates) <= 0.07, share


def test_a_large_cost_is_found_and_none_is_mostly_not_invented() -> None:
    estimates = estimate_fleets(12)
    assert [estimate.verdict for estimate, _ in estimates[0.2]].count("cost") >= 10
    assert [estimate.verdict for estimate, _ in estimates[0.0]].count("cost") <= 2


def build_quiet_weeks(bad_every: int = 100) -> dict[int, float]:
    return {minute: float(minute % bad_every == 0) for minute in range(WEEKS * MINUTES_PER_WEEK)}


def test_worked_numbers() -> None:
    losses = build_quiet_weeks(60)
    window = range(4 * MINUTES_PER_WEEK, 4 * MINUTES_PER_WEEK + 60)
    # One bad minute an hour, in every week: the window has it, too, and twelve more.
    losses |= {window.start + number: 1.0 for number in range(1, 13)}
    estimate = estimate_cost(losses, window)
    assert estimate == ChangeCost(60, 13.0, 1.0, (1.0,) * 4, 12.0, 12.0)
    assert (estimate.cost, estimate.verdict) == (12.0, "cost")


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (0.5, 3.0, "cost"),
        (-3.0, -0.5, "gained"),
        (-2.0, 0.5, "nothing"),
        (-2.0, 5.0, "unclear"),
        (None, None, "unknown"),
    ],
)
def test_verdicts(low: float | None, high: float | None, verdict: str) -> None:
    assert ChangeCost(60, 1.0, 1.0, (1.0, 1.0), low, high).verdict == verdict


def test_too_little_measured_has_no_cost_and_a_gap_is_no_loss() -> None:
    window = range(4 * MINUTES_PER_WEEK, 4 * MINUTES_PER_WEEK + 60)
    assert estimate_cost({}, window) is None
    assert estimate_cost(build_quiet_weeks(), range(3 * MINUTES_PER_WEEK, 4 * MINUTES_PER_WEEK + 1)) is None
    assert estimate_cost({window.start: 1.0}, window) is None
    losses = build_quiet_weeks(60)
    for minute in range(MINUTES_PER_WEEK):
        # The first control week was not measured.
        del losses[minute]
    estimate = estimate_cost(losses, window)
    assert estimate is not None
    assert estimate.controls == (1.0, 1.0, 1.0)
    half = {
        minute: loss for minute, loss in losses.items() if minute not in range(window.start + 30, window.stop)
    }
    measured_half = estimate_cost(half, window)
    assert measured_half is not None
    assert (measured_half.measured_minutes, measured_half.observed, measured_half.expected) == (30, 1.0, 0.5)


@given(st.lists(st.lists(st.just(nan) | st.floats(-1e9, 1e9), min_size=3, max_size=3), min_size=1))
def test_medians_of_rows_in_order_are_numpys(rows: list[list[float]]) -> None:
    values = np.sort([row for row in [*rows, [1.0, nan, nan]] if not np.isnan(row).all()], axis=1)
    np.testing.assert_array_equal(change_cost._find_medians(values), np.nanmedian(values, axis=1))
