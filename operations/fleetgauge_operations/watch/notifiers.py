"""The sinks to which findings go: notifiers receive findings that open, change or clear, not suspicions."""

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
    """A notifier of the watch, from ``start`` to ``stop``. Its methods must not block the watch for long."""

    def start(self) -> None:
        """Begin to send."""

    def stop(self) -> None:
        """Stop sending."""

    def notify(self, finding: Finding) -> None:
        """Send the finding."""

    def postpone(self, finding: Finding) -> None:
        """Do not send the finding now, or not at all if it clears before the maintenance ends."""

    def resume(self, findings: Iterable[tuple[FindingSubject, HealthState]]) -> None:
        """Continue with open findings that an earlier watch has sent."""


def open_sink(
    notifier: Notifier, finding_format: FindingFormat, context: NotifierContext, policy: RetryPolicy
) -> FindingSink:
    """Return the sink of a notifier; secrets are read for each POST."""
    if notifier.kind == "heartbeat":
        return Heartbeat(notifier, context)
    return OutboxSink(Receiver(notifier), finding_format, context, policy)


class OutboxSink:
    """Sends findings through an outbox, in a separate thread."""

    def __init__(
        self,
        receiver: Receiver,
        finding_format: FindingFormat,
        context: NotifierContext,
        policy: RetryPolicy,
    ) -> None:
        self._format = finding_format
        self._context = context
        self._outbox = Outbox(receiver, context.clock, time.monotonic, policy)
        self._thread = OutboxThread(self._outbox, context.confirm_leadership, receiver.label)

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def stop(self) -> None:
        """Make a last attempt, within a bound; the next watch sends what the receiver does not accept."""
        self._thread.stop()

    def notify(self, finding: Finding) -> None:
        """Queue the notification of a finding."""
        self._context.add_waiting(1)
        notification = self._format.build_notification(finding)
        # A watch that takes over, or a notifier that returns, does not repeat what is over for long.
        self._outbox.put(notification, partial(self._settle, finding), finding.event.at)

    def postpone(self, finding: Finding) -> None:
        """Record the finding as postponed once all findings that were queued before it are settled."""
        self._outbox.skip(lambda _: self._context.postpone(finding))

    def resume(self, findings: Iterable[tuple[FindingSubject, HealthState]]) -> None:
        """Resend open alerts to a receiver that forgets an alert which is not sent again."""
        now = self._context.clock()
        self._outbox.resume(
            [self._format.build_open_alert(subject, state, now) for subject, state in findings]
        )
        self._outbox.wake()

    def _settle(self, finding: Finding, settlement: Settlement) -> None:
        self._context.add_waiting(-1)
        self._context.settle(finding, settlement)
