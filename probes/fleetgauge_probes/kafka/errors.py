"""Third-party errors, translated once.

KafkaUnavailableError: the cluster did not answer in time or refused the request.
"""

from confluent_kafka import KafkaError


class KafkaUnavailableError(Exception):
    """A cluster that could not be asked, in one line."""


def code(error: KafkaError) -> str:
    """The error's name as a failure code, librdkafka's own errors without their underscore."""
    return str(error.name()).lstrip("_")
