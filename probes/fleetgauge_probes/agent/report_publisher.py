"""Publishes cluster reports: records to the spool forwarder, pulses to telemetry, both to the metrics."""

import logging
from collections.abc import Sequence

from fleetgauge_core.contract import ProbePulse
from fleetgauge_core.fleet import Telemetry
from fleetgauge_core.kafka import KafkaUnavailableError, RecordProducer
from fleetgauge_probes.agent.cluster_report import ClusterReport
from fleetgauge_probes.agent.metrics import AgentMetrics
from fleetgauge_probes.agent.spool_forwarder import SpoolForwarder

_log = logging.getLogger("fleetgauge.records")

#: An older pulse is worthless: three newer ones have been emitted by then.
_PULSE_TIMEOUT_S = 15
_PULSE_STOP_TIMEOUT_S = 1
_RECORD_STOP_TIMEOUT_S = 10


class PulseProducer:
    """Sends pulses to the telemetry cluster; reconnects when secrets or certificates have been replaced."""

    def __init__(self, telemetry: Telemetry) -> None:
        """Prepare the producer without connecting."""
        self._access = telemetry.access
        self._topic = telemetry.topics.probe_pulse.name
        self._earlier_delivered = self._earlier_failed = 0

    def start(self) -> None:
        """Start a producer. Raises: KafkaUnavailableError when secrets cannot be read."""
        self._file_versions = self._access.file_versions()
        self._producer = RecordProducer(
            self._access, "fleetgauge-pulses", delivery_timeout_s=_PULSE_TIMEOUT_S
        )
        self._producer.start()

    def send(self, pulse: ProbePulse) -> None:
        """Queue a pulse."""
        self._renew_credentials()
        self._producer.send(self._topic, pulse.cluster_id, pulse.encode())

    @property
    def delivered(self) -> int:
        """How many pulses the telemetry cluster has acknowledged."""
        return self._earlier_delivered + self._producer.delivered

    @property
    def failed(self) -> int:
        """How many pulses could not be delivered in time."""
        return self._earlier_failed + self._producer.failed

    def stop(self) -> None:
        """Deliver queued pulses for up to one second and stop."""
        self._producer.stop(_PULSE_STOP_TIMEOUT_S)

    def _renew_credentials(self) -> None:
        if self._access.file_versions() == self._file_versions:
            return
        previous = self._producer
        try:
            self.start()
        except KafkaUnavailableError as error:
            _log.error("pulses continue with the previous credentials: %s", error)
            self._producer = previous
        else:
            previous.stop(_PULSE_STOP_TIMEOUT_S)
            self._earlier_delivered += previous.delivered
            self._earlier_failed += previous.failed


class ReportPublisher:
    """Publishes the agent's reports, from ``start`` to ``stop``. For use by a single thread."""

    def __init__(self, pulses: PulseProducer, forwarder: SpoolForwarder, metrics: AgentMetrics) -> None:
        """Publish to these three."""
        self._pulses = pulses
        self._forwarder = forwarder
        self._metrics = metrics

    def start(self) -> None:
        """Start producing. Raises: KafkaUnavailableError when secrets cannot be read."""
        self._pulses.start()
        self._forwarder.start()

    def publish(self, reports: Sequence[ClusterReport]) -> None:
        """Store the reports' records, send their pulses and update the metrics."""
        closed = [record for report in reports for record in report.closed_minutes]
        self._forwarder.store(closed, [record for report in reports for record in report.open_minutes])
        for record in closed:
            self._metrics.record_minute(record)
        self._metrics.record_pulse_deliveries(self._pulses.delivered, self._pulses.failed)
        for report in reports:
            if report.pulse:
                self._pulses.send(report.pulse)
                self._metrics.record_pulse(report.pulse)
            self._metrics.record_cluster_state(
                report.cluster_id,
                report.excluded_probes,
                report.pending_topic_actions,
                report.unreachable_reason,
            )
            self._metrics.record_throttling(report.cluster_id, report.throttled_s)
            self._metrics.record_connections(
                report.cluster_id, report.connection_outcomes, report.certificate_expiries
            )

    def stop(self) -> int:
        """Deliver for up to 11 s and return how many records are left in the spool."""
        self._pulses.stop()
        return self._forwarder.stop(_RECORD_STOP_TIMEOUT_S)
