"""Clients of a host that is out of open files or threads."""

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from fleetgauge_core.fleet import ClusterAccess, Telemetry
from fleetgauge_core.kafka import (
    ClusterAdmin,
    KafkaUnavailableError,
    TopicReader,
    authentication_check,
    librdkafka_admin,
    read_broker_registry,
    survey_logins,
    topic_reader,
)
from fleetgauge_core.kafka.credentials import ensure_credentials_readable
from fleetgauge_core.kafka.kafka_python_admin import connected_admin_client
from fleetgauge_core.metadata import BrokerRegistration
from tests.unit.core.kafka.exhausted_host import forbid_threads, no_file_left

ACCESS = ClusterAccess("127.0.0.1:1")
BROKERS = {1: BrokerRegistration(1, "127.0.0.1", 1, None, fenced=False)}


def fail_to_create(code: int) -> Any:
    def create(*_: object) -> None:
        raise KafkaException(KafkaError(code, "Failed to create thread"))

    return create


def test_the_registry_is_not_read_without_files() -> None:
    with no_file_left(), pytest.raises(KafkaUnavailableError) as raised:
        read_broker_registry(ACCESS)
    assert raised.value.reason == "own_resources"


def test_a_secret_that_cannot_be_read_without_files_is_not_at_fault(tmp_path: Path) -> None:
    secret = tmp_path / "password"
    secret.write_text("secret")
    security = {"sasl": {"mechanism": "PLAIN", "username": "agent", "password": {"file": str(secret)}}}
    access = Telemetry.model_validate({"bootstrap": "127.0.0.1:1", "security": security}).access
    ensure_credentials_readable(access)
    with no_file_left(), pytest.raises(KafkaUnavailableError) as raised:
        ensure_credentials_readable(access)
    assert raised.value.reason == "own_resources"


def test_no_client_is_created_without_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    forbid_threads(monkeypatch)
    with pytest.raises(KafkaUnavailableError, match="new thread") as raised:
        survey_logins(ACCESS, BROKERS)
    assert raised.value.reason == "own_resources"
    with (
        pytest.raises(KafkaUnavailableError, match="new thread") as raised,
        connected_admin_client(ACCESS, "client", 100, 100),
    ):
        pass
    assert raised.value.reason == "own_resources"


@pytest.mark.parametrize(
    ("code", "reason"), [(KafkaError._CRIT_SYS_RESOURCE, "own_resources"), (KafkaError._FAIL, "no_answer")]
)
def test_a_client_that_librdkafka_cannot_create_is_no_defect(
    code: int, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (librdkafka_admin, authentication_check):
        monkeypatch.setattr(module, "AdminClient", fail_to_create(code))
    monkeypatch.setattr(topic_reader, "Consumer", fail_to_create(code))
    clients = (
        ClusterAdmin(ACCESS).start,
        TopicReader(ACCESS, "records", "client").start,
        lambda: survey_logins(ACCESS, BROKERS),
    )
    for create in clients:
        with pytest.raises(KafkaUnavailableError, match="Failed to create thread") as raised:
            create()
        assert raised.value.reason == reason
