"""Tests of the share of the budget that a window stands for, and of the objectives that it can alert on."""

import pytest

from fleetgauge_core.fleet import BURN_WINDOWS, BurnWindow
from fleetgauge_core.fleet.burn_windows import PeriodDays, find_unreachable_window


@pytest.mark.parametrize(("period", "percent"), [(7, [8, 12.5, 20, 42]), (30, [2, 5, 10, 10])])
def test_each_window_fires_after_a_known_share_of_the_budget(
    period: PeriodDays, percent: list[float]
) -> None:
    shares = [100 * window.factor * window.long_minutes / (period * 1440) for window in BURN_WINDOWS[period]]
    assert shares == pytest.approx(percent)


def test_a_window_is_named_by_its_lengths() -> None:
    assert [window.name for window in BURN_WINDOWS[7]] == ["1h/5m", "6h/30m", "1d/2h", "3d/6h"]


@pytest.mark.parametrize("window", [window for windows in BURN_WINDOWS.values() for window in windows])
def test_a_window_can_fire_from_its_minimum_objective_on(window: BurnWindow) -> None:
    assert window.can_fire(window.minimum_objective)
    assert window.factor <= 1 or not window.can_fire(window.minimum_objective - 0.0001)


def test_the_unreachable_window_has_the_highest_burn_rate() -> None:
    assert find_unreachable_window(BURN_WINDOWS[7], 0.9) == BURN_WINDOWS[7][0]
    assert find_unreachable_window(BURN_WINDOWS[7], 0.93) is None
    assert find_unreachable_window(BURN_WINDOWS[30], 0.93) == BURN_WINDOWS[30][0]
