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
    "Australia/Lord_Howe",  # half an hour of summer time
    "Africa/Cairo",  # clocks change at midnight
    "America/Havana",  # midnight comes twice
    "Pacific/Apia",
]
CALENDARS = st.builds(WeekCalendar, st.sampled_from(ZONES), st.sampled_from(DAYS))
INSTANTS = st.datetimes(datetime(2015, 1, 1), datetime(2040, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
BERLIN = WeekCalendar("Europe/Berlin", "monday")


@given(CALENDARS, INSTANTS)
def test_every_instant_lies_in_exactly_one_week(calendar: WeekCalendar, instant: datetime) -> None:
    week = calendar.of(instant)
    assert week.start <= instant < week.end
    before, after = calendar.of(week.start - timedelta(microseconds=1)), calendar.of(week.end)
    assert before.end == week.start
    assert after.start == week.end
    assert calendar.of(week.start) == calendar.of(week.end - timedelta(microseconds=1)) == week


@given(CALENDARS, INSTANTS)
def test_a_week_is_named_by_its_first_local_day_and_bounded_in_utc(
    calendar: WeekCalendar, instant: datetime
) -> None:
    week = calendar.of(instant)
    assert DAYS[week.week.weekday()] == calendar.start
    assert week.start.astimezone(ZoneInfo(calendar.zone)).date() == week.week
    assert week.start.utcoffset() == week.end.utcoffset() == timedelta()


@given(CALENDARS, INSTANTS)
def test_a_week_has_seven_days_give_or_take_one_clock_change(
    calendar: WeekCalendar, instant: datetime
) -> None:
    assert abs(calendar.of(instant).minutes - 10_080) in (0, 30, 60)


@given(CALENDARS, INSTANTS)
def test_each_of_its_seven_days_names_the_same_week(calendar: WeekCalendar, instant: datetime) -> None:
    week = calendar.of(instant)
    assert {calendar.of_day(week.week + timedelta(days=n)) for n in range(7)} == {week}
    assert calendar.of_day(week.week + timedelta(days=7)) != week


@given(CALENDARS, INSTANTS, st.timedeltas(timedelta(), timedelta(days=60)))
def test_the_weeks_between_two_instants_follow_each_other_without_a_gap(
    calendar: WeekCalendar, first: datetime, length: timedelta
) -> None:
    weeks = calendar.between(first, first + length)
    assert (weeks[0], weeks[-1]) == (calendar.of(first), calendar.of(first + length))
    assert all(a.end == b.start for a, b in pairwise(weeks))


@pytest.mark.parametrize(
    ("day", "minutes"),
    [
        (date(2026, 3, 23), 10_020),  # summer time starts on Sunday the 29th
        (date(2026, 10, 19), 10_140),  # and ends on Sunday the 25th
        (date(2026, 3, 30), 10_080),
        (date(2026, 7, 13), 10_080),
    ],
)
def test_a_clock_change_makes_berlins_week_an_hour_shorter_or_longer(day: date, minutes: int) -> None:
    week = BERLIN.of_day(day)
    assert (week.week, week.minutes) == (day, minutes)


def test_the_same_clock_change_lies_in_the_week_that_starts_on_its_sunday() -> None:
    sundays = WeekCalendar("Europe/Berlin", "sunday")
    assert sundays.of_day(date(2026, 3, 22)).minutes == 10_080
    assert sundays.of_day(date(2026, 3, 29)).minutes == 10_020
    assert sundays.of_day(date(2026, 10, 25)).minutes == 10_140


def test_berlins_summer_week_starts_at_ten_in_the_evening_utc() -> None:
    week = BERLIN.of(datetime(2026, 7, 15, tzinfo=UTC))
    assert week.start == datetime(2026, 7, 12, 22, tzinfo=UTC)
    assert week.end == datetime(2026, 7, 19, 22, tzinfo=UTC)


def test_the_default_week_runs_from_monday_to_monday_and_closes_48_hours_later() -> None:
    week = WeekCalendar("UTC", "monday").of(datetime(2026, 3, 8, 23, 59, 59, tzinfo=UTC))
    assert week.week == date(2026, 3, 2)
    assert (week.end, week.minutes) == (datetime(2026, 3, 9, tzinfo=UTC), 10_080)
    assert week.closes_at == datetime(2026, 3, 11, tzinfo=UTC)


def test_an_instant_in_any_zone_lies_in_the_same_week() -> None:
    instant = datetime(2026, 3, 1, 23, 30, tzinfo=UTC)
    assert BERLIN.of(instant).week == date(2026, 3, 2)
    assert BERLIN.of(instant.astimezone(ZoneInfo("America/New_York"))).week == date(2026, 3, 2)
