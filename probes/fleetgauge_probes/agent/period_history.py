"""Periods of uptime, and how much of an interval they cover."""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass

#: Longer than the lifetime of any probe and of its minute.
_RETENTION_NS = 300_000_000_000
#: The oldest of more periods are forgotten, so that what they excused counts again.
_MAX_PERIODS = 1_000


@dataclass(frozen=True, slots=True)
class PeriodHistory:
    """Periods in chronological order: their starts, their ends, and the total of all periods before each."""

    starts: tuple[int, ...] = ()
    ends: tuple[int, ...] = ()
    totals_before: tuple[int, ...] = ()

    def append(self, start_ns: int, end_ns: int) -> "PeriodHistory":
        """Return a history with another period and without those that ended too long before it.

        A period that starts before the end of the last one continues it.
        """
        count = len(self.starts)
        if count and start_ns <= self.ends[-1]:
            count -= 1
            start_ns, end_ns = self.starts[-1], max(end_ns, self.ends[-1])
        last = count - 1
        total = self.totals_before[last] + self.ends[last] - self.starts[last] if count else 0
        first = max(bisect_right(self.ends, end_ns - _RETENTION_NS, 0, count), count + 1 - _MAX_PERIODS)
        return PeriodHistory(
            (*self.starts[first:count], start_ns),
            (*self.ends[first:count], end_ns),
            (*self.totals_before[first:count], total),
        )

    def cut(self, at_ns: int) -> "PeriodHistory":
        """Return a history in which the last period ends at ``at_ns``, unless it ended before."""
        if not self.ends or self.ends[-1] <= at_ns:
            return self
        end_ns = max(at_ns, self.starts[-1])
        return PeriodHistory(self.starts, (*self.ends[:-1], end_ns), self.totals_before)

    def measure_ns(self, start_ns: int, end_ns: int) -> int:
        """Return how much of an interval the periods cover, in logarithmic time.

        A process that pauses often also asks often, so the periods are not iterated.
        """
        first, last = bisect_right(self.ends, start_ns), bisect_left(self.starts, end_ns) - 1
        if first > last:
            return 0
        last_period_ns = self.ends[last] - self.starts[last]
        overlapping_ns = self.totals_before[last] + last_period_ns - self.totals_before[first]
        return overlapping_ns - max(0, start_ns - self.starts[first]) - max(0, self.ends[last] - end_ns)
