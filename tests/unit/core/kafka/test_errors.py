import pytest
from confluent_kafka import KafkaError, KafkaException
from kafka.errors import GroupAuthorizationFailedError, KafkaTimeoutError

from fleetgauge_core.kafka.errors import (
    AUTHENTICATION_FAILED,
    KafkaRequestRejectedError,
    KafkaSecurityError,
    KafkaUnavailableError,
    error_code,
    explain_telemetry_errors,
    translate_kafka_python_errors,
    translate_librdkafka_errors,
    translate_request_error,
)


@pytest.mark.parametrize(
    ("error_name", "error_class"),
    [
        ("CLUSTER_AUTHORIZATION_FAILED", KafkaRequestRejectedError),
        ("POLICY_VIOLATION", KafkaRequestRejectedError),
        ("NOT_CONTROLLER", KafkaUnavailableError),
        ("REQUEST_TIMED_OUT", KafkaUnavailableError),
    ],
)
def test_only_an_error_that_a_retry_cannot_remove_is_a_rejection(
    error_name: str, error_class: type[KafkaUnavailableError]
) -> None:
    error = translate_request_error(error_name, "the message")
    assert type(error) is error_class
    assert (str(error), error.reason) == (f"{error_name}: the message", "no_answer")


def test_an_error_code_has_no_leading_underscore() -> None:
    assert error_code(KafkaError(KafkaError._MSG_TIMED_OUT)) == "MSG_TIMED_OUT"
    assert error_code(KafkaError(KafkaError.NOT_LEADER_FOR_PARTITION)) == "NOT_LEADER_FOR_PARTITION"


def test_an_error_of_librdkafka_names_its_subject() -> None:
    with (
        pytest.raises(KafkaUnavailableError, match=r"^orders:9092: "),
        translate_librdkafka_errors("orders:9092"),
    ):
        raise KafkaException(KafkaError(KafkaError._TRANSPORT))


def test_a_response_error_of_kafka_python_is_translated_by_its_name() -> None:
    with (
        pytest.raises(KafkaRequestRejectedError, match=r"^GROUP_AUTHORIZATION_FAILED: "),
        translate_kafka_python_errors("orders:9092"),
    ):
        raise GroupAuthorizationFailedError("the whole request")


@pytest.mark.parametrize("error", [KafkaTimeoutError("no node"), OSError("no route")])
def test_a_failed_connection_of_kafka_python_is_not_a_rejection(error: Exception) -> None:
    with pytest.raises(KafkaUnavailableError) as raised, translate_kafka_python_errors("orders:9092"):
        raise error
    assert type(raised.value) is KafkaUnavailableError


def test_an_error_of_the_telemetry_cluster_says_so_and_keeps_its_class_and_reason() -> None:
    with (
        pytest.raises(KafkaSecurityError, match="cannot reach the telemetry cluster: t:9092") as raised,
        explain_telemetry_errors(),
    ):
        raise KafkaSecurityError("t:9092: bad password", AUTHENTICATION_FAILED)
    assert raised.value.reason == AUTHENTICATION_FAILED
