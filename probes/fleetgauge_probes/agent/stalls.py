"""When this process did not run: it was stopped, suspended, starved of processor or in a long collection.

Motivation: what a probe met then tells of its agent, not of its broker.

Approach: a thread says every EVERY_S that it runs; a pause between two such words that is longer than it
should be is a stall.
"""

from bisect import bisect_right
from itertools import takewhile

EVERY_S = 0.02
#: Longer than any probe and its minute last.
_REMEMBERED_NS = 300_000_000_000


class Stalls:
    """For one thread that tells and any number that ask. All times are uptimes in ns."""

    def __init__(self, least_ns: int, now_ns: int) -> None:
        """Pauses shorter than ``least_ns`` are no stalls."""
        self.least_ns = least_ns
        self.total_ns = 0
        self._awake_ns = now_ns
        # Start and end of each, in their order. Replaced, never changed: others read it meanwhile.
        self._past: tuple[tuple[int, int], ...] = ()

    def awake(self, now_ns: int) -> None:
        """The process runs."""
        if now_ns - self._awake_ns >= self.least_ns:
            kept = (stall for stall in self._past if now_ns - stall[1] < _REMEMBERED_NS)
            self._past = (*kept, (self._awake_ns, now_ns))
            self.total_ns += now_ns - self._awake_ns
        self._awake_ns = now_ns

    def within_ns(self, start_ns: int, end_ns: int) -> int:
        """How much of that time it did not run, the stall that it is just coming out of included."""
        past = self._past
        first = bisect_right(past, start_ns, key=_end_ns)
        met = takewhile(lambda stall: stall[0] < end_ns, past[first:])
        stalled_ns = sum(_overlap_ns(stall, start_ns, end_ns) for stall in met)
        awake_ns = self._awake_ns
        if end_ns - awake_ns >= self.least_ns:
            stalled_ns += _overlap_ns((awake_ns, end_ns), start_ns, end_ns)
        return stalled_ns


def _end_ns(stall: tuple[int, int]) -> int:
    return stall[1]


def _overlap_ns(stall: tuple[int, int], start_ns: int, end_ns: int) -> int:
    return max(0, min(stall[1], end_ns) - max(stall[0], start_ns))
