"""Whether a cluster takes the name that we show it: kafka-python only logs that, librdkafka says it."""

from contextlib import suppress

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from fleetgauge_core.fleet import Access
from fleetgauge_core.kafka import client_settings
from fleetgauge_core.kafka.credentials import for_librdkafka


def identity_refusal(access: Access, timeout_s: float = 2) -> str | None:
    """What is said against our name, password or token; None where nothing is, in that time.

    Raises KafkaUnavailableError where secrets cannot be read.
    """
    if not access.security.protocol.startswith("SASL"):
        return None
    errors: list[KafkaError] = []
    client = AdminClient(client_settings.CONNECTION | for_librdkafka(access) | {"error_cb": errors.append})
    with suppress(KafkaException):
        client.list_topics(timeout=timeout_s)
    client.poll(0)
    said = (error.str() for error in errors if error.code() == KafkaError._AUTHENTICATION)
    return next(said, None)
