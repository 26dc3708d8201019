"""Burn rates: thresholds in whole minutes, exact at the edge, frozen where nothing is known."""

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
    BurnHistory,
    BurnMinute,
    Indicator,
    State,
)

END = datetime(2026, 3, 5, 12, tzinfo=UTC)
OBJECTIVE = 0.9995
ATTEMPTS = 300


def _minutes(
    count: int, bad: int = 0, failed: Sequence[int] = (), unmeasured: int = 0, end: datetime = END
) -> list[BurnMinute]:
    """``count`` minutes up to the end: the newest are bad or have failures, the oldest are unmeasured."""
    rows = []
    for ago in range(1, count + 1):
        measured = ago <= count - unmeasured
        attempted = ATTEMPTS if measured else 0
        lost = failed[ago - 1] if ago <= len(failed) else 0
        rows.append(
            BurnMinute(end - timedelta(minutes=ago), ago <= bad, attempted, attempted - lost, 3, 3 * measured)
        )
    return rows


def _alert(minutes: Sequence[BurnMinute], window: BurnWindow, indicator: Indicator) -> BurnAlert:
    found = BurnHistory(minutes).alerts(END, (window,), OBJECTIVE)
    return next(alert for alert in found if alert.indicator is indicator)


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
def test_windows_in_bad_minutes_at_99_percent(
    period: int, number: int, bad_of_long: int, bad_of_short: int
) -> None:
    window = BURN_WINDOWS[7 if period == 7 else 30][number]

    def state(bad_now: int, bad_before: int) -> State:
        newest = _minutes(window.short_minutes, bad_now)
        before = _minutes(
            window.long_minutes - window.short_minutes,
            bad_before,
            end=END - timedelta(minutes=window.short_minutes),
        )
        return _alert(newest + before, window, Indicator.LATENCY).state

    rest = bad_of_long - bad_of_short
    assert state(bad_of_short, rest) is State.FIRING
    assert state(bad_of_short, rest - 1) is State.QUIET
    assert state(bad_of_short - 1, rest + 1) is State.QUIET


def test_exactly_the_factor_fires() -> None:
    # 21 of 350 minutes are six times 1%, which binary fractions put at 5.9999999999999947.
    window = BurnWindow("page", 350, 350, 6)
    alert = _alert(_minutes(350, bad=21), window, Indicator.LATENCY)
    assert (alert.long.burn, alert.state) == (6, State.FIRING)


def test_availability_burns_by_the_share_that_failed() -> None:
    # Half a minute and a third of one, of sixty: (1/2 + 1/3) / 60 over 0.0005 is 27.7 times.
    history = BurnHistory(_minutes(60, failed=[150, 100]))
    shown = history.window(END, 60, Indicator.AVAILABILITY, OBJECTIVE)
    assert float(shown.burn or 0) == pytest.approx((1 / 2 + 1 / 3) / 60 / 0.0005, rel=1e-12)


def test_availability_at_exactly_its_factor_fires() -> None:
    window = BurnWindow("page", 60, 5, 13.44)
    # 0.0005 * 13.44 = 0.00672 of a minute's probes, each minute.
    minutes = [BurnMinute(END - timedelta(minutes=n), False, 100_000, 99_328, 3, 3) for n in range(1, 61)]
    assert _alert(minutes, window, Indicator.AVAILABILITY).state is State.FIRING
    one_less = [minute._replace(succeeded=99_329) for minute in minutes[:1]] + minutes[1:]
    assert _alert(one_less, window, Indicator.AVAILABILITY).state is State.QUIET


@pytest.mark.parametrize(("unmeasured", "state"), [(6, State.FIRING), (7, State.FROZEN), (60, State.FROZEN)])
def test_a_window_under_90_percent_coverage_freezes_its_alert(unmeasured: int, state: State) -> None:
    minutes = _minutes(60, bad=20, unmeasured=unmeasured)
    assert _alert(minutes, BURN_WINDOWS[7][0], Indicator.LATENCY).state is state


def test_a_short_window_without_data_freezes_a_quiet_alert_too() -> None:
    silent = [
        minute._replace(attempted=0, succeeded=0, measured=0)
        if minute.minute >= END - timedelta(minutes=5)
        else minute
        for minute in _minutes(60)
    ]
    alert = _alert(silent, BURN_WINDOWS[7][0], Indicator.LATENCY)
    assert (alert.state, alert.short.burn, alert.short.coverage) == (State.FROZEN, None, 0)


def test_without_any_minute_every_alert_is_frozen() -> None:
    found = BurnHistory([]).alerts(END, BURN_WINDOWS[7], OBJECTIVE)
    assert {alert.state for alert in found} == {State.FROZEN}
    assert {alert.long.coverage for alert in found} == {None}


def test_minutes_that_were_taken_out_are_not_expected() -> None:
    kept = [minute for minute in _minutes(60, bad=9) if minute.minute.minute % 10]
    alert = _alert(kept, BURN_WINDOWS[7][0], Indicator.LATENCY)
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


def _naive(rows: Sequence[BurnMinute], start: datetime, window: BurnWindow, indicator: Indicator) -> State:
    """As the definition reads, window by window."""
    burns = []
    for length in (window.long_minutes, window.short_minutes):
        inside = [row for row in rows if start - timedelta(minutes=length) <= row.minute < start]
        expected, measured = (sum(getattr(row, name) for row in inside) for name in ("expected", "measured"))
        if not expected or Fraction(measured, expected) < Fraction(9, 10):
            return State.FROZEN
        seen = [row for row in inside if row.measured]
        if indicator is Indicator.LATENCY:
            errors = [Fraction(row.bad) for row in seen]
        else:
            errors = [1 - Fraction(row.succeeded, row.attempted) for row in seen]
        allowed = Fraction(1, 100) if indicator is Indicator.LATENCY else Fraction(5, 10_000)
        burns.append(sum(errors) / len(seen) / allowed)
    return State.FIRING if min(burns) >= Fraction(str(window.factor)) else State.QUIET


@given(
    _ROWS,
    st.builds(
        BurnWindow, st.just("page"), st.integers(1, 120), st.integers(1, 30), st.sampled_from([1, 3.5, 13.44])
    ),
    st.integers(0, 60),
    st.sampled_from(Indicator),
)
def test_prefix_sums_agree_with_the_definition(
    rows: list[BurnMinute], window: BurnWindow, ago: int, indicator: Indicator
) -> None:
    end = END - timedelta(minutes=ago)
    found = BurnHistory(rows).alerts(end, (window,), OBJECTIVE)
    (alert,) = (one for one in found if one.indicator is indicator)
    assert alert.state is _naive(rows, end, window, indicator)


@given(_ROWS, st.randoms())
def test_the_order_of_rows_changes_nothing(rows: list[BurnMinute], random: Random) -> None:
    shuffled = random.sample(rows, len(rows))
    assert BurnHistory(shuffled).alerts(END, BURN_WINDOWS[7], OBJECTIVE) == BurnHistory(rows).alerts(
        END, BURN_WINDOWS[7], OBJECTIVE
    )
