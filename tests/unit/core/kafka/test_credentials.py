import ssl
from pathlib import Path
from typing import Any

import pytest
import trustme

from fleetgauge_core.fleet import Access, Security
from fleetgauge_core.kafka import KafkaUnavailableError, ensure_usable, tls_context
from fleetgauge_core.kafka.credentials import for_kafka_python, for_librdkafka


@pytest.fixture
def tls(tmp_path: Path) -> dict[str, str]:
    """An authority, and a certificate of ours with its key."""
    authority = trustme.CA()
    ours = authority.issue_cert("fleetgauge")
    files = {name: tmp_path / f"{name}.pem" for name in ("ca", "certificate", "key")}
    authority.cert_pem.write_to_path(files["ca"])
    ours.cert_chain_pems[0].write_to_path(files["certificate"])
    ours.private_key_pem.write_to_path(files["key"])
    return {name: str(file) for name, file in files.items()}


def access(**security: Any) -> Access:
    return Access("kafka:9093", Security.model_validate(security))


def sasl(mechanism: str, password: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setenv("OF_THIS_TEST", password)
    return {"mechanism": mechanism, "username": "us", "password": {"env": "OF_THIS_TEST"}}


def test_a_listener_that_asks_for_nothing_gets_nothing() -> None:
    assert for_librdkafka(access()) == {"bootstrap.servers": "kafka:9093", "security.protocol": "PLAINTEXT"}
    assert for_kafka_python(access()) == {"security_protocol": "PLAINTEXT", "ssl_context": None}
    assert tls_context(access()) is None


def test_tls_checks_the_name_and_trusts_this_machine_unless_told_otherwise(tls: dict[str, str]) -> None:
    default, own = tls_context(access(tls={})), tls_context(access(tls={"ca": tls["ca"]}))
    assert default is not None
    assert own is not None
    assert default.check_hostname
    assert default.verify_mode is ssl.CERT_REQUIRED
    assert [one["subject"] for one in own.get_ca_certs()] != []
    assert len(own.get_ca_certs()) == 1


def test_every_client_gets_the_password_in_its_own_words(monkeypatch: pytest.MonkeyPatch) -> None:
    said = access(tls={}, sasl=sasl("SCRAM-SHA-512", 'a "b" \\c', monkeypatch))
    assert for_librdkafka(said)["sasl.password"] == 'a "b" \\c'
    assert for_kafka_python(said)["sasl_plain_password"] == 'a "b" \\c'
    assert for_librdkafka(said)["security.protocol"] == "SASL_SSL"


def test_a_certificate_of_ours_is_shown_by_every_client(tls: dict[str, str]) -> None:
    said = access(tls=tls)
    ensure_usable(said)
    assert for_librdkafka(said)["ssl.key.location"] == tls["key"]


@pytest.mark.parametrize("broken", ["ca", "certificate", "key"])
@pytest.mark.parametrize("content", [None, "", "not PEM"], ids=["absent", "empty", "something else"])
def test_a_file_that_does_not_hold_what_it_should_is_refused_in_one_line(
    tls: dict[str, str], broken: str, content: str | None
) -> None:
    Path(tls[broken]).unlink()
    if content is not None:
        Path(tls[broken]).write_text(content, encoding="utf-8")
    with pytest.raises(KafkaUnavailableError) as refused:
        ensure_usable(access(tls=tls))
    assert tls[broken] in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_key_of_another_certificate_is_refused(tls: dict[str, str]) -> None:
    trustme.CA().issue_cert("fleetgauge").private_key_pem.write_to_path(tls["key"])
    with pytest.raises(KafkaUnavailableError, match="KEY_VALUES_MISMATCH"):
        ensure_usable(access(tls=tls))


def test_a_secret_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    said = access(sasl=sasl("PLAIN", "x", monkeypatch))
    monkeypatch.delenv("OF_THIS_TEST")
    for words in (for_librdkafka, for_kafka_python):
        with pytest.raises(KafkaUnavailableError, match=r"kafka:9093: .*OF_THIS_TEST"):
            words(said)
