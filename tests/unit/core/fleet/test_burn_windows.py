"""The windows say what share of a period's budget they stand for, and which objective they can judge."""

import pytest

from fleetgauge_core.fleet import BURN_WINDOWS, BurnWindow
from fleetgauge_core.fleet.burn_windows import PeriodDays, deaf_window


@pytest.mark.parametrize(("period", "spent"), [(7, [8, 12.5, 20, 42]), (30, [2, 5, 10, 10])])
def test_each_window_stands_for_a_share_of_its_periods_budget(period: PeriodDays, spent: list[float]) -> None:
    shares = [100 * w.factor * w.long_minutes / (period * 1440) for w in BURN_WINDOWS[period]]
    assert shares == pytest.approx(spent)


def test_a_window_is_named_by_its_lengths() -> None:
    assert [window.name for window in BURN_WINDOWS[7]] == ["1h/5m", "6h/30m", "1d/2h", "3d/6h"]


@pytest.mark.parametrize("window", [window for windows in BURN_WINDOWS.values() for window in windows])
def test_the_least_objective_works_and_a_little_less_does_not(window: BurnWindow) -> None:
    assert window.can_fire(window.least_objective)
    assert window.factor <= 1 or not window.can_fire(window.least_objective - 0.0001)


def test_the_window_with_the_largest_factor_decides() -> None:
    assert deaf_window(BURN_WINDOWS[7], 0.9) == BURN_WINDOWS[7][0]
    assert deaf_window(BURN_WINDOWS[7], 0.93) is None
    assert deaf_window(BURN_WINDOWS[30], 0.93) == BURN_WINDOWS[30][0]
