"""Where findings go: every notifier hears of findings that open or are resolved, not of mere suspicions."""

import time
from collections.abc import Iterable
from functools import partial
from typing import Protocol

from fleetgauge_core.detection import Finding, FindingSubject, HealthState
from fleetgauge_core.fleet import Notifier
from fleetgauge_operations.notify.outbox import Outbox, RetryPolicy, Settlement
from fleetgauge_operations.notify.outbox_thread import OutboxThread
from fleetgauge_operations.notify.receivers import Receiver
from fleetgauge_operations.watch.heartbeat import Heartbeat
from fleetgauge_operations.watch.message_format import FindingFormat
from fleetgauge_operations.watch.notifier_context import NotifierContext


class FindingSink(Protocol):
    """A notifier of the watch, from ``start`` to ``stop``. Must not block the watch for long."""

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def notify(self, finding: Finding) -> None: ...

    def postpone(self, finding: Finding) -> None:
        """Do not notify of this finding, at least not now."""

    def resume(self, findings: Iterable[tuple[FindingSubject, HealthState]]) -> None:
        """Go on with what an earlier watch opened."""


def open_sink(
    notifier: Notifier, finding_format: FindingFormat, telling: NotifierContext, policy: RetryPolicy
) -> FindingSink:
    """Return the sink of a notifier. Raises SecretError if its address is a secret that cannot be read."""
    if notifier.kind == "heartbeat":
        return Heartbeat(notifier.read_url, telling)
    return OutboxSink(Receiver(notifier), finding_format, telling, policy)


class OutboxSink:
    """Sends findings by an outbox of their receiver, from a thread of its own."""

    def __init__(
        self, receiver: Receiver, finding_format: FindingFormat, telling: NotifierContext, policy: RetryPolicy
    ) -> None:
        self._format = finding_format
        self._telling = telling
        self._outbox = Outbox(receiver, telling.clock, time.monotonic, policy)
        self._thread = OutboxThread(self._outbox, telling.may_tell, receiver.kind)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Try once more, within a bound; what the receiver does not accept is left to the next watch."""
        self._thread.stop()

    def notify(self, finding: Finding) -> None:
        self._telling.waits(1)
        self._outbox.put(self._format.notification(finding), partial(self._settle, finding))

    def postpone(self, finding: Finding) -> None:
        self._outbox.skip(lambda _: self._telling.put_off(finding))

    def resume(self, findings: Iterable[tuple[FindingSubject, HealthState]]) -> None:
        now = self._telling.clock()
        self._outbox.resume([self._format.standing(subject, phase, now) for subject, phase in findings])
        self._outbox.wake()

    def _settle(self, finding: Finding, settlement: Settlement) -> None:
        self._telling.waits(-1)
        self._telling.settled(finding, settlement)
