"""Weeks with clock changes of many kinds, in which the random fleets take place."""

from dataclasses import dataclass
from datetime import UTC, date, datetime

from tests.oracle.settings import Settings
from tests.oracle.week_rules import find_week, find_week_bounds


@dataclass(frozen=True, slots=True)
class ClockChangeWeek:
    """A fleet's zone and start of the week, and the moment of a clock change."""

    zone: str
    start: str
    changes_at: datetime

    @property
    def bounds(self) -> tuple[datetime, datetime]:
        """Start of the week of the clock change and of the next week, in UTC."""
        settings = Settings((), week_zone=self.zone, week_start=self.start)
        return find_week_bounds(self.week, settings)

    @property
    def week(self) -> date:
        return find_week(self.changes_at, Settings((), week_zone=self.zone, week_start=self.start))


def _at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


CLOCK_CHANGE_WEEKS = (
    ClockChangeWeek("Europe/Berlin", "monday", _at("2026-03-29T01:00")),
    ClockChangeWeek("America/New_York", "sunday", _at("2026-11-01T06:00")),
    # Clocks change by 30 minutes.
    ClockChangeWeek("Australia/Lord_Howe", "sunday", _at("2026-04-04T15:00")),
    # Friday, December 30th was skipped: a week begins on a day that does not exist.
    ClockChangeWeek("Pacific/Apia", "friday", _at("2011-12-30T10:00")),
    # The same skipped day within a week.
    ClockChangeWeek("Pacific/Apia", "monday", _at("2011-12-30T10:00")),
    # Standard time during Ramadan: clocks change in unusual months.
    ClockChangeWeek("Africa/Casablanca", "thursday", _at("2026-02-15T02:00")),
    ClockChangeWeek("Africa/Casablanca", "monday", _at("2026-03-22T02:00")),
    # Clocks go from 00:00 to 01:00: the local start of the week does not exist.
    ClockChangeWeek("Asia/Beirut", "sunday", _at("2026-03-28T22:00")),
    # Clocks go from 01:00 to 00:00: the local start of the week occurs twice.
    ClockChangeWeek("America/Havana", "sunday", _at("2026-11-01T05:00")),
    ClockChangeWeek("Europe/Berlin", "wednesday", _at("2026-10-25T01:00")),
    ClockChangeWeek("UTC", "saturday", _at("2026-12-31T23:00")),
)
