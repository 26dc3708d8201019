from pathlib import Path
from typing import Any

import pytest
import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from fleetgauge_core.fleet import Access, Security
from fleetgauge_core.kafka import KafkaUnavailableError
from fleetgauge_pipelines.io.kafka_options import kafka_options


def access(**security: Any) -> Access:
    return Access("kafka:9093", Security.model_validate(security))


def test_a_listener_that_asks_for_nothing_gets_nothing() -> None:
    assert kafka_options(access()) == {
        "kafka.bootstrap.servers": "kafka:9093",
        "kafka.security.protocol": "PLAINTEXT",
    }


def test_a_password_is_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OF_THIS_TEST", 'a "b" \\c')
    sasl = {"mechanism": "SCRAM-SHA-512", "username": "us", "password": {"env": "OF_THIS_TEST"}}
    options = kafka_options(access(tls={}, sasl=sasl))
    assert options["kafka.security.protocol"] == "SASL_SSL"
    assert options["kafka.sasl.jaas.config"] == (
        "org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="us" password="a \\"b\\" \\\\c";'
    )


def test_a_locked_key_is_given_over_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OF_THIS_TEST", "opens it")
    ours = trustme.CA().issue_cert("fleetgauge")
    key = load_pem_private_key(ours.private_key_pem.bytes(), None)
    locked = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"opens it"))
    (tmp_path / "key").write_bytes(locked)
    ours.cert_chain_pems[0].write_to_path(tmp_path / "certificate")
    tls = {"certificate": str(tmp_path / "certificate"), "key": str(tmp_path / "key")}
    options = kafka_options(access(tls=tls | {"key_password": {"env": "OF_THIS_TEST"}}))
    unlocked = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    assert options["kafka.ssl.keystore.key"] == unlocked.decode()
    assert "kafka.ssl.key.password" not in options


def test_a_secret_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OF_THIS_TEST", raising=False)
    sasl = {"mechanism": "PLAIN", "username": "us", "password": {"env": "OF_THIS_TEST"}}
    with pytest.raises(KafkaUnavailableError, match="OF_THIS_TEST"):
        kafka_options(access(sasl=sasl))
