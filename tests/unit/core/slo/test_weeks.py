"""Weeks of a time zone and a start day, through clock changes."""

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_core.slo.weeks import WeekCalendar

DAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
ZONES = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Asia/Kathmandu",
    "Australia/Lord_Howe",  # daylight saving time shifts by 30 minutes
    "Africa/Cairo",  # clocks change at midnight
    "America/Havana",  # midnight occurs twice when clocks go back
    "Pacific/Apia",
]
CALENDARS = st.builds(WeekCalendar, st.sampled_from(ZONES), st.sampled_from(DAYS))
INSTANTS = st.datetimes(datetime(2015, 1, 1), datetime(2040, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
BERLIN = WeekCalendar("Europe/Berlin", "monday")


@given(CALENDARS, INSTANTS)
def test_every_instant_lies_in_exactly_one_week(calendar: WeekCalendar, instant: datetime) -> None:
    week = calendar.week_at(instant)
    assert week.start <= instant < week.end
    before, after = calendar.week_at(week.start - timedelta(microseconds=1)), calendar.week_at(week.end)
    assert before.end == week.start
    assert after.start == week.end
    assert calendar.week_at(week.start) == calendar.week_at(week.end - timedelta(microseconds=1)) == week


@given(CALENDARS, INSTANTS)
def test_a_week_is_identified_by_its_first_local_day_and_bounded_in_utc(
    calendar: WeekCalendar, instant: datetime
) -> None:
    week = calendar.week_at(instant)
    assert DAYS[week.week.weekday()] == calendar.start
    assert week.start.astimezone(ZoneInfo(calendar.zone)).date() == week.week
    assert week.start.utcoffset() == week.end.utcoffset() == timedelta()


@given(CALENDARS, INSTANTS)
def test_a_week_has_seven_days_plus_or_minus_one_clock_change(
    calendar: WeekCalendar, instant: datetime
) -> None:
    assert abs(calendar.week_at(instant).minutes - 10_080) in (0, 30, 60)


@given(CALENDARS, INSTANTS)
def test_all_seven_days_of_a_week_map_to_it(calendar: WeekCalendar, instant: datetime) -> None:
    week = calendar.week_at(instant)
    assert {calendar.week_of(week.week + timedelta(days=n)) for n in range(7)} == {week}
    assert calendar.week_of(week.week + timedelta(days=7)) != week


@given(CALENDARS, INSTANTS, st.timedeltas(timedelta(), timedelta(days=60)))
def test_the_weeks_between_two_instants_have_no_gap(
    calendar: WeekCalendar, first: datetime, length: timedelta
) -> None:
    weeks = calendar.weeks_between(first, first + length)
    assert (weeks[0], weeks[-1]) == (calendar.week_at(first), calendar.week_at(first + length))
    assert all(a.end == b.start for a, b in pairwise(weeks))


@pytest.mark.parametrize(
    ("day", "minutes"),
    [
        (date(2026, 3, 23), 10_020),  # daylight saving time starts on Sunday the 29th
        (date(2026, 10, 19), 10_140),  # and ends on Sunday the 25th
        (date(2026, 3, 30), 10_080),
        (date(2026, 7, 13), 10_080),
    ],
)
def test_a_clock_change_makes_berlins_week_an_hour_shorter_or_longer(day: date, minutes: int) -> None:
    week = BERLIN.week_of(day)
    assert (week.week, week.minutes) == (day, minutes)


def test_a_clock_change_on_sunday_is_in_the_week_that_starts_on_that_sunday() -> None:
    sundays = WeekCalendar("Europe/Berlin", "sunday")
    assert sundays.week_of(date(2026, 3, 22)).minutes == 10_080
    assert sundays.week_of(date(2026, 3, 29)).minutes == 10_020
    assert sundays.week_of(date(2026, 10, 25)).minutes == 10_140


def test_a_week_of_berlin_in_summer_starts_at_22_utc() -> None:
    week = BERLIN.week_at(datetime(2026, 7, 15, tzinfo=UTC))
    assert week.start == datetime(2026, 7, 12, 22, tzinfo=UTC)
    assert week.end == datetime(2026, 7, 19, 22, tzinfo=UTC)


def test_the_default_week_runs_from_monday_to_monday_and_closes_48_hours_later() -> None:
    week = WeekCalendar("UTC", "monday").week_at(datetime(2026, 3, 8, 23, 59, 59, tzinfo=UTC))
    assert week.week == date(2026, 3, 2)
    assert (week.end, week.minutes) == (datetime(2026, 3, 9, tzinfo=UTC), 10_080)
    assert week.closes_at == datetime(2026, 3, 11, tzinfo=UTC)


def test_an_instant_in_any_zone_lies_in_the_same_week() -> None:
    instant = datetime(2026, 3, 1, 23, 30, tzinfo=UTC)
    assert BERLIN.week_at(instant).week == date(2026, 3, 2)
    assert BERLIN.week_at(instant.astimezone(ZoneInfo("America/New_York"))).week == date(2026, 3, 2)
