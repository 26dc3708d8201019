"""When the random fleets live: weeks in which clocks change, by zones that do it in every odd way."""

from dataclasses import dataclass
from datetime import UTC, date, datetime

from tests.oracle.settings import Settings
from tests.oracle.week_rules import week_bounds, week_of


@dataclass(frozen=True, slots=True)
class Setting:
    """A fleet's week, and a moment in it at which something odd happens to local time."""

    zone: str
    start: str
    odd_moment: datetime

    @property
    def bounds(self) -> tuple[datetime, datetime]:
        """First moment of the odd week, first of the next."""
        settings = Settings((), week_zone=self.zone, week_start=self.start)
        return week_bounds(self.week, settings)

    @property
    def week(self) -> date:
        return week_of(self.odd_moment, Settings((), week_zone=self.zone, week_start=self.start))


def _at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


SETTINGS = (
    Setting("Europe/Berlin", "monday", _at("2026-03-29T01:00")),
    Setting("America/New_York", "sunday", _at("2026-11-01T06:00")),
    # Half an hour.
    Setting("Australia/Lord_Howe", "sunday", _at("2026-04-04T15:00")),
    # The 30th of December, a Friday, did not happen: a week begins on a day that is not there.
    Setting("Pacific/Apia", "friday", _at("2011-12-30T10:00")),
    # The same lost day within a week.
    Setting("Pacific/Apia", "monday", _at("2011-12-30T10:00")),
    # Winter time in Ramadan: forward and backward in the "wrong" months.
    Setting("Africa/Casablanca", "thursday", _at("2026-02-15T02:00")),
    Setting("Africa/Casablanca", "monday", _at("2026-03-22T02:00")),
    # Clocks go from 00:00 to 01:00: the week's first moment is not on the clock.
    Setting("Asia/Beirut", "sunday", _at("2026-03-28T22:00")),
    # Clocks go from 01:00 to 00:00: the week's first moment comes twice.
    Setting("America/Havana", "sunday", _at("2026-11-01T05:00")),
    Setting("Europe/Berlin", "wednesday", _at("2026-10-25T01:00")),
    Setting("UTC", "saturday", _at("2026-12-31T23:00")),
)
