"""Detection of failed authentication through librdkafka, because kafka-python only logs it."""

from contextlib import suppress

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from fleetgauge_core.fleet import ClusterAccess
from fleetgauge_core.kafka import client_settings
from fleetgauge_core.kafka.credentials import build_librdkafka_settings


def find_authentication_error(access: ClusterAccess, timeout_s: float = 2) -> str | None:
    """Connect, and return the message if a broker rejects the user name, password or token; else None.

    Raises: KafkaUnavailableError if secrets cannot be read.
    """
    if not access.security.protocol.startswith("SASL"):
        return None
    errors: list[KafkaError] = []
    client = AdminClient(
        client_settings.CONNECTION | build_librdkafka_settings(access) | {"error_cb": errors.append}
    )
    with suppress(KafkaException):
        client.list_topics(timeout=timeout_s)
    client.poll(0)
    messages = (error.str() for error in errors if error.code() == KafkaError._AUTHENTICATION)
    return next(messages, None)
