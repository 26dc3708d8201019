"""The metrics of the watch. Names and labels are a promise; docs/operations/metrics.md lists them."""

from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import Lock

from prometheus_client import CollectorRegistry, Counter, Gauge

from fleetgauge_core.contract import ProbePulse
from fleetgauge_core.detection import (
    Finding,
    FindingSubject,
    HealthCondition,
    HealthState,
)
from fleetgauge_operations.notify.outbox import Settlement
from fleetgauge_operations.watch.vantage_times import ClusterVantage

#: How long the count of ignored pulses of a cluster that is not watched is exported after the last one.
_IGNORED_SHOWN = timedelta(minutes=1)


class WatchMetrics:
    """Metrics of pulses and findings; the methods are called in the order in which those occur."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._cluster_ids: set[str] = set()
        self._ignored_at: dict[str, datetime] = {}
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
        """Record that a pulse of a watched cluster arrived, whether it is evaluated or ignored."""
        self._cluster_ids.add(pulse.cluster_id)
        self._pulse_timestamp.labels(pulse.cluster_id, pulse.vantage).set(pulse.emitted_at.timestamp())
        # Create the series that do not exist yet, with the value 0.
        for kind in filter(lambda state: state.is_alert, HealthState):
            self._open_findings.labels(pulse.cluster_id, kind)
        for broker in pulse.brokers:
            for gauge in self._broker_alerts.values():
                gauge.labels(pulse.cluster_id, broker.broker_id)

    def restore_pulse_time(self, vantage: ClusterVantage, at: datetime) -> None:
        """Export when an earlier watch last heard a vantage."""
        self._cluster_ids.add(vantage.cluster_id)
        self._pulse_timestamp.labels(*vantage).set(at.timestamp())

    def remove_vantage(self, vantage: ClusterVantage) -> None:
        """Remove the series of a vantage that counts as retired."""
        self._pulse_timestamp.remove_by_labels(dict(zip(("cluster", "vantage"), vantage, strict=True)))

    def record_ignored_pulse(self, pulse: ProbePulse, now: datetime) -> None:
        """Count a pulse that does not describe the present, or whose cluster is not watched."""
        self._ignored_at[pulse.cluster_id] = now
        self._ignored_pulses.labels(pulse.cluster_id, pulse.vantage).inc()

    def record_finding(self, finding: Finding) -> None:
        """Record a change of a subject's state."""
        self._record_change(finding.subject, finding.from_state, finding.to_state)

    def record_adopted_finding(self, subject: FindingSubject, state: HealthState) -> None:
        """Record an open finding of an earlier watch."""
        self._record_change(subject, HealthState.HEALTHY, state)

    def _record_change(self, subject: FindingSubject, before: HealthState, after: HealthState) -> None:
        self._cluster_ids.add(subject.cluster_id)
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

    def keep_clusters(self, cluster_ids: Container[str], now: datetime) -> None:
        """Remove the series of all other clusters; the count of ignored pulses goes when none arrive."""
        for cluster_id, ignored_at in [*self._ignored_at.items()]:
            if cluster_id not in cluster_ids and now - ignored_at >= _IGNORED_SHOWN:
                del self._ignored_at[cluster_id]
                self._ignored_pulses.remove_by_labels({"cluster": cluster_id})
        removed = {cluster_id for cluster_id in self._cluster_ids if cluster_id not in cluster_ids}
        self._cluster_ids -= removed
        for cluster_id in removed:
            for metric in (*self._broker_alerts.values(), self._open_findings, self._pulse_timestamp):
                metric.remove_by_labels({"cluster": cluster_id})

    def create_notifier_metrics(self, name: str) -> "NotifierMetrics":
        """Return the metrics of one notifier; its series exist from the start."""
        return NotifierMetrics(
            name,
            self._waiting.labels(name),
            self._rejected.labels(name),
            {outcome: self._notifications.labels(name, outcome) for outcome in ("sent", "failed")},
        )

    def remove_notifier(self, name: str) -> None:
        """Remove the series of a notifier that is not in the fleet file any more."""
        for metric in (self._waiting, self._rejected, self._notifications):
            metric.remove_by_labels({"notifier": name})


@dataclass(slots=True)
class NotifierMetrics:
    """The metrics of one notifier's notifications; notifiers of one host share its series."""

    name: str
    waiting: Gauge
    rejected: Gauge
    counts: Mapping[str, Counter]
    _own_waiting: int = field(default=0, init=False)
    _is_closed: bool = field(default=False, init=False)
    _lock: Lock = field(default_factory=Lock, init=False)

    def add_waiting(self, change: int) -> None:
        """Add to the number of findings that wait for the receiver; a negative number subtracts."""
        with self._lock:
            if not self._is_closed:
                self._own_waiting += change
                self.waiting.inc(change)

    def close(self) -> None:
        """Stop counting the findings that wait for this notifier."""
        with self._lock:
            self._is_closed = True
            self.waiting.dec(self._own_waiting)

    def record_settlement(self, settlement: Settlement) -> None:
        """Count a finding that was delivered, rejected or expired."""
        self.counts["sent" if settlement is Settlement.DELIVERED else "failed"].inc()
