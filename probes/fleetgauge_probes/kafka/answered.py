"""What librdkafka's admin client is told, waited for."""

from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import TypeVar

from confluent_kafka import KafkaError, KafkaException

from fleetgauge_probes.fleet import Access
from fleetgauge_probes.kafka.errors import KafkaUnavailableError

T = TypeVar("T")

#: Librdkafka gives up first, and says why.
_GRACE_S = 1


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
