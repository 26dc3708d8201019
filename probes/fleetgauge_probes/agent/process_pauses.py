"""When this process did not run: it was stopped, suspended, starved of processor or in a long collection.

Motivation: what a probe met then tells of its agent, not of its broker.

Approach: a thread says every EVERY_S that it runs; a pause between two such words that is longer than it
should be is a stall.
"""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass

EVERY_S = 0.02
#: Longer than any probe and its minute last.
_REMEMBERED_NS = 300_000_000_000


@dataclass(frozen=True, slots=True)
class _Past:
    """Stalls in their order: when each began, when it ended, and how long all before it were together."""

    starts: tuple[int, ...] = ()
    ends: tuple[int, ...] = ()
    before: tuple[int, ...] = ()

    def with_one_more(self, start_ns: int, end_ns: int) -> "_Past":
        """Without those that are too long ago."""
        first = bisect_right(self.ends, end_ns - _REMEMBERED_NS)
        total = self.before[-1] + self.ends[-1] - self.starts[-1] if self.ends else 0
        return _Past(
            (*self.starts[first:], start_ns), (*self.ends[first:], end_ns), (*self.before[first:], total)
        )

    def within_ns(self, start_ns: int, end_ns: int) -> int:
        """How much of that time. A process that stalls all the time asks this all the time: no loop."""
        first, last = bisect_right(self.ends, start_ns), bisect_left(self.starts, end_ns) - 1
        if first > last:
            return 0
        together = self.before[last] + self.ends[last] - self.starts[last] - self.before[first]
        return together - max(0, start_ns - self.starts[first]) - max(0, self.ends[last] - end_ns)


class Stalls:
    """For one thread that tells and any number that ask. All times are uptimes in ns."""

    def __init__(self, least_ns: int, now_ns: int) -> None:
        """Pauses shorter than ``least_ns`` are no stalls."""
        self.least_ns = least_ns
        self.total_ns = 0
        self._awake_ns = now_ns
        # Replaced, never changed: others read it meanwhile.
        self._past = _Past()

    def awake(self, now_ns: int) -> None:
        """The process runs."""
        if now_ns - self._awake_ns >= self.least_ns:
            self._past = self._past.with_one_more(self._awake_ns, now_ns)
            self.total_ns += now_ns - self._awake_ns
        self._awake_ns = now_ns

    def within_ns(self, start_ns: int, end_ns: int) -> int:
        """How much of that time it did not run, the stall that it is just coming out of included."""
        past, awake_ns = self._past, self._awake_ns
        stalled_ns = past.within_ns(start_ns, end_ns)
        if end_ns - awake_ns >= self.least_ns:
            stalled_ns += max(0, end_ns - max(start_ns, awake_ns))
        return stalled_ns
