"""Where all goes that the agent finds out: records to the courier, pulses to telemetry, both to /metrics."""

import logging
from collections.abc import Sequence

from fleetgauge_core.contract import ProbePulse
from fleetgauge_core.fleet import Telemetry
from fleetgauge_core.kafka import KafkaUnavailableError, RecordProducer
from fleetgauge_probes.agent.cluster_report import Report
from fleetgauge_probes.agent.metrics import AgentMetrics
from fleetgauge_probes.agent.spool_forwarder import Courier

_log = logging.getLogger("fleetgauge.records")

#: A later pulse says nothing any more: three more have been made by then.
_PULSE_IS_NEWS_S = 15
_PULSES_LEAVE_S = 1
_RECORDS_LEAVE_S = 10


class Pulses:
    """A producer of pulses; another one when secrets or certificates have been replaced."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._access = telemetry.access
        self._topic = telemetry.topics.probe_pulse.name

    def start(self) -> None:
        """Raises KafkaUnavailableError where secrets cannot be read."""
        self._stamps = self._access.stamps()
        self._producer = RecordProducer(self._access, "fleetgauge-pulses", give_up_after_s=_PULSE_IS_NEWS_S)
        self._producer.start()

    def send(self, pulse: ProbePulse) -> None:
        self._renew()
        self._producer.send(self._topic, pulse.cluster_id, pulse.encode())

    def stop(self) -> None:
        self._producer.stop(_PULSES_LEAVE_S)

    def _renew(self) -> None:
        if self._access.stamps() == self._stamps:
            return
        former = self._producer
        try:
            self.start()
        except KafkaUnavailableError as error:
            _log.error("pulses go on with what they had: %s", error)
            self._producer = former
        else:
            former.stop(_PULSES_LEAVE_S)


class Outlets:
    """For one thread, from ``start`` to ``stop``."""

    def __init__(self, pulses: Pulses, courier: Courier, metrics: AgentMetrics) -> None:
        self._pulses = pulses
        self._courier = courier
        self._metrics = metrics

    def start(self) -> None:
        """Raises KafkaUnavailableError where secrets cannot be read."""
        self._pulses.start()
        self._courier.start()

    def take(self, reports: Sequence[Report]) -> None:
        closed = [record for report in reports for record in report.closed]
        self._courier.hand(closed, [record for report in reports for record in report.still_open])
        for record in closed:
            self._metrics.minute(record)
        for report in reports:
            if report.pulse:
                self._pulses.send(report.pulse)
                self._metrics.pulse(report.pulse)
            self._metrics.cluster(report.cluster_id, report.left_out, report.pending, report.unreachable)
            self._metrics.throttled(report.cluster_id, report.throttled_s)
            self._metrics.answers(report.cluster_id, report.outcomes, report.certificate_ends)

    def stop(self) -> int:
        """Deliver what can be delivered in 11 s; returns how many records are left."""
        self._pulses.stop()
        return self._courier.stop(_RECORDS_LEAVE_S)
