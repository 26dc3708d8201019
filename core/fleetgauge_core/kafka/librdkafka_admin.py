"""librdkafka's admin client, and waiting for its futures."""

from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import TypeVar

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from fleetgauge_core.fleet import ClusterAccess
from fleetgauge_core.kafka import client_settings
from fleetgauge_core.kafka.credentials import build_librdkafka_settings, ensure_credentials_readable
from fleetgauge_core.kafka.errors import KafkaUnavailableError, translate_librdkafka_errors
from fleetgauge_core.kafka.own_resources import explain_creation_errors

T = TypeVar("T")

#: librdkafka's own time-out comes first, because its error names the cause.
_GRACE_S = 1


def create_admin_client(access: ClusterAccess, client_id: str) -> AdminClient:
    """Return a client.

    Raises: KafkaUnavailableError if a secret or a certificate cannot be read, or the host has no resources.
    """
    ensure_credentials_readable(access)
    settings = client_settings.CONNECTION | build_librdkafka_settings(access) | {"client.id": client_id}
    with explain_creation_errors(access):
        return AdminClient(settings)


def wait_for_future(future: "Future[T]", access: ClusterAccess, timeout_s: float) -> T:
    """Return a future's result.

    Raises: KafkaException for an error of the request; KafkaUnavailableError if it does not end in time.
    """
    try:
        return future.result(timeout_s + _GRACE_S)
    except (TimeoutError, FutureTimeoutError) as error:
        raise KafkaUnavailableError(f"{access.bootstrap}: no answer within {timeout_s:g} s") from error


def wait_for_result(
    future: "Future[T]", access: ClusterAccess, timeout_s: float, *absent_codes: int
) -> T | None:
    """Return a future's result, or None if it fails with one of ``absent_codes``.

    Raises: KafkaUnavailableError for every other error, or if it does not end in time.
    """
    with translate_librdkafka_errors(access.bootstrap):
        try:
            return wait_for_future(future, access, timeout_s)
        except KafkaException as error:
            if error.args[0].code() in absent_codes:
                return None
            raise
