"""Probe latencies as Prometheus histograms, which can be aggregated over clusters and time, unlike a p99.

They are labelled by cluster and leg only: with 19 series for each broker, 300 brokers would need 11,400.
"""

from prometheus_client import CollectorRegistry, Histogram

from fleetgauge_core.contract import Leg, ProbeMinute

#: Bucket bounds that OpenTelemetry's semantic conventions advise for messaging clients, in seconds.
_OPENTELEMETRY_BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
#: Probes on a healthy network take less than the lowest of those bounds.
_PROBE_BUCKETS_S = (0.001, 0.0025, *_OPENTELEMETRY_BUCKETS_S)
_KAFKA_SEND_LABELS = ("kafka", "send")
_US = 1_000_000


class LatencyHistograms:
    """Histograms of the successes in the probe minutes that the agent closes."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Register both histograms in ``registry``."""
        self._probes = Histogram(
            "fleetgauge_probe_duration_seconds",
            "From a probe's scheduled send to its success: received (client leg) or acknowledged (leader"
            " leg).",
            ("cluster", "leg"),
            registry=registry,
            buckets=_PROBE_BUCKETS_S,
        )
        self._operations = Histogram(
            "messaging_client_operation_duration_seconds",
            "From a client-leg probe's scheduled send to its acknowledgement by all in-sync replicas.",
            ("cluster", "messaging_system", "messaging_operation_name"),
            registry=registry,
            buckets=_OPENTELEMETRY_BUCKETS_S,
        )

    def observe_minute(self, record: ProbeMinute) -> None:
        """Add the latencies of one broker's closed minute on one leg."""
        probes = self._probes.labels(record.cluster_id, record.leg)
        for latency_us in record.success_us:
            probes.observe(latency_us / _US)
        if record.leg is Leg.CLIENT:
            operations = self._operations.labels(record.cluster_id, *_KAFKA_SEND_LABELS)
            for latency_us in record.ack_us:
                operations.observe(latency_us / _US)

    def remove_cluster(self, cluster_id: str) -> None:
        """Remove the series of a cluster that is no longer probed."""
        for histogram in (self._probes, self._operations):
            histogram.remove_by_labels({"cluster": cluster_id})
