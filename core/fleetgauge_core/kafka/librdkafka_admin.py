"""Librdkafka's admin client, and what it is told, waited for."""

from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import TypeVar

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from fleetgauge_core.fleet import Access
from fleetgauge_core.kafka import client_settings
from fleetgauge_core.kafka.credentials import ensure_usable, for_librdkafka
from fleetgauge_core.kafka.errors import KafkaUnavailableError

T = TypeVar("T")

#: Librdkafka gives up first, and says why.
_GRACE_S = 1


def admin_client(access: Access, client_id: str) -> AdminClient:
    """Raises KafkaUnavailableError where secrets or certificates cannot be read."""
    ensure_usable(access)
    return AdminClient(client_settings.CONNECTION | for_librdkafka(access) | {"client.id": client_id})


def answered(future: "Future[T]", access: Access, timeout_s: float, *none: int) -> T | None:
    """None where a broker answers one of those errors. Raises KafkaUnavailableError."""
    try:
        return future.result(timeout_s + _GRACE_S)
    except KafkaException as error:
        if error.args[0].code() in none:
            return None
        raise unavailable(access, error.args[0]) from error
    except (TimeoutError, FutureTimeoutError) as error:
        raise KafkaUnavailableError(f"{access.bootstrap}: no answer within {timeout_s:g} s") from error


def unavailable(access: Access, said: KafkaError) -> KafkaUnavailableError:
    return KafkaUnavailableError(f"{access.bootstrap}: {said.str()}")
