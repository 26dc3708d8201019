"""Which days stay."""

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_core.slo.retention import (
    MINUTES_KEPT,
    SAMPLES_KEPT,
    first_kept_day,
    last_closed_day,
)
from fleetgauge_core.slo.weeks import WeekCalendar

CLOCK = datetime(2026, 4, 15, 0, 30, tzinfo=UTC)
WEEKS = WeekCalendar("UTC", "monday")


@given(
    st.datetimes(timezones=st.just(UTC)).filter(lambda at: at.year > 2000),
    st.integers(1, 400),
)
def test_no_minute_that_goes_is_younger_than_what_is_kept(clock: datetime, days: int) -> None:
    kept = timedelta(days=days)
    first = datetime.combine(first_kept_day(clock, kept, ()), datetime.min.time(), UTC)
    assert clock - kept - timedelta(days=1) < first <= clock - kept


def test_no_day_of_an_unfinished_week_goes() -> None:
    unfinished = [WEEKS.of_day(date(2026, 3, 4)), WEEKS.of_day(date(2026, 4, 8))]
    assert first_kept_day(CLOCK, timedelta(days=10), unfinished) == date(2026, 3, 2)
    assert first_kept_day(CLOCK, timedelta(days=60), unfinished) == date(2026, 2, 14)


def test_a_week_that_begins_at_another_hour_keeps_the_whole_utc_day_of_its_start() -> None:
    in_auckland = WeekCalendar("Pacific/Auckland", "monday").of_day(date(2026, 3, 4))
    assert first_kept_day(CLOCK, timedelta(days=1), [in_auckland]) == date(2026, 3, 1)


@pytest.mark.parametrize(("hour", "closed"), [(0, date(2026, 4, 13)), (1, date(2026, 4, 14))])
def test_a_day_is_closed_an_hour_after_its_end(hour: int, closed: date) -> None:
    assert last_closed_day(CLOCK.replace(hour=hour)) == closed


def test_minutes_are_kept_longer_than_their_samples() -> None:
    assert timedelta(days=7) < SAMPLES_KEPT < timedelta(days=365) < MINUTES_KEPT
