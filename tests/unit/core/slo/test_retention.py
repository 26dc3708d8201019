"""Retention of the lake's days."""

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_core.slo.retention import (
    MINUTE_RETENTION,
    SAMPLE_RETENTION,
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
def test_an_expired_day_is_entirely_older_than_the_retention(clock: datetime, days: int) -> None:
    kept = timedelta(days=days)
    first = datetime.combine(first_kept_day(clock, kept, ()), datetime.min.time(), UTC)
    assert clock - kept - timedelta(days=1) < first <= clock - kept


def test_the_days_of_an_unfinished_week_do_not_expire() -> None:
    unfinished = [WEEKS.week_of(date(2026, 3, 4)), WEEKS.week_of(date(2026, 4, 8))]
    assert first_kept_day(CLOCK, timedelta(days=10), unfinished) == date(2026, 3, 2)
    assert first_kept_day(CLOCK, timedelta(days=60), unfinished) == date(2026, 2, 14)


def test_the_utc_day_in_which_an_unfinished_week_starts_does_not_expire() -> None:
    in_auckland = WeekCalendar("Pacific/Auckland", "monday").week_of(date(2026, 3, 4))
    assert first_kept_day(CLOCK, timedelta(days=1), [in_auckland]) == date(2026, 3, 1)


@pytest.mark.parametrize(("hour", "closed"), [(0, date(2026, 4, 13)), (1, date(2026, 4, 14))])
def test_a_day_is_closed_an_hour_after_its_end(hour: int, closed: date) -> None:
    assert last_closed_day(CLOCK.replace(hour=hour)) == closed


def test_minutes_are_retained_longer_than_samples() -> None:
    assert timedelta(days=7) < SAMPLE_RETENTION < timedelta(days=365) < MINUTE_RETENTION
