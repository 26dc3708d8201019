"""Creation of clients on a host that is out of open files, memory or threads."""

from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import KafkaError, KafkaException

from fleetgauge_core.fleet import ClusterAccess
from fleetgauge_core.kafka.connection_failure import ConnectionFailure, is_own_resource_error
from fleetgauge_core.kafka.errors import NO_ANSWER, KafkaUnavailableError

_OWN_RESOURCES = ConnectionFailure.OWN_RESOURCES.value


def find_error_reason(error: BaseException | None) -> str:
    """Return the reason of a KafkaUnavailableError that an error causes which no broker has sent."""
    return _OWN_RESOURCES if error and is_own_resource_error(error) else NO_ANSWER


@contextmanager
def explain_creation_errors(access: ClusterAccess) -> Iterator[None]:
    """Raise KafkaUnavailableError in place of an error of creating a client and its threads.

    Its reason is OWN_RESOURCES if this host is out of a resource. Other errors than KafkaException pass.
    """
    try:
        yield
    except KafkaException as error:
        cause: KafkaError = error.args[0]
        reason = _OWN_RESOURCES if cause.code() == KafkaError._CRIT_SYS_RESOURCE else NO_ANSWER
        raise KafkaUnavailableError(f"{access.bootstrap}: {cause.str()}", reason) from error
    except (OSError, MemoryError, RuntimeError) as error:
        if not is_own_resource_error(error):
            raise
        raise KafkaUnavailableError(f"{access.bootstrap}: {error}", _OWN_RESOURCES) from error
