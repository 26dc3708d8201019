"""Results of cold connections (DNS, TCP, TLS, ApiVersions) to the brokers of one cluster."""

import logging
from collections import Counter
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from fleetgauge_core.contract.failure_codes import CLOCK_STEPPED, OUR_CERTIFICATE_REFUSED, AgentFault
from fleetgauge_core.kafka import ConnectionFailure, ConnectionMeasurement
from fleetgauge_core.metadata import BrokerRegistration
from fleetgauge_probes.agent.agent_faults import RefusalJudge
from fleetgauge_probes.agent.process_pauses import ProcessPauses

_log = logging.getLogger("fleetgauge.probe")

#: Three failed attempts in a row, at one attempt a second.
_RESPONSE_EXPIRES_NS = 3_000_000_000
#: Less than this is the drift of a clock, not a step.
_CLOCK_STEP = timedelta(minutes=1)


class AttemptTime(NamedTuple):
    """When an attempt ended: the uptime, and the time of day by the agent's clock and by its host's.

    The agent's clock is the host's as it was at the agent's start; a step since makes the difference.
    """

    uptime_ns: int
    agent_time: datetime
    host_time: datetime


class ColdConnectionTracker:
    """Latest cold-connection results by broker. It has no lock: its owner serializes access."""

    def __init__(self, cluster_id: str, pauses: ProcessPauses, *, has_certificate: bool = False) -> None:
        """Start without any results; ``cluster_id`` appears in log lines.

        ``has_certificate``: whether the agent has a client certificate, which brokers may reject.
        """
        self._cluster_id = cluster_id
        self._pauses = pauses
        self._has_certificate = has_certificate
        self._measurements: dict[int, ConnectionMeasurement] = {}
        self._failures: dict[int, ConnectionFailure] = {}
        self._faults: dict[int, AgentFault] = {}
        self._refusals = RefusalJudge()
        self._outcomes: Counter[tuple[int, str]] = Counter()

    def record(
        self, broker: BrokerRegistration, result: ConnectionMeasurement | ConnectionFailure, at: AttemptTime
    ) -> None:
        """Record the result of an attempt; a change between results is logged."""
        previous_failure = self._failures.pop(broker.broker_id, None)
        self._faults.pop(broker.broker_id, None)
        if isinstance(result, ConnectionMeasurement):
            self._measurements[broker.broker_id] = result
            self._refusals.record_acceptance(broker.broker_id, at.uptime_ns)
            self._outcomes[broker.broker_id, "answered"] += 1
            if previous_failure:
                _log.info("%s: broker %d responds again", self._cluster_id, broker.broker_id)
            return
        self._failures[broker.broker_id] = result
        if fault := self._find_fault(broker.broker_id, result, at):
            self._faults[broker.broker_id] = fault
        self._outcomes[broker.broker_id, result.value] += 1
        if result is not previous_failure:
            endpoint = (broker.broker_id, broker.host, broker.port)
            _log.warning("%s: broker %d at %s:%d: %s", self._cluster_id, *endpoint, result.description)

    def latest_measurement(self, broker_id: int) -> ConnectionMeasurement | None:
        """Return the broker's latest successful attempt, even if later ones failed."""
        return self._measurements.get(broker_id)

    def latest_failure(self, broker_id: int) -> ConnectionFailure | None:
        """Return why the latest attempt failed; None if it succeeded or there was none."""
        return self._failures.get(broker_id)

    def latest_fault(self, broker_id: int) -> AgentFault | None:
        """Return the agent's own fault by which the latest attempt failed; None if it is the broker's."""
        return self._faults.get(broker_id)

    def _find_fault(self, broker_id: int, failure: ConnectionFailure, at: AttemptTime) -> AgentFault | None:
        match failure:
            case ConnectionFailure.OWN_RESOURCES:
                return AgentFault.HOST
            case ConnectionFailure.CLIENT_CERTIFICATE_REJECTED if self._has_certificate:
                return self._refusals.find_fault(broker_id, OUR_CERTIFICATE_REFUSED, at.uptime_ns)
            case ConnectionFailure.CERTIFICATE_EXPIRED | ConnectionFailure.CERTIFICATE_NOT_YET_VALID if (
                self._is_rejected_by_clock(broker_id, at)
            ):
                return self._refusals.find_fault(broker_id, CLOCK_STEPPED, at.uptime_ns)
            case _:
                return None

    def _is_rejected_by_clock(self, broker_id: int, at: AttemptTime) -> bool:
        """Return whether the host's clock stepped out of the validity of the broker's last certificate."""
        measurement = self._measurements.get(broker_id)
        if measurement is None or abs(at.host_time - at.agent_time) <= _CLOCK_STEP:
            return False
        valid_from = measurement.response.certificate_valid_from
        expires_at = measurement.response.certificate_expires_at
        if valid_from is None or expires_at is None:
            return False
        return valid_from <= at.agent_time < expires_at and not valid_from <= at.host_time < expires_at

    def is_responding(self, broker_id: int, now_ns: int) -> bool:
        """Return whether the broker responded within 3 s, not counting time in which this process paused."""
        measurement = self._measurements.get(broker_id)
        if measurement is None:
            return False
        age_ns = now_ns - measurement.at_ns
        if age_ns < _RESPONSE_EXPIRES_NS:
            return True
        return age_ns - self._pauses.measure_paused_ns(measurement.at_ns, now_ns) < _RESPONSE_EXPIRES_NS

    def drain_outcomes(self) -> Mapping[tuple[int, str], int]:
        """Return the number of attempts by broker and outcome since the last call, and reset them."""
        outcomes, self._outcomes = self._outcomes, Counter()
        return outcomes

    def certificate_expiries(self, broker_ids: Collection[int]) -> dict[int, datetime]:
        """Return when the certificates of those brokers expire that presented one."""
        return {
            broker_id: expires_at
            for broker_id, measurement in self._measurements.items()
            if broker_id in broker_ids and (expires_at := measurement.response.certificate_expires_at)
        }
