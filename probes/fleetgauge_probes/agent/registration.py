"""Periodic reading of a cluster's registered brokers."""

import logging
import threading
from collections.abc import Callable

from fleetgauge_core.fleet import ClusterAccess
from fleetgauge_core.kafka import (
    AUTHENTICATION_FAILED,
    KafkaSecurityError,
    KafkaUnavailableError,
    LoginSurvey,
    read_broker_registry,
    survey_logins,
)
from fleetgauge_probes.agent.cluster_state import ClusterState

_log = logging.getLogger("fleetgauge.probe")

_INTERVAL_S = 10.0
#: After a failure that may be temporary; one by credentials is retried at the usual interval.
_RETRY_S = 1.0


class RegistrationLoop:
    """Keeps the registered brokers in the cluster's state, without those that fleet.yaml lists as retired."""

    def __init__(self, access: ClusterAccess, state: ClusterState, open_clients: Callable[[], None]) -> None:
        """Prepare the loop; ``open_clients`` is called once, when the cluster first lists its brokers.

        Clients are opened only then, because they reconnect all the time to a cluster that rejects them.
        ``open_clients`` may raise KafkaUnavailableError and is then called again.
        """
        self._access = access
        self._state = state
        self._open_clients = open_clients
        self._is_open = False

    def run(self, stopping: threading.Event) -> None:
        """Read the registry until ``stopping`` is set."""
        while not stopping.is_set():
            stopping.wait(self._read_registry())

    def _read_registry(self) -> float:
        """Read the registry once; return the seconds until the next attempt."""
        state = self._state
        try:
            registry = read_broker_registry(self._access)
            if not self._is_open:
                self._open_clients()
                self._is_open = True
        except KafkaUnavailableError as error:
            if error.reason != state.unreachable_reason:
                _log.warning("%s: %s", state.cluster.id, error)
            state.unreachable_reason = error.reason
            state.logins = self._survey_logins(error.reason)
            return _INTERVAL_S if isinstance(error, KafkaSecurityError) else _RETRY_S
        state.unreachable_reason, state.logins = None, LoginSurvey()
        with state.lock:
            state.kafka_cluster_uuid = registry.kafka_cluster_uuid
            state.registered = {
                broker_id: broker
                for broker_id, broker in registry.brokers.items()
                if broker_id not in state.cluster.retired
            }
        return _INTERVAL_S

    def _survey_logins(self, reason: str) -> LoginSurvey:
        """Return which of the known brokers refuse the agent's login, if that is why none was listed."""
        if reason != AUTHENTICATION_FAILED:
            return LoginSurvey()
        with self._state.lock:
            registered = dict(self._state.registered)
        try:
            return survey_logins(self._access, registered)
        except KafkaUnavailableError:
            return self._state.logins
