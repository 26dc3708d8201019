"""kafka-python's admin client, for what librdkafka cannot ask."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from kafka import KafkaAdminClient
from kafka.errors import KafkaError
from kafka.net.compat import KafkaNetClient

from fleetgauge_core.fleet import Access
from fleetgauge_core.kafka.credentials import for_kafka_python
from fleetgauge_core.kafka.errors import KafkaRefusedError, KafkaUnavailableError, unavailable

#: Of hundreds of brokers a few suffice.
_TRIED = 5
_SETTLED_WITHIN_S = 4
_POLL_S = 0.005
_KNOWN_FOR_MS = 10_000
#: The last is for a cluster of which much is to be told.
_TRIES_MS = (2_000, 3_000, 4_000, 10_000)

T = TypeVar("T")


@contextmanager
def asking(
    access: Access, client_id: str, request_timeout_ms: int, bootstrap_timeout_ms: int
) -> Iterator[tuple[KafkaAdminClient, KafkaNetClient]]:
    """A client that is connected, and its network side, which knows the brokers.

    Raises KafkaError, OSError, and KafkaUnavailableError where secrets cannot be read.

    The network side is made here, so that it can be ended when the client fails to start: the
    client itself would leave its thread behind, one more with every try.
    """
    networks: list[KafkaNetClient] = []
    identity = for_kafka_python(access)

    def network(**settings: Any) -> KafkaNetClient:
        networks.append(KafkaNetClient(**settings, socket_connection_setup_timeout_ms=request_timeout_ms))
        return networks[0]

    try:
        admin = KafkaAdminClient(
            bootstrap_servers=access.bootstrap.split(","),
            client_id=client_id,
            request_timeout_ms=request_timeout_ms,
            bootstrap_timeout_ms=bootstrap_timeout_ms,
            reconnect_backoff_max_ms=500,
            # Whoever asks all brokers asks those that it knows: one that came back is to be among them.
            metadata_max_age_ms=_KNOWN_FOR_MS,
            kafka_client=network,
            **identity,
        )
        yield admin, networks[0]
    finally:
        for one in networks:
            one.close()


def tried(ask: Callable[[int], T]) -> T:
    """What ``ask``, given how long an answer may take in ms, returns at last. Raises what the last try does.

    Each try is to make a client of its own: what is for the controller a client sends to the broker that it
    was told of, which may be one that hangs, and KRaft tells everybody of another.
    """
    for request_timeout_ms in _TRIES_MS[:-1]:
        try:
            return ask(request_timeout_ms)
        except KafkaRefusedError:
            raise
        except KafkaUnavailableError:
            continue
    return ask(_TRIES_MS[-1])


def settle(network: KafkaNetClient) -> None:
    """Connect to a broker that answers, before anything is asked.

    A client asks whom it is connected to, and where it is to nobody, any: also one that hangs.
    """
    some = [one.node_id for one in network.cluster.brokers()][:_TRIED]
    for one in some:
        network.maybe_connect(one)
    network.wakeup()
    until_s = time.monotonic() + _SETTLED_WITHIN_S
    while time.monotonic() < until_s and not any(network.connected(one) for one in some):
        # The client tells nobody when it is; it mostly takes one of these.
        time.sleep(_POLL_S)


@contextmanager
def in_our_words(access: Access) -> Iterator[None]:
    """Raises KafkaUnavailableError, KafkaRefusedError for what the client raises."""
    try:
        yield
    except KafkaError as error:
        # An answer's error has both; in words it would repeat the request.
        name, words = getattr(error, "message", "NO_ANSWER"), getattr(error, "description", str(error))
        raise unavailable(name, words) from error
    except OSError as error:
        raise KafkaUnavailableError(f"{access.bootstrap}: {error}") from error
