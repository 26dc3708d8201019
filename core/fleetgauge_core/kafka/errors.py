"""Third-party errors, translated once.

KafkaUnavailableError: the cluster did not answer in time or refused the request.
KafkaTurnedAwayError: it is there, but lets nobody in who comes as we do.
KafkaRefusedError: it understood and says no, until somebody changes the cluster.
"""

from confluent_kafka import KafkaError

_REFUSALS = frozenset(
    {
        "POLICY_VIOLATION",
        "INVALID_REPLICA_ASSIGNMENT",
        "INVALID_REPLICATION_FACTOR",
        "INVALID_CONFIG",
        "INVALID_REQUEST",
        "UNSUPPORTED_VERSION",
    }
)

NO_ANSWER = "no_answer"
#: It takes neither the name nor the password or token that we show.
AUTHENTICATION = "authentication"


class KafkaUnavailableError(Exception):
    """A cluster that could not be asked, in one line; ``reason`` is what stands in the way, in one word."""

    def __init__(self, words: str, reason: str = NO_ANSWER) -> None:
        super().__init__(words)
        self.reason = reason


class KafkaTurnedAwayError(KafkaUnavailableError):
    """A cluster whose TLS or whose judgement of our name stands in the way, in one line."""


class KafkaRefusedError(KafkaUnavailableError):
    """A request that the cluster will not grant, in one line."""


def unavailable(name: str, words: str) -> KafkaUnavailableError:
    """What to raise for an error of that name."""
    refused = name in _REFUSALS or name.endswith("AUTHORIZATION_FAILED")
    return (KafkaRefusedError if refused else KafkaUnavailableError)(f"{name}: {words}")


def code(error: KafkaError) -> str:
    """The error's name as a failure code, librdkafka's own errors without their underscore."""
    return str(error.name()).lstrip("_")
