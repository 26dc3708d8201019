"""The metrics of the watch. Names and labels are a promise; docs/operations/metrics.md lists them."""

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
    """Metrics of pulses and findings; the methods are called in the order in which those occur."""

    def __init__(self, registry: CollectorRegistry) -> None:
        broker = ("cluster", "broker")
        down = "1 while the broker is reported as down, else 0."
        slow = "1 while the broker is reported as DEGRADED, else 0."
        self._broker_alerts = {
            HealthCondition.BROKER_DOWN: Gauge("fleetgauge_broker_named", down, broker, registry=registry),
            HealthCondition.DEGRADED: Gauge("fleetgauge_broker_degraded", slow, broker, registry=registry),
        }
        self._open_findings = Gauge(
            "fleetgauge_findings_open",
            "Open findings by their present kind.",
            ("cluster", "kind"),
            registry=registry,
        )
        self._pulse_timestamp = Gauge(
            "fleetgauge_watch_pulse_timestamp_seconds",
            "When the latest received pulse was emitted.",
            ("cluster", "vantage"),
            registry=registry,
        )
        self._ignored_pulses = Counter(
            "fleetgauge_watch_pulses_ignored_total",
            "Pulses that were too old, ahead of this machine's clock, or of a cluster out of scope.",
            ("cluster", "vantage"),
            registry=registry,
        )
        self._notifications = Counter(
            "fleetgauge_notifications_total",
            "Notifications of findings by their outcome.",
            ("notifier", "outcome"),
            registry=registry,
        )
        self._waiting = Gauge(
            "fleetgauge_notifications_waiting",
            "Findings that the notifier's receiver has not accepted yet.",
            ("notifier",),
            registry=registry,
        )
        self._rejected = Gauge(
            "fleetgauge_notifications_rejected",
            "Findings that the notifier's receiver rejected for good; the latest 100 are kept.",
            ("notifier",),
            registry=registry,
        )
        self._active = Gauge(
            "fleetgauge_watch_active",
            "1 for the watch that is the leader, 0 for those that would take over.",
            registry=registry,
        )

    def record_pulse(self, pulse: ProbePulse) -> None:
        """Record that a pulse arrived, whether it is evaluated or ignored."""
        self._pulse_timestamp.labels(pulse.cluster_id, pulse.vantage).set(pulse.emitted_at.timestamp())
        # Create the series that do not exist yet, with the value 0.
        for kind in filter(lambda state: state.is_alert, HealthState):
            self._open_findings.labels(pulse.cluster_id, kind)
        for broker in pulse.brokers:
            for gauge in self._broker_alerts.values():
                gauge.labels(pulse.cluster_id, broker.broker_id)

    def record_ignored_pulse(self, pulse: ProbePulse) -> None:
        """Count a pulse that does not describe the present."""
        self._ignored_pulses.labels(pulse.cluster_id, pulse.vantage).inc()

    def record_finding(self, finding: Finding) -> None:
        """Record a change of a subject's state."""
        self._record_change(finding.subject, finding.from_state, finding.to_state)

    def record_adopted_finding(self, subject: FindingSubject, state: HealthState) -> None:
        """Record an open finding of an earlier watch."""
        self._record_change(subject, HealthState.HEALTHY, state)

    def _record_change(self, subject: FindingSubject, before: HealthState, after: HealthState) -> None:
        if before.is_alert:
            self._open_findings.labels(subject.cluster_id, before).dec()
        if after.is_alert:
            self._open_findings.labels(subject.cluster_id, after).inc()
        if subject.condition in self._broker_alerts:
            gauge = self._broker_alerts[subject.condition]
            gauge.labels(subject.cluster_id, subject.broker_id).set(after.is_alert)

    @contextmanager
    def activate(self, open_findings: Iterable[tuple[FindingSubject, HealthState]]) -> Iterator[None]:
        """Export this watch as the leader within the block, with the open findings of earlier watches."""
        self._active.set(1)
        for subject, state in open_findings:
            self.record_adopted_finding(subject, state)
        try:
            yield
        finally:
            self._active.set(0)
            # The next leader exports these from now on.
            for gauge in (
                *self._broker_alerts.values(),
                self._open_findings,
                self._pulse_timestamp,
                self._waiting,
                self._rejected,
            ):
                gauge.clear()

    def create_notifier_metrics(self, name: str) -> "NotifierMetrics":
        """Return the metrics of one notifier; its series exist from the start."""
        return NotifierMetrics(
            self._waiting.labels(name),
            self._rejected.labels(name),
            {outcome: self._notifications.labels(name, outcome) for outcome in ("sent", "failed")},
        )


@dataclass(frozen=True, slots=True)
class NotifierMetrics:
    """The metrics of one notifier's notifications."""

    waiting: Gauge
    rejected: Gauge
    counts: Mapping[str, Counter]

    def add_waiting(self, change: int) -> None:
        """Add to the number of findings that wait for the receiver; a negative number subtracts."""
        self.waiting.inc(change)

    def record_settlement(self, settlement: Settlement) -> None:
        """Count a finding that was delivered, rejected or expired."""
        self.counts["sent" if settlement is Settlement.DELIVERED else "failed"].inc()
