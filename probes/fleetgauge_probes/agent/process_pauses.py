"""When this process did not run: stopped, suspended, starved of CPU, or in a long garbage collection.

Motivation: during a pause, probe outcomes measure the agent instead of the broker.

Approach: a thread records a heartbeat every HEARTBEAT_S; a gap between two heartbeats that reaches a
configured minimum is a pause.
"""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass

HEARTBEAT_S = 0.02
#: Longer than the lifetime of any probe and of its minute.
_RETENTION_NS = 300_000_000_000


@dataclass(frozen=True, slots=True)
class _PauseHistory:
    """Pauses in chronological order: their starts, their ends, and the total of all pauses before each."""

    starts: tuple[int, ...] = ()
    ends: tuple[int, ...] = ()
    totals_before: tuple[int, ...] = ()

    def append(self, start_ns: int, end_ns: int) -> "_PauseHistory":
        """Return a history with another pause and without those that ended too long before it."""
        first = bisect_right(self.ends, end_ns - _RETENTION_NS)
        total = self.totals_before[-1] + self.ends[-1] - self.starts[-1] if self.ends else 0
        return _PauseHistory(
            (*self.starts[first:], start_ns),
            (*self.ends[first:], end_ns),
            (*self.totals_before[first:], total),
        )

    def measure_paused_ns(self, start_ns: int, end_ns: int) -> int:
        """Return how much of an interval was paused, in logarithmic time.

        A process that pauses often also asks often, so the pauses are not iterated.
        """
        first, last = bisect_right(self.ends, start_ns), bisect_left(self.starts, end_ns) - 1
        if first > last:
            return 0
        last_pause_ns = self.ends[last] - self.starts[last]
        overlapping_ns = self.totals_before[last] + last_pause_ns - self.totals_before[first]
        return overlapping_ns - max(0, start_ns - self.starts[first]) - max(0, self.ends[last] - end_ns)


class ProcessPauses:
    """Detects pauses of this process. One thread records heartbeats; any thread may measure.

    All times are uptimes in nanoseconds.
    """

    def __init__(self, min_pause_ns: int, now_ns: int) -> None:
        """Start at ``now_ns``; gaps shorter than ``min_pause_ns`` are not pauses."""
        self.min_pause_ns = min_pause_ns
        self.total_paused_ns = 0
        self._heartbeat_ns = now_ns
        # Replaced, never modified, because other threads read it without a lock.
        self._history = _PauseHistory()

    def record_heartbeat(self, now_ns: int) -> None:
        """Record that the process runs at ``now_ns``."""
        if now_ns - self._heartbeat_ns >= self.min_pause_ns:
            self._history = self._history.append(self._heartbeat_ns, now_ns)
            self.total_paused_ns += now_ns - self._heartbeat_ns
        self._heartbeat_ns = now_ns

    def measure_paused_ns(self, start_ns: int, end_ns: int) -> int:
        """Return how much of an interval was paused, including a pause that has no heartbeat after it yet."""
        history, heartbeat_ns = self._history, self._heartbeat_ns
        paused_ns = history.measure_paused_ns(start_ns, end_ns)
        if end_ns - heartbeat_ns >= self.min_pause_ns:
            paused_ns += max(0, end_ns - max(start_ns, heartbeat_ns))
        return paused_ns
