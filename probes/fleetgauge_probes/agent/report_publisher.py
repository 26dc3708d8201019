"""Publishes cluster reports: records to the spool forwarder, pulses to telemetry, both to the metrics."""

import logging
import time
from collections.abc import Callable, Sequence

from fleetgauge_core.contract import ProbePulse
from fleetgauge_core.fleet import Telemetry
from fleetgauge_core.kafka import KafkaUnavailableError, RecordProducer, TopicKeeper
from fleetgauge_probes.agent.cluster_report import ClusterReport
from fleetgauge_probes.agent.metrics import AgentMetrics
from fleetgauge_probes.agent.spool_forwarder import SpoolForwarder

_log = logging.getLogger("fleetgauge.records")

#: An older pulse is worthless: three newer ones have been emitted by then.
_PULSE_TIMEOUT_S = 15
_PULSE_STOP_TIMEOUT_S = 1
#: Pause before secrets that could not be read are read again.
_RETRY_S = 2.0
_RECORD_STOP_TIMEOUT_S = 10


class PulseProducer:
    """Sends pulses to the telemetry cluster; reconnects when secrets or certificates have been replaced.

    While there are none that can be read, every pulse counts as failed.
    """

    def __init__(
        self,
        telemetry: Telemetry,
        topics: TopicKeeper,
        elapsed_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare the producer without connecting; ``topics`` keeps the telemetry topics."""
        self._topics, self._recreations = topics, topics.recreations
        self._access = telemetry.access
        self._topic = telemetry.topics.probe_pulse.name
        self._elapsed_s = elapsed_s
        self._producer: RecordProducer | None = None
        self._retry_at_s = 0.0
        self._earlier_delivered = self._earlier_failed = 0
        self.fault: str | None = None
        """Why no pulse can be sent, if secrets or certificates could not be read."""

    def start(self) -> None:
        """Start a producer; if secrets cannot be read, a later pulse does."""
        self._file_versions = self._access.file_versions()
        producer = RecordProducer(self._access, "fleetgauge-pulses", delivery_timeout_s=_PULSE_TIMEOUT_S)
        try:
            producer.start()
        except KafkaUnavailableError as error:
            if self._producer is None:
                self.fault, self._retry_at_s = str(error), self._elapsed_s() + _RETRY_S
            else:
                _log.error("pulses continue with the previous credentials: %s", error)
            return
        self._retire_producer()
        self._producer, self.fault = producer, None

    def send(self, pulse: ProbePulse) -> None:
        """Queue a pulse."""
        if self._must_start():
            self.start()
        if self._producer is None:
            self._earlier_failed += 1
        else:
            if self._topics.recreations != self._recreations:
                self._recreations = self._topics.recreations
                self._producer.renew()
            self._producer.send(self._topic, pulse.cluster_id, pulse.encode())

    @property
    def delivered(self) -> int:
        """How many pulses the telemetry cluster has acknowledged."""
        return self._earlier_delivered + (self._producer.delivered if self._producer else 0)

    @property
    def failed(self) -> int:
        """How many pulses could not be delivered in time."""
        return self._earlier_failed + (self._producer.failed if self._producer else 0)

    def stop(self) -> None:
        """Deliver queued pulses for up to one second and stop."""
        self._retire_producer()

    def _must_start(self) -> bool:
        if self._producer is None:
            return self._elapsed_s() >= self._retry_at_s
        return self._access.file_versions() != self._file_versions

    def _retire_producer(self) -> None:
        previous, self._producer = self._producer, None
        if previous:
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

    @property
    def telemetry_faults(self) -> dict[str, str]:
        """Why the telemetry cluster's secrets or certificates cannot be read, if so."""
        fault = self._pulses.fault
        return {"telemetry": f"{fault}; provide it: until then pulses are lost"} if fault else {}

    def start(self) -> None:
        """Start producing."""
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
            self._metrics.record_agent_faults(report.cluster_id, report.agent_faults)
            self._metrics.record_throttling(report.cluster_id, report.throttled_s)
            self._metrics.record_connections(
                report.cluster_id, report.connection_outcomes, report.certificate_expiries
            )

    def stop(self) -> int:
        """Deliver for up to 11 s and return how many records are left in the spool."""
        self._pulses.stop()
        return self._forwarder.stop(_RECORD_STOP_TIMEOUT_S)
