"""The dependencies that the watch passes to a notifier, and its leadership check before it sends."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from fleetgauge_core.detection import Finding
from fleetgauge_core.runtime.uptime import uptime_ns
from fleetgauge_operations.notify.outbox import Settlement

#: How long a confirmation before a POST also allows to record its result. After a longer time another watch
#: may have become the leader and sent more. A new confirmation takes seconds if the coordinator is down.
_CONFIRMATION_VALID_NS = 5_000_000_000


class LeadershipGate:
    """Checks for one notifier whether this process is the leader; ``is_leader`` may take seconds."""

    def __init__(self, is_leader: Callable[[], bool], clock_ns: Callable[[], int] = uptime_ns) -> None:
        self._is_leader = is_leader
        self._clock_ns = clock_ns
        self._confirmed_ns: int | None = None

    def confirm(self) -> bool:
        """Return whether this process is the leader, as it must be to send."""
        started_ns = self._clock_ns()
        self._confirmed_ns = started_ns if self._is_leader() else None
        return self._confirmed_ns is not None

    def confirm_unless_recent(self) -> bool:
        """Return whether this process may record a result; a confirmation is valid for 5 s."""
        confirmed_ns = self._confirmed_ns
        is_recent = confirmed_ns is not None and self._clock_ns() - confirmed_ns < _CONFIRMATION_VALID_NS
        return is_recent or self.confirm()


@dataclass(frozen=True, slots=True)
class NotifierContext:
    """The calls by which one notifier reads the state of the watch and reports its progress."""

    clock: Callable[[], datetime]
    confirm_leadership: Callable[[], bool]
    """Returns whether this process is the leader, so that it may send; may take seconds."""
    add_waiting: Callable[[int], None]
    """Adds to the number of findings that wait for the receiver; a negative number subtracts."""
    last_pulse_at: Callable[[], datetime | None]
    """Returns when the latest received pulse of any cluster was emitted; None before the first."""
    settle: Callable[[Finding, Settlement], None]
    """Records that a finding was delivered, rejected or expired: it is not sent again."""
    postpone: Callable[[Finding], None]
    """Records that a finding is not sent now, so that later findings do not wait for it."""
