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

from fleetgauge_core.fleet import ClusterAccess, Security
from fleetgauge_core.kafka import KafkaUnavailableError
from fleetgauge_pipelines.io.kafka_options import build_kafka_options


def access(**security: Any) -> ClusterAccess:
    return ClusterAccess("kafka:9093", Security.model_validate(security))


def test_an_open_listener_needs_no_security_options() -> None:
    assert build_kafka_options(access()) == {
        "kafka.bootstrap.servers": "kafka:9093",
        "kafka.security.protocol": "PLAINTEXT",
        "kafka.allow.auto.create.topics": "false",
    }


def test_a_password_is_escaped_in_the_jaas_config(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_SECRET", 'a "b" \\c')
    sasl = {"mechanism": "SCRAM-SHA-512", "username": "us", "password": {"env": "TEST_SECRET"}}
    options = build_kafka_options(access(tls={}, sasl=sasl))
    assert options["kafka.security.protocol"] == "SASL_SSL"
    assert options["kafka.sasl.jaas.config"] == (
        "org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="us" password="a \\"b\\" \\\\c";'
    )


def test_an_encrypted_key_is_passed_on_decrypted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_SECRET", "opens it")
    certificate = trustme.CA().issue_cert("fleetgauge")
    key = load_pem_private_key(certificate.private_key_pem.bytes(), None)
    encrypted = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"opens it"))
    (tmp_path / "key").write_bytes(encrypted)
    certificate.cert_chain_pems[0].write_to_path(tmp_path / "certificate")
    tls = {"certificate": str(tmp_path / "certificate"), "key": str(tmp_path / "key")}
    options = build_kafka_options(access(tls=tls | {"key_password": {"env": "TEST_SECRET"}}))
    decrypted = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    assert options["kafka.ssl.keystore.key"] == decrypted.decode()
    assert "kafka.ssl.key.password" not in options


def test_a_missing_secret_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TEST_SECRET", raising=False)
    sasl = {"mechanism": "PLAIN", "username": "us", "password": {"env": "TEST_SECRET"}}
    with pytest.raises(KafkaUnavailableError, match="TEST_SECRET"):
        build_kafka_options(access(sasl=sasl))
