"""What the watch's /metrics tells. Names and labels are a promise: docs/operations.md lists them."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Gauge

from fleetgauge_core.contract import ProbePulse
from fleetgauge_core.detection import (
    Finding,
    FindingSubject,
    HealthCondition,
    HealthState,
)
from fleetgauge_operations.notify.outbox import Settlement


class WatchMetrics:
    """Takes what the watch hears and finds, in its order, and keeps the registry up to it."""

    def __init__(self, registry: CollectorRegistry) -> None:
        broker = ("cluster", "broker")
        down = "1 while the broker is named as down, else 0."
        slow = "1 while the broker is named as slow, else 0."
        self._named = {
            HealthCondition.BROKER_DOWN: Gauge("fleetgauge_broker_named", down, broker, registry=registry),
            HealthCondition.DEGRADED: Gauge("fleetgauge_broker_degraded", slow, broker, registry=registry),
        }
        self._open = Gauge(
            "fleetgauge_findings_open",
            "Findings that are open, of brokers and of all else, by what they are called now.",
            ("cluster", "kind"),
            registry=registry,
        )
        self._pulse = Gauge(
            "fleetgauge_watch_pulse_timestamp_seconds",
            "When the last pulse that was heard was made.",
            ("cluster", "vantage"),
            registry=registry,
        )
        self._ignored = Counter(
            "fleetgauge_watch_pulses_ignored_total",
            "Pulses that were too old, or ahead of this clock, or of a cluster that is not watched now.",
            ("cluster", "vantage"),
            registry=registry,
        )
        self._notifications = Counter(
            "fleetgauge_notifications_total",
            "Findings that a notifier was to be told.",
            ("notifier", "outcome"),
            registry=registry,
        )
        self._waiting = Gauge(
            "fleetgauge_notifications_waiting",
            "Findings that a notifier has not taken yet.",
            ("notifier",),
            registry=registry,
        )
        self._rejected = Gauge(
            "fleetgauge_notifications_rejected",
            "Findings that a notifier rejected for good; the latest 100 are kept.",
            ("notifier",),
            registry=registry,
        )
        self._active = Gauge(
            "fleetgauge_watch_active",
            "1 for the one watch that names and tells, 0 for those that would take over.",
            registry=registry,
        )

    def heard(self, pulse: ProbePulse) -> None:
        """A pulse came, be it fresh or not."""
        self._pulse.labels(pulse.cluster_id, pulse.vantage).set(pulse.emitted_at.timestamp())
        # They are made with 0, and left alone where they are there.
        for kind in filter(lambda phase: phase.is_alert, HealthState):
            self._open.labels(pulse.cluster_id, kind)
        for broker in pulse.brokers:
            for named in self._named.values():
                named.labels(pulse.cluster_id, broker.broker_id)

    def ignored(self, pulse: ProbePulse) -> None:
        """One came that says nothing of now."""
        self._ignored.labels(pulse.cluster_id, pulse.vantage).inc()

    def found(self, finding: Finding) -> None:
        """Something changed."""
        self._changed(finding.subject, finding.from_state, finding.to_state)

    def adopted(self, subject: FindingSubject, phase: HealthState) -> None:
        """An earlier watch left it open."""
        self._changed(subject, HealthState.HEALTHY, phase)

    def _changed(self, subject: FindingSubject, before: HealthState, after: HealthState) -> None:
        if before.is_alert:
            self._open.labels(subject.cluster_id, before).dec()
        if after.is_alert:
            self._open.labels(subject.cluster_id, after).inc()
        if subject.condition in self._named:
            self._named[subject.condition].labels(subject.cluster_id, subject.broker_id).set(after.is_alert)

    @contextmanager
    def watching(self, named: Iterable[tuple[FindingSubject, HealthState]]) -> Iterator[None]:
        """While this watch has the seat; ``named`` is what earlier ones left open."""
        self._active.set(1)
        for subject, phase in named:
            self.adopted(subject, phase)
        try:
            yield
        finally:
            self._active.set(0)
            # Another says what is true from now on.
            for gauge in (*self._named.values(), self._open, self._pulse, self._waiting, self._rejected):
                gauge.clear()

    def notifier(self, host: str) -> "NotifierMetrics":
        """Return the metrics of one notifier; its series exist from the start."""
        return NotifierMetrics(
            self._waiting.labels(host),
            self._rejected.labels(host),
            {outcome: self._notifications.labels(host, outcome) for outcome in ("sent", "failed")},
        )


@dataclass(frozen=True, slots=True)
class NotifierMetrics:
    """What became of one notifier's notifications."""

    waiting: Gauge
    rejected: Gauge
    counts: Mapping[str, Counter]

    def waits(self, more: int) -> None:
        """Add to the number of findings that wait for the receiver, or subtract."""
        self.waiting.inc(more)

    def settled(self, settlement: Settlement) -> None:
        """Count a finding that was delivered, rejected or expired."""
        self.counts["sent" if settlement is Settlement.DELIVERED else "failed"].inc()
