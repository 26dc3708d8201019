import pytest

from fleetgauge_core.kafka import ConnectionFailure
from fleetgauge_probes.agent.failure_code import classify_failure


@pytest.mark.parametrize(
    ("code", "connection_failure", "unreachable_reason", "expected"),
    [
        ("MSG_TIMED_OUT", None, None, "MSG_TIMED_OUT"),
        ("MSG_TIMED_OUT", ConnectionFailure.NO_RESPONSE, None, "MSG_TIMED_OUT"),
        ("MSG_TIMED_OUT", ConnectionFailure.CERTIFICATE_EXPIRED, None, "CERTIFICATE_EXPIRED"),
        ("MSG_TIMED_OUT", ConnectionFailure.CERTIFICATE_UNTRUSTED, "authentication", "CERTIFICATE_UNTRUSTED"),
        (
            "MSG_TIMED_OUT",
            ConnectionFailure.CERTIFICATE_HOSTNAME_MISMATCH,
            None,
            "CERTIFICATE_OF_ANOTHER_NAME",
        ),
        ("MSG_TIMED_OUT", None, "authentication", "AUTHENTICATION"),
        ("MSG_TIMED_OUT", None, "no_answer", "MSG_TIMED_OUT"),
        (
            "NOT_ENOUGH_REPLICAS",
            ConnectionFailure.CERTIFICATE_EXPIRED,
            "authentication",
            "NOT_ENOUGH_REPLICAS",
        ),
    ],
)
def test_a_time_out_is_classified_by_a_security_failure(
    code: str, connection_failure: ConnectionFailure | None, unreachable_reason: str | None, expected: str
) -> None:
    assert classify_failure(code, connection_failure, unreachable_reason, throttled=False) == expected


def test_a_time_out_under_throttling_is_classified_unless_security_explains_it() -> None:
    assert classify_failure("MSG_TIMED_OUT", None, None, throttled=True) == "THROTTLED"
    assert classify_failure("NOT_ENOUGH_REPLICAS", None, None, throttled=True) == "NOT_ENOUGH_REPLICAS"
    no_tls = ConnectionFailure.TLS_NOT_SUPPORTED
    assert classify_failure("MSG_TIMED_OUT", no_tls, None, throttled=True) == "NO_TLS"
    assert classify_failure("MSG_TIMED_OUT", None, "authentication", throttled=True) == "AUTHENTICATION"
