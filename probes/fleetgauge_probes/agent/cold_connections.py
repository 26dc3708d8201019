"""Results of cold connections (DNS, TCP, TLS, ApiVersions) to the brokers of one cluster."""

import logging
from collections import Counter
from collections.abc import Collection, Mapping
from datetime import datetime

from fleetgauge_core.kafka import ConnectionFailure, ConnectionMeasurement
from fleetgauge_core.metadata import BrokerRegistration
from fleetgauge_probes.agent.process_pauses import ProcessPauses

_log = logging.getLogger("fleetgauge.probe")

#: Three failed attempts in a row, at one attempt a second.
_RESPONSE_EXPIRES_NS = 3_000_000_000


class ColdConnectionTracker:
    """Latest cold-connection results by broker. It has no lock: its owner serializes access."""

    def __init__(self, cluster_id: str, pauses: ProcessPauses) -> None:
        """Start without any results; ``cluster_id`` appears in log lines."""
        self._cluster_id = cluster_id
        self._pauses = pauses
        self._measurements: dict[int, ConnectionMeasurement] = {}
        self._failures: dict[int, ConnectionFailure] = {}
        self._outcomes: Counter[tuple[int, str]] = Counter()

    def record(self, broker: BrokerRegistration, result: ConnectionMeasurement | ConnectionFailure) -> None:
        """Record the result of an attempt; a change between results is logged."""
        previous_failure = self._failures.pop(broker.broker_id, None)
        if isinstance(result, ConnectionMeasurement):
            self._measurements[broker.broker_id] = result
            self._outcomes[broker.broker_id, "answered"] += 1
            if previous_failure:
                _log.info("%s: broker %d responds again", self._cluster_id, broker.broker_id)
            return
        self._failures[broker.broker_id] = result
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
