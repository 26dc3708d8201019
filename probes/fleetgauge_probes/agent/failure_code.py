"""Classification of a failed probe by a single failure code."""

from fleetgauge_core.kafka import AUTHENTICATION_FAILED, ConnectionFailure

#: The code that librdkafka reports for every probe whose broker it could not exchange requests with.
_TIMED_OUT = "MSG_TIMED_OUT"


def classify_failure(
    code: str, connection_failure: ConnectionFailure | None, unreachable_reason: str | None, throttled: bool
) -> str:
    """Return the producer's code, or a more specific cause of a time-out if one is known.

    ``connection_failure`` is the result of the last cold connection to the broker, ``unreachable_reason``
    why the cluster did not list its brokers when last asked, and ``throttled`` whether a quota delayed the
    probe.
    """
    if code != _TIMED_OUT:
        return code
    if connection_failure and connection_failure.is_security_failure:
        return connection_failure.value.upper()
    if unreachable_reason == AUTHENTICATION_FAILED:
        return AUTHENTICATION_FAILED.upper()
    return "THROTTLED" if throttled else code
