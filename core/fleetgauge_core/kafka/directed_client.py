"""A long-lived kafka-python client that sends each request to a broker of the caller's choice.

An admin client chooses a broker by itself, so that two requests may be answered by brokers of which one lags
behind the other. For use in one thread: it drives the connections while it waits for responses.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from kafka.errors import IncompatibleBrokerVersion, KafkaConnectionError, KafkaError, NodeNotReadyError
from kafka.future import Future
from kafka.net.compat import KafkaNetClient

from fleetgauge_core.fleet import ClusterAccess
from fleetgauge_core.kafka.authentication_check import find_authentication_error
from fleetgauge_core.kafka.broker_registry import select_reachable_bootstrap
from fleetgauge_core.kafka.cluster_queries import QueryFailure
from fleetgauge_core.kafka.credentials import build_kafka_python_arguments
from fleetgauge_core.kafka.errors import (
    AUTHENTICATION_FAILED,
    KafkaSecurityError,
    KafkaUnavailableError,
)
from fleetgauge_core.kafka.own_resources import explain_creation_errors, find_error_reason

#: Metadata of a cluster with many thousand partitions takes megabytes.
_MAX_RESPONSE_BYTES = 100_000_000
_METADATA_MAX_AGE_MS = 10_000
_POLL_S = 0.2
_RETRIES, _RETRY_S = 3, 0.2
_RECONNECT_MAX_MS = 500


class _NoAnswer(QueryFailure):
    """The failure of a request that the broker did not answer."""


class _Closed(_NoAnswer):
    """The failure of a request for which there was no connection, or which was closed."""


def is_unanswered(result: Any) -> bool:
    """Return whether a broker that was connected did not answer in time."""
    return isinstance(result, _NoAnswer) and not isinstance(result, _Closed)


def _send(client: KafkaNetClient, broker_id: int, request: Any) -> Any:
    """Return the future of a response, or why the request cannot be sent."""
    try:
        return client.send(broker_id, request)
    except (KafkaError, OSError, RuntimeError) as error:
        return _explain(error)


def _explain(error: BaseException) -> QueryFailure:
    """Return the failure; the client passes on whatever ends a connection, as of an identity provider."""
    if isinstance(error, IncompatibleBrokerVersion):
        return QueryFailure(str(error))
    is_closed = isinstance(error, (KafkaConnectionError, NodeNotReadyError))
    return (_Closed if is_closed else _NoAnswer)(str(error) or type(error).__name__)


class DirectedClient:
    """Requests to the brokers of one cluster.

    The client is created by ``connect``, and anew when secrets change.
    """

    def __init__(self, access: ClusterAccess, client_id: str, timeout_s: float) -> None:
        """``timeout_s`` limits each request, or the requests that are sent at once."""
        self._access = access
        self._client_id = client_id
        self._timeout_s = timeout_s
        self._client: KafkaNetClient | None = None
        self._file_versions: tuple[object, ...] = ()

    def connect(self) -> None:
        """Create the client unless there is one with the present secrets, and note closed connections.

        Raises: KafkaUnavailableError if secrets cannot be read or no broker answers; KafkaSecurityError.
        """
        file_versions = tuple(self._access.file_versions())
        if self._client and file_versions == self._file_versions:
            self._client.poll(timeout_ms=0)
            return
        self.close()
        access = select_reachable_bootstrap(self._access)
        arguments = build_kafka_python_arguments(access)
        timeout_ms = int(self._timeout_s * 1000)
        with explain_creation_errors(access):
            client = KafkaNetClient(
                bootstrap_servers=access.bootstrap.split(","),
                client_id=self._client_id,
                request_timeout_ms=timeout_ms,
                socket_connection_setup_timeout_ms=timeout_ms,
                reconnect_backoff_max_ms=_RECONNECT_MAX_MS,
                metadata_max_age_ms=_METADATA_MAX_AGE_MS,
                receive_message_max_bytes=_MAX_RESPONSE_BYTES,
                **arguments,
            )
        try:
            client.check_version(timeout_ms=2 * timeout_ms)
        except (KafkaError, OSError) as error:
            client.close()
            if authentication_error := find_authentication_error(access):
                raise KafkaSecurityError(authentication_error, AUTHENTICATION_FAILED) from error
            raise KafkaUnavailableError(
                f"{self._access.bootstrap}: {error}", find_error_reason(error)
            ) from error
        self._client, self._file_versions = client, file_versions

    @property
    def broker_ids(self) -> tuple[int, ...]:
        """The live brokers that the client knows."""
        if not self._client:
            return ()
        return tuple(sorted(int(node.node_id) for node in self._client.cluster.brokers()))

    def adopt_brokers(self, metadata: Any) -> None:
        """Take the live brokers from a response to a metadata request: the client's own are seconds old."""
        if self._client and not isinstance(metadata, QueryFailure):
            self._client.cluster.update_metadata(metadata)

    def request(self, broker_id: int, request: Any) -> Any:
        """Return the response of a broker, or a QueryFailure if its version does not know the request.

        Raises: KafkaUnavailableError if the broker does not answer.
        """
        result = self.request_all({broker_id: request})[broker_id]
        if isinstance(result, _NoAnswer):
            raise KafkaUnavailableError(f"broker {broker_id}: {result.reason}")
        return result

    def request_all(self, requests: Mapping[int, Any], grace_s: float | None = None) -> dict[int, Any]:
        """Send one request to each broker at once; return each response, or a QueryFailure.

        With ``grace_s``, those that are still missing so long after the first response are not waited for.
        """
        client = self._client
        if client is None:
            return dict.fromkeys(requests, _NoAnswer("not connected"))
        deadline_s = time.monotonic() + self._timeout_s
        results = self._send_and_wait(client, requests, deadline_s, grace_s)
        for _ in range(_RETRIES):
            closed = [broker_id for broker_id, result in results.items() if isinstance(result, _Closed)]
            if not closed:
                break
            # A broker that has restarted has closed the connection; a new one is not opened at once.
            client.poll(timeout_ms=int(_RETRY_S * 1000))
            again = {broker_id: requests[broker_id] for broker_id in closed}
            results |= self._send_and_wait(client, again, deadline_s, grace_s)
        return results

    def _send_and_wait(
        self, client: KafkaNetClient, requests: Mapping[int, Any], deadline_s: float, grace_s: float | None
    ) -> dict[int, Any]:
        futures = {broker_id: _send(client, broker_id, request) for broker_id, request in requests.items()}
        pending = [future for future in futures.values() if isinstance(future, Future)]
        self._wait(client, pending, deadline_s, grace_s)
        return {broker_id: self._take_result(future) for broker_id, future in futures.items()}

    def _wait(
        self, client: KafkaNetClient, futures: Sequence[Any], deadline_s: float, grace_s: float | None
    ) -> None:
        pending = [future for future in futures if not future.is_done]
        while pending and (remaining_s := deadline_s - time.monotonic()) > 0:
            # The client wakes up for whatever happens on one of its connections.
            client.poll(timeout_ms=int(min(remaining_s, _POLL_S) * 1000))
            pending = [future for future in pending if not future.is_done]
            if grace_s is not None and any(future.succeeded() for future in futures if future.is_done):
                deadline_s, grace_s = min(deadline_s, time.monotonic() + grace_s), None

    def _take_result(self, future: Any) -> Any:
        if isinstance(future, QueryFailure):
            return future
        if not future.is_done:
            return _NoAnswer(f"no answer within {self._timeout_s:g} s")
        return future.value if future.succeeded() else _explain(future.exception)

    def close(self) -> None:
        """Close all connections."""
        if self._client:
            self._client.close()
            self._client = None
