"""The bootstrap of a new client, as an application experiences it at its start: up to a topic's leaders."""

from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from fleetgauge_core.fleet import ClusterAccess
from fleetgauge_core.kafka import client_settings
from fleetgauge_core.kafka.credentials import build_librdkafka_settings
from fleetgauge_core.kafka.errors import error_code
from fleetgauge_core.kafka.own_resources import explain_creation_errors
from fleetgauge_core.runtime.uptime import uptime_ns

#: Errors that explain a failed bootstrap better than its time-out.
_SPECIFIC_CODES = frozenset({KafkaError._AUTHENTICATION, KafkaError._SSL, KafkaError._RESOLVE})


@dataclass(frozen=True, slots=True)
class BootstrapMeasurement:
    """A bootstrap's start and end as uptime, and its failure code; None if it succeeded."""

    started_ns: int
    ended_ns: int
    failure: str | None


def measure_cold_bootstrap(access: ClusterAccess, topic: str, timeout_s: float) -> BootstrapMeasurement:
    """Create a client and let it resolve, connect, authenticate and fetch the metadata of an existing topic.

    Raises: KafkaUnavailableError if secrets cannot be read.
    """
    errors: list[KafkaError] = []
    settings = (
        client_settings.CONNECTION
        | build_librdkafka_settings(access)
        | {"client.id": "fleetgauge-bootstrap", "error_cb": errors.append}
    )
    started_ns = uptime_ns()
    with explain_creation_errors(access):
        client = AdminClient(settings)
    try:
        client.list_topics(topic, timeout=timeout_s)
    except KafkaException as error:
        ended_ns = uptime_ns()
        client.poll(0)
        specific_errors = (error for error in errors if error.code() in _SPECIFIC_CODES)
        cause = next(specific_errors, error.args[0])
        return BootstrapMeasurement(started_ns, ended_ns, error_code(cause).lower())
    return BootstrapMeasurement(started_ns, uptime_ns(), None)
