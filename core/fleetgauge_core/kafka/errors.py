"""The errors of this package, and how both Kafka clients' errors are translated into them.

Modules that know more about the cause, such as a failed authentication, raise these errors themselves.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import KafkaError, KafkaException
from kafka.errors import KafkaError as KafkaPythonError

from fleetgauge_core.errors import OperationalError

#: Kafka errors that retrying the same request cannot remove.
_REJECTIONS = frozenset(
    {
        "POLICY_VIOLATION",
        "INVALID_REPLICA_ASSIGNMENT",
        "INVALID_REPLICATION_FACTOR",
        "INVALID_CONFIG",
        "INVALID_REQUEST",
        "UNSUPPORTED_VERSION",
    }
)

#: The reason of a KafkaUnavailableError unless a more specific one is known.
NO_ANSWER = "no_answer"
#: The reason when the cluster rejects the user name, the password or the token.
AUTHENTICATION_FAILED = "authentication"


class KafkaUnavailableError(OperationalError):
    """A request that failed: no answer in time, or an error; the message is one line.

    ``reason`` is the cause as a code: NO_ANSWER, AUTHENTICATION_FAILED or a ConnectionFailure's value.
    """

    def __init__(self, message: str, reason: str = NO_ANSWER) -> None:
        super().__init__(message)
        self.reason = reason


class CredentialsUnreadableError(KafkaUnavailableError):
    """A secret or certificate of the fleet file that cannot be read or used, so that nothing was sent."""


class KafkaSecurityError(KafkaUnavailableError):
    """A cluster that is reachable, but fails TLS or authentication with the configured credentials."""


class KafkaRequestRejectedError(KafkaUnavailableError):
    """A request that the cluster rejects until its configuration or its permissions are changed."""


def translate_request_error(error_name: str, message: str) -> KafkaUnavailableError:
    """Return the exception for a Kafka error: a KafkaRequestRejectedError if a retry cannot succeed."""
    is_rejection = error_name in _REJECTIONS or _is_unauthorized(error_name)
    error_class = KafkaRequestRejectedError if is_rejection else KafkaUnavailableError
    return error_class(f"{error_name}: {message}")


def _is_unauthorized(error_name: str) -> bool:
    return error_name.endswith("AUTHORIZATION_FAILED")


def translate_librdkafka_request_error(error: KafkaException) -> KafkaUnavailableError:
    """Return the exception for a failed request of an admin client."""
    return translate_request_error(error_code(error.args[0]), error.args[0].str())


def error_code(error: KafkaError) -> str:
    """Return the error's name, for example MSG_TIMED_OUT, without the leading underscore of local errors."""
    return str(error.name()).lstrip("_")


@contextmanager
def explain_telemetry_errors() -> Iterator[None]:
    """Add to a KafkaUnavailableError that it is the telemetry cluster that cannot be reached."""
    try:
        yield
    except KafkaUnavailableError as error:
        message = f"cannot reach the telemetry cluster: {error}"
        raise type(error)(message, error.reason) from error


@contextmanager
def translate_librdkafka_errors(subject: str) -> Iterator[None]:
    """Raise KafkaUnavailableError("SUBJECT: ...") in place of a KafkaException.

    For a missing permission it is a KafkaRequestRejectedError.
    """
    try:
        yield
    except KafkaException as error:
        is_unauthorized = _is_unauthorized(error_code(error.args[0]))
        error_class = KafkaRequestRejectedError if is_unauthorized else KafkaUnavailableError
        raise error_class(f"{subject}: {error.args[0].str()}") from error


@contextmanager
def translate_kafka_python_errors(subject: str) -> Iterator[None]:
    """Raise KafkaUnavailableError or KafkaRequestRejectedError for kafka-python's errors and OSError."""
    try:
        yield
    except KafkaPythonError as error:
        # A response's error has a name and a description; its str() would repeat the whole request.
        error_name = getattr(error, "message", "NO_ANSWER")
        raise translate_request_error(error_name, getattr(error, "description", str(error))) from error
    except OSError as error:
        raise KafkaUnavailableError(f"{subject}: {error}") from error
