"""The fleet's weeks, from local midnight to local midnight: a clock change makes a week shorter or longer."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

#: A week closes so long after its end.
WEEK_CLOSING_DELAY = timedelta(hours=48)

_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


@dataclass(frozen=True, slots=True)
class WeekSpan:
    """One week: its first local day, and its bounds in UTC (start inclusive, end exclusive)."""

    week: date
    start: datetime
    end: datetime

    @property
    def minutes(self) -> int:
        """Length of the week: 10,080 minutes, unless a clock change lies in it."""
        return (self.end - self.start) // timedelta(minutes=1)

    @property
    def closes_at(self) -> datetime:
        """The instant from which the week is closed: later changes add a revision."""
        return self.end + WEEK_CLOSING_DELAY


@dataclass(frozen=True, slots=True)
class WeekCalendar:
    """The weeks of one IANA time zone that begin on one weekday."""

    zone: str
    start: str

    def week_of(self, local_day: date) -> WeekSpan:
        """Return the week that contains a local day."""
        first = local_day - timedelta(days=(local_day.weekday() - _WEEKDAYS.index(self.start)) % 7)
        return WeekSpan(first, self._midnight(first), self._midnight(first + timedelta(days=7)))

    def week_at(self, instant: datetime) -> WeekSpan:
        """Return the week that contains an instant."""
        return self.week_of(instant.astimezone(ZoneInfo(self.zone)).date())

    def weeks_between(self, first: datetime, last: datetime) -> tuple[WeekSpan, ...]:
        """Return every week from that of ``first`` to that of ``last``, both included."""
        spans = [self.week_at(first)]
        while spans[-1].end <= last:
            spans.append(self.week_of(spans[-1].week + timedelta(days=7)))
        return tuple(spans)

    def _midnight(self, day: date) -> datetime:
        return datetime.combine(day, time(), ZoneInfo(self.zone)).astimezone(UTC)
