"""The sinks of the fleet file's notifiers, which follow changes of the file while this watch leads.

A notifier that stays as it is keeps its sink and its queue. A sink that is closed sends and records nothing
from that moment on; the rest of its queue is restored for the sink that replaces it, if there is one.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from threading import Thread

from fleetgauge_core.detection import Finding, FindingSubject, HealthState
from fleetgauge_core.fleet import Fleet, Notifier
from fleetgauge_core.kafka import Leadership, LeadershipStatus
from fleetgauge_core.runtime.deadline import run_until_deadline
from fleetgauge_operations.notify.fleet_faults import name_notifier
from fleetgauge_operations.notify.outbox import RetryPolicy, Settlement
from fleetgauge_operations.notify.outbox_thread import LAST_ATTEMPT_S
from fleetgauge_operations.notify.receivers import receiver_key
from fleetgauge_operations.watch.delivery_cursor import DeliveryCursor, NotifierBacklog, start_delivery
from fleetgauge_operations.watch.detection_loop import ReceivedPulses
from fleetgauge_operations.watch.message_format import FindingFormat
from fleetgauge_operations.watch.metrics import NotifierMetrics, WatchMetrics
from fleetgauge_operations.watch.notifier_context import LeadershipGate, NotifierContext
from fleetgauge_operations.watch.notifiers import FindingSink, open_sink
from fleetgauge_operations.watch.state_store import DeliveryRecord, StateStore
from fleetgauge_operations.watch.suppression import SuppressedFindings

OpenAlert = tuple[FindingSubject, HealthState]

#: A little longer than the last attempts of all sinks at the same time.
_STOP_TIMEOUT_S = LAST_ATTEMPT_S + 1


@dataclass(slots=True)
class _OpenSink:
    """A sink with what it was opened for; ``is_open`` is read by its own thread."""

    notifier: Notifier
    page_url: str | None
    metrics: NotifierMetrics
    is_open: bool = True
    sink: FindingSink = field(init=False)


@dataclass(slots=True)
class FindingSinks:
    """One sink for each notifier of the fleet file; ``describe_cluster`` returns lines about a cluster."""

    store: StateStore
    deliveries: dict[str, DeliveryRecord]
    """The latest record of each notifier, by its key."""
    leadership: Leadership
    received: ReceivedPulses
    describe_cluster: Callable[[str], Sequence[str]]
    clock: Callable[[], datetime]
    metrics: WatchMetrics
    _open: list[_OpenSink] = field(default_factory=list, init=False)

    def __iter__(self) -> Iterator[FindingSink]:
        """Iterate over the open sinks."""
        return (each.sink for each in self._open)

    def start(self) -> None:
        """Do nothing; ``adopt_fleet`` opens the sinks."""

    def stop(self) -> None:
        """Let all sinks make a last attempt at the same time, within a bound."""
        run_until_deadline([each.sink.stop for each in self._open], _STOP_TIMEOUT_S)

    def restore_backlog(self, notifier: Notifier, open_alerts: Iterable[OpenAlert]) -> NotifierBacklog:
        """Return a notifier's cursor and undelivered findings; store the first record of a new notifier."""
        key, findings = receiver_key(notifier), tuple(self.store.findings)
        if key not in self.deliveries:
            self._save(start_delivery(key, findings, {subject for subject, _ in open_alerts}))
        record = self.deliveries[key]
        undelivered = record.select_undelivered(findings)
        return NotifierBacklog(DeliveryCursor(record, undelivered, self._save), undelivered)

    def adopt_fleet(
        self, fleet: Fleet, open_alerts: Sequence[OpenAlert], suppressed: SuppressedFindings
    ) -> None:
        """Close the sinks of notifiers that are gone or changed, and open those of new ones."""
        remaining, kept, new = list(self._open), list[_OpenSink](), list[Notifier]()
        for notifier in fleet.notifiers:
            same = (
                each for each in remaining if (each.notifier, each.page_url) == (notifier, fleet.page_url)
            )
            if sink := next(same, None):
                remaining.remove(sink)
                kept.append(sink)
            else:
                new.append(notifier)
        for each in remaining:
            self._close(each)
        # A notifier that leaves the file and returns is sent what is open then, as a new one is.
        for key in self.deliveries.keys() - {receiver_key(notifier) for notifier in fleet.notifiers}:
            del self.deliveries[key]
        self._open = kept
        for notifier in new:
            self._open.append(self._create(notifier, fleet.page_url, open_alerts, suppressed))
        for name in {each.metrics.name for each in remaining} - {each.metrics.name for each in self._open}:
            self.metrics.remove_notifier(name)

    def _close(self, closed: _OpenSink) -> None:
        """Stop a sink without waiting: its receiver may hang."""
        closed.is_open = False
        closed.metrics.close()
        Thread(target=closed.sink.stop, name=f"{closed.notifier.kind}-stopping", daemon=True).start()

    def _create(
        self,
        notifier: Notifier,
        page_url: str | None,
        open_alerts: Sequence[OpenAlert],
        suppressed: SuppressedFindings,
    ) -> _OpenSink:
        """Return a started sink with the findings that its notifier has not been sent."""
        cursor, undelivered = self.restore_backlog(notifier, open_alerts)
        metrics = self.metrics.create_notifier_metrics(name_notifier(notifier))
        metrics.rejected.set(len(cursor.rejected))
        created = _OpenSink(notifier, page_url, metrics)
        finding_format = FindingFormat(page_url, self.describe_cluster)
        created.sink = open_sink(notifier, finding_format, self._context(created, cursor), RetryPolicy())
        created.sink.start()
        for finding in undelivered:
            # A finding that clears an alert is sent: its alert was sent before, or precedes it here.
            is_suppressed = finding.is_alert and finding.subject in suppressed
            (created.sink.postpone if is_suppressed else created.sink.notify)(finding)
        created.sink.resume(alert for alert in open_alerts if alert[0] not in suppressed)
        return created

    def _context(self, created: _OpenSink, cursor: DeliveryCursor) -> NotifierContext:
        gate = LeadershipGate(partial(self._may_send, created))
        metrics = created.metrics

        def settle(finding: Finding, settlement: Settlement) -> None:
            metrics.record_settlement(settlement)
            if created.is_open and gate.confirm_unless_recent():
                cursor.settle(finding, settlement)
                metrics.rejected.set(len(cursor.rejected))

        def postpone(finding: Finding) -> None:
            if created.is_open and gate.confirm_unless_recent():
                cursor.postpone(finding)

        return NotifierContext(
            clock=self.clock,
            confirm_leadership=gate.confirm,
            add_waiting=metrics.add_waiting,
            last_pulse_at=lambda: self.received.last_emitted_at,
            settle=settle,
            postpone=postpone,
        )

    def _may_send(self, created: _OpenSink) -> bool:
        return created.is_open and self.leadership.confirm() is not LeadershipStatus.LOST

    def _save(self, record: DeliveryRecord) -> None:
        self.deliveries[record.notifier] = record
        self.store.save_delivery(record)
