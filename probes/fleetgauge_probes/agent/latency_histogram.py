"""How long probes take, as histograms: what can be added up over clusters and time, as a p99 cannot.

Of a cluster and leg, not of each broker: at 19 series each, 300 brokers would be 11,400.
"""

from prometheus_client import CollectorRegistry, Histogram

from fleetgauge_core.contract import Leg, ProbeMinute

#: What OpenTelemetry's conventions advise for messaging clients, in seconds.
_ADVISED_S = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
#: A probe on a sound network is faster than the least of those.
_FINER_S = (0.001, 0.0025, *_ADVISED_S)
_SENT_TO_KAFKA = ("kafka", "send")
_US = 1_000_000


class Durations:
    """Takes the records that the agent sends."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._probes = Histogram(
            "fleetgauge_probe_duration_seconds",
            "From a probe's due time to its success: received on the client leg, acknowledged on the other.",
            ("cluster", "leg"),
            registry=registry,
            buckets=_FINER_S,
        )
        self._operations = Histogram(
            "messaging_client_operation_duration_seconds",
            "From a client leg's due time to the acknowledgement by all replicas in sync.",
            ("cluster", "messaging_system", "messaging_operation_name"),
            registry=registry,
            buckets=_ADVISED_S,
        )

    def minute(self, record: ProbeMinute) -> None:
        """A minute of one broker and leg is decided."""
        probes = self._probes.labels(record.cluster_id, record.leg)
        for took_us in record.success_us:
            probes.observe(took_us / _US)
        if record.leg is Leg.CLIENT:
            operations = self._operations.labels(record.cluster_id, *_SENT_TO_KAFKA)
            for took_us in record.ack_us:
                operations.observe(took_us / _US)

    def forget(self, cluster_id: str) -> None:
        """The cluster is measured no more."""
        for histogram in (self._probes, self._operations):
            histogram.remove_by_labels({"cluster": cluster_id})
