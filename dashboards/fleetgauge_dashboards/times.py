"""Format UTC instants in a reader's time zone."""

from dataclasses import dataclass
from datetime import datetime
from functools import cache
from zoneinfo import ZoneInfo, available_timezones


@cache
def _time_zones() -> frozenset[str]:
    return frozenset(available_timezones())


def is_time_zone(name: str) -> bool:
    """Return whether ``name`` is in the IANA time zone database.

    Check this before ``ZoneInfo(name)``, which opens a file of that name.
    """
    return name in _time_zones()


@dataclass(frozen=True, slots=True)
class TimeFormat:
    """A format of instants in one time zone.

    An ambiguous local time, in the hour that repeats when clocks go back, carries its zone abbreviation.
    """

    zone: str

    def format_instant(self, at: datetime) -> str:
        """Return date, time in seconds and zone, as "2026-03-02 10:00:00 UTC"."""
        return f"{self.to_local(at):%Y-%m-%d %H:%M:%S %Z}"

    def format_minute(self, at: datetime) -> str:
        """Return date and time in minutes, as "2026-03-02 10:00"."""
        return f"{self.to_local(at):%Y-%m-%d} {self.format_clock(at)}"

    def format_long_minute(self, at: datetime) -> str:
        """Return weekday, date, time and zone, as "Mon 02 Mar 2026 10:00 UTC"."""
        return f"{self.to_local(at):%a %d %b %Y %H:%M %Z}"

    def format_clock(self, at: datetime) -> str:
        """Return the time of day, as "10:00"."""
        local = self.to_local(at)
        return f"{local:%H:%M %Z}" if _is_ambiguous(local) else f"{local:%H:%M}"

    def to_local(self, at: datetime) -> datetime:
        """Return the instant as a local time of the zone."""
        return at.astimezone(ZoneInfo(self.zone))


def _is_ambiguous(local: datetime) -> bool:
    """Return whether a local time occurs twice. It must exist: skipped local times are not recognised."""
    return local.replace(fold=0).utcoffset() != local.replace(fold=1).utcoffset()
