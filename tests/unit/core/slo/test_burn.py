"""Burn rates and burn-rate alerts: exact at their thresholds, frozen where coverage is too low."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_core.fleet import BURN_WINDOWS, BurnWindow
from fleetgauge_core.slo.burn import (
    BurnAlert,
    BurnAlertState,
    BurnHistory,
    BurnMinute,
    ServiceLevelIndicator,
)

END = datetime(2026, 3, 5, 12, tzinfo=UTC)
OBJECTIVE = 0.9995
ATTEMPTS = 300


def _minutes(
    count: int, bad: int = 0, failed: Sequence[int] = (), unmeasured: int = 0, end: datetime = END
) -> list[BurnMinute]:
    """Return minutes up to the end: the latest are bad or have failures, the oldest are not measured."""
    rows = []
    for ago in range(1, count + 1):
        measured = ago <= count - unmeasured
        attempted = ATTEMPTS if measured else 0
        failures = failed[ago - 1] if ago <= len(failed) else 0
        rows.append(
            BurnMinute(
                end - timedelta(minutes=ago), ago <= bad, attempted, attempted - failures, 3, 3 * measured
            )
        )
    return rows


def _alert(minutes: Sequence[BurnMinute], window: BurnWindow, indicator: ServiceLevelIndicator) -> BurnAlert:
    alerts = BurnHistory(minutes).evaluate_alerts(END, (window,), OBJECTIVE)
    return next(alert for alert in alerts if alert.indicator is indicator)


@pytest.mark.parametrize(
    ("period", "number", "bad_of_long", "bad_of_short"),
    [
        (7, 0, 9, 1),
        (7, 1, 13, 2),
        (7, 2, 21, 2),
        (7, 3, 43, 4),
        (30, 0, 9, 1),
        (30, 1, 22, 2),
        (30, 2, 44, 4),
        (30, 3, 44, 4),
    ],
)
def test_an_alert_fires_at_the_bad_minutes_that_both_windows_need(
    period: int, number: int, bad_of_long: int, bad_of_short: int
) -> None:
    window = BURN_WINDOWS[7 if period == 7 else 30][number]

    def state(bad_now: int, bad_before: int) -> BurnAlertState:
        newest = _minutes(window.short_minutes, bad_now)
        before = _minutes(
            window.long_minutes - window.short_minutes,
            bad_before,
            end=END - timedelta(minutes=window.short_minutes),
        )
        return _alert(newest + before, window, ServiceLevelIndicator.LATENCY).state

    rest = bad_of_long - bad_of_short
    assert state(bad_of_short, rest) is BurnAlertState.FIRING
    assert state(bad_of_short, rest - 1) is BurnAlertState.QUIET
    assert state(bad_of_short - 1, rest + 1) is BurnAlertState.QUIET


def test_a_burn_rate_of_exactly_the_factor_fires() -> None:
    # 21 of 350 minutes are 6 times 1%; computed in floats it would be 5.9999999999999947.
    window = BurnWindow("page", 350, 350, 6)
    alert = _alert(_minutes(350, bad=21), window, ServiceLevelIndicator.LATENCY)
    assert (alert.long.burn, alert.state) == (6, BurnAlertState.FIRING)


def test_the_availability_burn_rate_is_the_mean_failed_share_over_the_allowed_one() -> None:
    # Half of one minute and a third of another, of 60: (1/2 + 1/3) / 60 / 0.0005 is a burn rate of 27.7.
    history = BurnHistory(_minutes(60, failed=[150, 100]))
    window = history.measure_window(END, 60, ServiceLevelIndicator.AVAILABILITY, OBJECTIVE)
    assert float(window.burn or 0) == pytest.approx((1 / 2 + 1 / 3) / 60 / 0.0005, rel=1e-12)


def test_an_availability_burn_rate_of_exactly_the_factor_fires() -> None:
    window = BurnWindow("page", 60, 5, 13.44)
    # In each minute, 0.0005 * 13.44 = 0.00672 of the probes fail.
    minutes = [BurnMinute(END - timedelta(minutes=n), False, 100_000, 99_328, 3, 3) for n in range(1, 61)]
    assert _alert(minutes, window, ServiceLevelIndicator.AVAILABILITY).state is BurnAlertState.FIRING
    one_less = [minute._replace(succeeded=99_329) for minute in minutes[:1]] + minutes[1:]
    assert _alert(one_less, window, ServiceLevelIndicator.AVAILABILITY).state is BurnAlertState.QUIET


@pytest.mark.parametrize(
    ("unmeasured", "state"),
    [(6, BurnAlertState.FIRING), (7, BurnAlertState.FROZEN), (60, BurnAlertState.FROZEN)],
)
def test_a_window_under_90_percent_coverage_freezes_its_alert(unmeasured: int, state: BurnAlertState) -> None:
    minutes = _minutes(60, bad=20, unmeasured=unmeasured)
    assert _alert(minutes, BURN_WINDOWS[7][0], ServiceLevelIndicator.LATENCY).state is state


def test_a_short_window_without_measurements_freezes_a_quiet_alert() -> None:
    minutes = [
        minute._replace(attempted=0, succeeded=0, measured=0)
        if minute.minute >= END - timedelta(minutes=5)
        else minute
        for minute in _minutes(60)
    ]
    alert = _alert(minutes, BURN_WINDOWS[7][0], ServiceLevelIndicator.LATENCY)
    assert (alert.state, alert.short.burn, alert.short.coverage) == (BurnAlertState.FROZEN, None, 0)


def test_without_any_minute_every_alert_is_frozen() -> None:
    alerts = BurnHistory([]).evaluate_alerts(END, BURN_WINDOWS[7], OBJECTIVE)
    assert {alert.state for alert in alerts} == {BurnAlertState.FROZEN}
    assert {alert.long.coverage for alert in alerts} == {None}


def test_minutes_without_a_row_are_not_expected() -> None:
    kept = [minute for minute in _minutes(60, bad=9) if minute.minute.minute % 10]
    alert = _alert(kept, BURN_WINDOWS[7][0], ServiceLevelIndicator.LATENCY)
    assert (alert.long.coverage, alert.long.burn) == (1, Fraction(9, 54) / Fraction(1, 100))


_ROWS = st.lists(
    st.builds(
        lambda ago, bad, failed, measured: BurnMinute(
            END - timedelta(minutes=ago),
            bad and measured > 0,
            100 * measured,
            100 * measured - min(failed, 100 * measured),
            3,
            measured,
        ),
        st.integers(-5, 120),
        st.booleans(),
        st.integers(0, 300),
        st.integers(0, 3),
    ),
    unique_by=lambda row: row.minute,
)


def _state_by_definition(
    rows: Sequence[BurnMinute], start: datetime, window: BurnWindow, indicator: ServiceLevelIndicator
) -> BurnAlertState:
    """Compute the state by the definition, without prefix sums."""
    burns = []
    for length in (window.long_minutes, window.short_minutes):
        inside = [row for row in rows if start - timedelta(minutes=length) <= row.minute < start]
        expected, measured = (sum(getattr(row, name) for row in inside) for name in ("expected", "measured"))
        if not expected or Fraction(measured, expected) < Fraction(9, 10):
            return BurnAlertState.FROZEN
        with_data = [row for row in inside if row.measured]
        if indicator is ServiceLevelIndicator.LATENCY:
            errors = [Fraction(row.bad) for row in with_data]
        else:
            errors = [1 - Fraction(row.succeeded, row.attempted) for row in with_data]
        allowed = Fraction(1, 100) if indicator is ServiceLevelIndicator.LATENCY else Fraction(5, 10_000)
        burns.append(sum(errors) / len(with_data) / allowed)
    return BurnAlertState.FIRING if min(burns) >= Fraction(str(window.factor)) else BurnAlertState.QUIET


@given(
    _ROWS,
    st.builds(
        BurnWindow, st.just("page"), st.integers(1, 120), st.integers(1, 30), st.sampled_from([1, 3.5, 13.44])
    ),
    st.integers(0, 60),
    st.sampled_from(ServiceLevelIndicator),
)
def test_prefix_sums_agree_with_the_definition(
    rows: list[BurnMinute], window: BurnWindow, ago: int, indicator: ServiceLevelIndicator
) -> None:
    end = END - timedelta(minutes=ago)
    alerts = BurnHistory(rows).evaluate_alerts(end, (window,), OBJECTIVE)
    (alert,) = (alert for alert in alerts if alert.indicator is indicator)
    assert alert.state is _state_by_definition(rows, end, window, indicator)


@given(_ROWS, st.randoms())
def test_the_order_of_rows_does_not_matter(rows: list[BurnMinute], random: Random) -> None:
    shuffled = random.sample(rows, len(rows))
    ordered, unordered = (
        BurnHistory(minutes).evaluate_alerts(END, BURN_WINDOWS[7], OBJECTIVE) for minutes in (rows, shuffled)
    )
    assert ordered == unordered
