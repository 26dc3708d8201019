"""kafka-python's admin client, for requests that librdkafka does not offer."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from kafka import KafkaAdminClient
from kafka.net.compat import KafkaNetClient

from fleetgauge_core.fleet import ClusterAccess
from fleetgauge_core.kafka.credentials import build_kafka_python_arguments
from fleetgauge_core.kafka.errors import KafkaRequestRejectedError, KafkaUnavailableError
from fleetgauge_core.kafka.own_resources import explain_creation_errors

#: Connections attempted before the first request; a few suffice, even with hundreds of brokers.
_CONNECTION_ATTEMPTS = 5
_CONNECTION_TIMEOUT_S = 4
_POLL_INTERVAL_S = 0.005
_METADATA_MAX_AGE_MS = 10_000
#: The last time-out suffices to describe a large cluster.
_REQUEST_TIMEOUTS_MS = (2_000, 3_000, 4_000, 10_000)

T = TypeVar("T")


@contextmanager
def connected_admin_client(
    access: ClusterAccess, client_id: str, request_timeout_ms: int, bootstrap_timeout_ms: int
) -> Iterator[tuple[KafkaAdminClient, KafkaNetClient]]:
    """Yield a bootstrapped admin client and its network client, which holds the list of brokers.

    Raises: KafkaError or OSError if the bootstrap fails; KafkaUnavailableError if secrets cannot be read.

    The network client is created here, because an admin client that fails to start does not close its own:
    every attempt would leak a thread.
    """
    network_clients: list[KafkaNetClient] = []
    identity = build_kafka_python_arguments(access)

    def create_network_client(**settings: Any) -> KafkaNetClient:
        network_clients.append(
            KafkaNetClient(**settings, socket_connection_setup_timeout_ms=request_timeout_ms)
        )
        return network_clients[0]

    try:
        with explain_creation_errors(access):
            admin = KafkaAdminClient(
                bootstrap_servers=access.bootstrap.split(","),
                client_id=client_id,
                request_timeout_ms=request_timeout_ms,
                bootstrap_timeout_ms=bootstrap_timeout_ms,
                reconnect_backoff_max_ms=500,
                # Requests to all brokers go to those in the client's metadata, which must include restarted
                # ones.
                metadata_max_age_ms=_METADATA_MAX_AGE_MS,
                kafka_client=create_network_client,
                **identity,
            )
        yield admin, network_clients[0]
    finally:
        for network_client in network_clients:
            # Without a thread, of which the error above tells, there is none to wait for.
            with suppress(RuntimeError):
                network_client.close()


def retry_with_longer_timeouts(request: Callable[[int], T]) -> T:
    """Call ``request`` with increasing time-outs in ms, up to four times; return the first result.

    Each attempt must create its own client: a client sends requests for the controller to the broker that it
    learned of first, which may hang, and KRaft brokers each report a different broker as controller.

    Raises: KafkaRequestRejectedError at once; the last attempt's KafkaUnavailableError.
    """
    for timeout_ms in _REQUEST_TIMEOUTS_MS[:-1]:
        try:
            return request(timeout_ms)
        except KafkaRequestRejectedError:
            raise
        except KafkaUnavailableError:
            continue
    return request(_REQUEST_TIMEOUTS_MS[-1])


def wait_for_connection(network_client: KafkaNetClient) -> None:
    """Wait until the client is connected to a responsive broker, for 4 s at most.

    A client prefers a connected broker; without one it selects any broker, also one that hangs.
    """
    node_ids = [node.node_id for node in network_client.cluster.brokers()][:_CONNECTION_ATTEMPTS]
    for node_id in node_ids:
        network_client.maybe_connect(node_id)
    network_client.wakeup()
    deadline_s = time.monotonic() + _CONNECTION_TIMEOUT_S
    while time.monotonic() < deadline_s and not any(map(network_client.connected, node_ids)):
        # The client does not signal a connection; a connection mostly takes one interval.
        time.sleep(_POLL_INTERVAL_S)
