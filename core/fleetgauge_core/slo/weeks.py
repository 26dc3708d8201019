"""The fleet's weeks: local midnight to local midnight, so a clock change makes one shorter or longer."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

CLOSES_AFTER = timedelta(hours=48)

_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


@dataclass(frozen=True, slots=True)
class WeekSpan:
    """One week: named by its first local day, bounded by UTC instants (start inclusive, end exclusive)."""

    week: date
    start: datetime
    end: datetime

    @property
    def minutes(self) -> int:
        return (self.end - self.start) // timedelta(minutes=1)

    @property
    def closes_at(self) -> datetime:
        return self.end + CLOSES_AFTER


@dataclass(frozen=True, slots=True)
class WeekCalendar:
    """Weeks of one IANA zone and start day."""

    zone: str
    start: str

    def of_day(self, local_day: date) -> WeekSpan:
        """The week that holds a local day."""
        first = local_day - timedelta(days=(local_day.weekday() - _WEEKDAYS.index(self.start)) % 7)
        return WeekSpan(first, self._midnight(first), self._midnight(first + timedelta(days=7)))

    def of(self, instant: datetime) -> WeekSpan:
        """The week that holds an instant."""
        return self.of_day(instant.astimezone(ZoneInfo(self.zone)).date())

    def between(self, first: datetime, last: datetime) -> tuple[WeekSpan, ...]:
        """Every week from the one that holds ``first`` to the one that holds ``last``."""
        spans = [self.of(first)]
        while spans[-1].end <= last:
            spans.append(self.of_day(spans[-1].week + timedelta(days=7)))
        return tuple(spans)

    def _midnight(self, day: date) -> datetime:
        return datetime.combine(day, time(), ZoneInfo(self.zone)).astimezone(UTC)
