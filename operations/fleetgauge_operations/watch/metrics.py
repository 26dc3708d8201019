"""What the watch's /metrics tells. Names and labels are a promise: docs/operations.md lists them."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge

from fleetgauge_pipelines.detection import Finding, FleetState
from fleetgauge_probes.contract import ProbePulse


class WatchMetrics:
    """Takes what the watch hears and finds, in its order, and keeps the registry up to it."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._named = Gauge(
            "fleetgauge_broker_named",
            "1 while the broker is named as down, else 0.",
            ("cluster", "broker"),
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
        for cluster_id, broker_id in state.open_findings():
            self._named.labels(cluster_id, broker_id).set(1)

    def heard(self, pulse: ProbePulse) -> None:
        """A pulse came, be it fresh or not."""
        self._pulse.labels(pulse.cluster_id, pulse.vantage).set(pulse.emitted_at.timestamp())
        for broker in pulse.brokers:
            # Is made with 0, and left alone when it is there.
            self._named.labels(pulse.cluster_id, broker.broker_id)

    def found(self, finding: Finding) -> None:
        """A broker's phase changed."""
        self._named.labels(finding.event.cluster_id, finding.event.broker_id).set(finding.names)

    def notifications(self, notifier: str) -> Callable[[bool], None]:
        """A count of what one notifier is told, by whether it took it; both are there from the start."""
        outcomes = {
            True: self._notifications.labels(notifier, "sent"),
            False: self._notifications.labels(notifier, "failed"),
        }
        return lambda taken: outcomes[taken].inc()
