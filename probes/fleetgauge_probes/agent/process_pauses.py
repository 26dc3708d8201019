"""When this process did not run: stopped, suspended, starved of CPU, or in a long garbage collection.

Motivation: during a pause, probe outcomes measure the agent instead of the broker.

Approach: a thread records a heartbeat every HEARTBEAT_S; a gap between two heartbeats that reaches a
configured minimum is a pause.
"""

from fleetgauge_probes.agent.period_history import PeriodHistory

HEARTBEAT_S = 0.02


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
        self._history = PeriodHistory()

    def record_heartbeat(self, now_ns: int) -> None:
        """Record that the process runs at ``now_ns``."""
        if now_ns - self._heartbeat_ns >= self.min_pause_ns:
            self._history = self._history.append(self._heartbeat_ns, now_ns)
            self.total_paused_ns += now_ns - self._heartbeat_ns
        self._heartbeat_ns = now_ns

    def measure_paused_ns(self, start_ns: int, end_ns: int) -> int:
        """Return how much of an interval was paused, including a pause that has no heartbeat after it yet."""
        history, heartbeat_ns = self._history, self._heartbeat_ns
        paused_ns = history.measure_ns(start_ns, end_ns)
        if end_ns - heartbeat_ns >= self.min_pause_ns:
            paused_ns += max(0, end_ns - max(start_ns, heartbeat_ns))
        return paused_ns
