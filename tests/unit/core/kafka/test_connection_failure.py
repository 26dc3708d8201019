import pytest

from fleetgauge_core.kafka import ConnectionFailure


@pytest.mark.parametrize("failure", list(ConnectionFailure))
def test_every_failure_has_a_description(failure: ConnectionFailure) -> None:
    assert failure.description


def test_the_stored_codes_do_not_change() -> None:
    assert {failure.value for failure in ConnectionFailure} == {
        "no_name",
        "refused",
        "timed_out",
        "no_way",
        "mute",
        "not_kafka",
        "wants_tls",
        "no_tls",
        "certificate_expired",
        "certificate_of_another_name",
        "certificate_untrusted",
        "our_certificate_refused",
    }
