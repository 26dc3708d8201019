"""What the watch's /metrics tells. Names and labels are a promise: docs/operations.md lists them."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge

from fleetgauge_pipelines.detection import Chain, Finding, FleetState, Phase, Subject
from fleetgauge_probes.contract import ProbePulse


class WatchMetrics:
    """Takes what the watch hears and finds, in its order, and keeps the registry up to it."""

    def __init__(self, registry: CollectorRegistry) -> None:
        broker = ("cluster", "broker")
        down = "1 while the broker is named as down, else 0."
        slow = "1 while the broker is named as slow, else 0."
        self._named = {
            Chain.BROKER_DOWN: Gauge("fleetgauge_broker_named", down, broker, registry=registry),
            Chain.DEGRADED: Gauge("fleetgauge_broker_degraded", slow, broker, registry=registry),
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
        self._notifications = Counter(
            "fleetgauge_notifications_total",
            "Findings that a notifier was to be told.",
            ("notifier", "outcome"),
            registry=registry,
        )

    def remembered(self, state: FleetState) -> None:
        """What earlier watches left behind."""
        for subject, phase in state.open_findings():
            self._changed(subject, Phase.HEALTHY, phase)

    def heard(self, pulse: ProbePulse) -> None:
        """A pulse came, be it fresh or not."""
        self._pulse.labels(pulse.cluster_id, pulse.vantage).set(pulse.emitted_at.timestamp())
        # They are made with 0, and left alone where they are there.
        for kind in filter(lambda phase: phase.names, Phase):
            self._open.labels(pulse.cluster_id, kind)
        for broker in pulse.brokers:
            for named in self._named.values():
                named.labels(pulse.cluster_id, broker.broker_id)

    def found(self, finding: Finding) -> None:
        """Something changed."""
        self._changed(finding.subject, finding.from_phase, finding.to_phase)

    def _changed(self, subject: Subject, before: Phase, after: Phase) -> None:
        if before.names:
            self._open.labels(subject.cluster_id, before).dec()
        if after.names:
            self._open.labels(subject.cluster_id, after).inc()
        if subject.chain in self._named:
            self._named[subject.chain].labels(subject.cluster_id, subject.broker_id).set(after.names)

    def notifications(self, notifier: str) -> Callable[[bool], None]:
        """A count of what one notifier is told, by whether it took it; both are there from the start."""
        outcomes = {
            True: self._notifications.labels(notifier, "sent"),
            False: self._notifications.labels(notifier, "failed"),
        }
        return lambda taken: outcomes[taken].inc()
