"""What a notifier is given by its watch."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from fleetgauge_core.detection import Finding
from fleetgauge_core.runtime.uptime import uptime_ns
from fleetgauge_operations.notify.outbox import Settlement

#: What was found out before a POST holds for what is noted after it, unless it took long: then somebody else
#: may have told more meanwhile. To ask takes seconds where nobody answers.
_HOLDS_NS = 5_000_000_000


class LeadershipGate:
    """One notifier's to tell, and to note what was told; ``ask`` may take seconds."""

    def __init__(self, ask: Callable[[], bool], clock_ns: Callable[[], int] = uptime_ns) -> None:
        self._ask = ask
        self._clock_ns = clock_ns
        self._asked_ns: int | None = None

    def to_tell(self) -> bool:
        began_ns = self._clock_ns()
        self._asked_ns = began_ns if self._ask() else None
        return self._asked_ns is not None

    def to_note(self) -> bool:
        known = self._asked_ns is not None and self._clock_ns() - self._asked_ns < _HOLDS_NS
        return known or self.to_tell()


@dataclass(frozen=True, slots=True)
class NotifierContext:
    """For one notifier."""

    clock: Callable[[], datetime]
    may_tell: Callable[[], bool]
    """Whether this watch is still the one that tells; may take seconds where that must be found out."""
    waits: Callable[[int], None]
    """So many more findings wait, or fewer."""
    heard: Callable[[], datetime | None]
    """When the last pulse of any cluster was made that this watch has heard."""
    settled: Callable[[Finding, Settlement], None]
    """A finding was delivered, rejected or expired: either way it need not be sent again."""
    put_off: Callable[[Finding], None]
    """A finding is not told now, nor are those after it held up by it."""
