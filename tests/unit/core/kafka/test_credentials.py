import ssl
from pathlib import Path
from typing import Any

import pytest
import trustme

from fleetgauge_core.fleet import ClusterAccess, Security
from fleetgauge_core.kafka import KafkaUnavailableError, create_tls_context, ensure_credentials_readable
from fleetgauge_core.kafka.credentials import build_kafka_python_arguments, build_librdkafka_settings


@pytest.fixture
def tls(tmp_path: Path) -> dict[str, str]:
    """Paths of a certificate authority, and of a client certificate with its key."""
    authority = trustme.CA()
    client_certificate = authority.issue_cert("fleetgauge")
    files = {name: tmp_path / f"{name}.pem" for name in ("ca", "certificate", "key")}
    authority.cert_pem.write_to_path(files["ca"])
    client_certificate.cert_chain_pems[0].write_to_path(files["certificate"])
    client_certificate.private_key_pem.write_to_path(files["key"])
    return {name: str(path) for name, path in files.items()}


def access(**security: Any) -> ClusterAccess:
    return ClusterAccess("kafka:9093", Security.model_validate(security))


def sasl(mechanism: str, password: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setenv("KAFKA_PASSWORD", password)
    return {"mechanism": mechanism, "username": "client", "password": {"env": "KAFKA_PASSWORD"}}


def test_a_plaintext_listener_needs_no_credentials() -> None:
    assert build_librdkafka_settings(access()) == {
        "bootstrap.servers": "kafka:9093",
        "security.protocol": "PLAINTEXT",
    }
    assert build_kafka_python_arguments(access()) == {"security_protocol": "PLAINTEXT", "ssl_context": None}
    assert create_tls_context(access()) is None


def test_tls_verifies_the_host_name_and_trusts_the_system_authorities_unless_one_is_given(
    tls: dict[str, str],
) -> None:
    default_context = create_tls_context(access(tls={}))
    own_context = create_tls_context(access(tls={"ca": tls["ca"]}))
    assert default_context is not None
    assert own_context is not None
    assert default_context.check_hostname
    assert default_context.verify_mode is ssl.CERT_REQUIRED
    assert len(own_context.get_ca_certs()) == 1
    assert own_context.get_ca_certs()[0]["subject"]


def test_each_client_gets_the_password_in_its_own_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    sasl_access = access(tls={}, sasl=sasl("SCRAM-SHA-512", 'a "b" \\c', monkeypatch))
    assert build_librdkafka_settings(sasl_access)["sasl.password"] == 'a "b" \\c'
    assert build_kafka_python_arguments(sasl_access)["sasl_plain_password"] == 'a "b" \\c'
    assert build_librdkafka_settings(sasl_access)["security.protocol"] == "SASL_SSL"


def test_a_client_certificate_is_used(tls: dict[str, str]) -> None:
    tls_access = access(tls=tls)
    ensure_credentials_readable(tls_access)
    assert build_librdkafka_settings(tls_access)["ssl.key.location"] == tls["key"]


@pytest.mark.parametrize("broken", ["ca", "certificate", "key"])
@pytest.mark.parametrize("content", [None, "", "not PEM"], ids=["absent", "empty", "not PEM"])
def test_an_invalid_certificate_file_is_named_in_a_message_of_one_line(
    tls: dict[str, str], broken: str, content: str | None
) -> None:
    Path(tls[broken]).unlink()
    if content is not None:
        Path(tls[broken]).write_text(content, encoding="utf-8")
    with pytest.raises(KafkaUnavailableError) as raised:
        ensure_credentials_readable(access(tls=tls))
    assert tls[broken] in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_missing_secret_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    sasl_access = access(sasl=sasl("PLAIN", "x", monkeypatch))
    monkeypatch.delenv("KAFKA_PASSWORD")
    for build_settings in (build_librdkafka_settings, build_kafka_python_arguments):
        with pytest.raises(KafkaUnavailableError, match=r"kafka:9093: .*KAFKA_PASSWORD"):
            build_settings(sasl_access)
