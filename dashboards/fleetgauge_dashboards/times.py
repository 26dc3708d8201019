"""Moments as a reader's clock shows them."""

from dataclasses import dataclass
from datetime import datetime
from functools import cache
from zoneinfo import ZoneInfo, available_timezones


@cache
def _zones() -> frozenset[str]:
    return frozenset(available_timezones())


def is_zone(name: str) -> bool:
    """Whether it is a zone's name in the IANA database. Only a known one may become a file's."""
    return name in _zones()


@dataclass(frozen=True, slots=True)
class Times:
    """A zone's local times; an hour that comes twice, as clocks go back, says which of the two it is."""

    zone: str

    def instant(self, at: datetime) -> str:
        """2026-03-02 10:00:00 UTC"""
        return f"{self.local(at):%Y-%m-%d %H:%M:%S %Z}"

    def minute(self, at: datetime) -> str:
        """2026-03-02 10:00"""
        return f"{self.local(at):%Y-%m-%d} {self.clock(at)}"

    def named_minute(self, at: datetime) -> str:
        """Mon 02 Mar 2026 10:00 UTC"""
        return f"{self.local(at):%a %d %b %Y %H:%M %Z}"

    def clock(self, at: datetime) -> str:
        """10:00"""
        local = self.local(at)
        return f"{local:%H:%M %Z}" if _comes_twice(local) else f"{local:%H:%M}"

    def local(self, at: datetime) -> datetime:
        return at.astimezone(ZoneInfo(self.zone))


def _comes_twice(local: datetime) -> bool:
    """Of a time that is some moment's: one that clocks skip is none's."""
    return local.replace(fold=0).utcoffset() != local.replace(fold=1).utcoffset()
