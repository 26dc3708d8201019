"""A cold bootstrap: what an application that starts now goes through until it knows whom to send to."""

from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from fleetgauge_core.fleet import Access
from fleetgauge_core.kafka import client_settings
from fleetgauge_core.kafka.credentials import for_librdkafka
from fleetgauge_core.kafka.errors import code
from fleetgauge_core.runtime.uptime import uptime_ns

#: What says more than that the time is over.
_TELLING = frozenset({KafkaError._AUTHENTICATION, KafkaError._SSL, KafkaError._RESOLVE})


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """When it began and ended; ``failure`` is None where it succeeded."""

    started_ns: int
    ended_ns: int
    failure: str | None


def cold_bootstrap(access: Access, topic: str, timeout_s: float) -> Bootstrap:
    """A client of its own, from its first look-up of a name to the leaders of a topic that is there.

    Raises KafkaUnavailableError where secrets cannot be read.
    """
    errors: list[KafkaError] = []
    told = {"client.id": "fleetgauge-bootstrap", "error_cb": errors.append}
    configured = client_settings.CONNECTION | for_librdkafka(access) | told
    started_ns = uptime_ns()
    client = AdminClient(configured)
    try:
        client.list_topics(topic, timeout=timeout_s)
    except KafkaException as error:
        ended_ns = uptime_ns()
        client.poll(0)
        telling = (one for one in errors if one.code() in _TELLING)
        return Bootstrap(started_ns, ended_ns, code(next(telling, error.args[0])).lower())
    return Bootstrap(started_ns, uptime_ns(), None)
