"""kafka-python's admin client, for what librdkafka cannot ask."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kafka import KafkaAdminClient
from kafka.errors import KafkaError
from kafka.net.compat import KafkaNetClient

from fleetgauge_probes.fleet import Access
from fleetgauge_probes.kafka.credentials import for_kafka_python
from fleetgauge_probes.kafka.errors import KafkaUnavailableError, unavailable


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
            kafka_client=network,
            **identity,
        )
        yield admin, networks[0]
    finally:
        for one in networks:
            one.close()


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
