"""An agent that shows who it is in every way that there is, and what it says where that is not taken."""

import asyncio
import json
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from fleetgauge_core.contract import PROBE_MINUTE
from fleetgauge_core.fleet import (
    Access,
    Fleet,
    Security,
    load,
)
from fleetgauge_core.kafka import (
    Admin,
    KafkaUnavailableError,
    Silence,
    cold_answer,
    registered_brokers,
    tls_context,
)
from fleetgauge_local.layout import HOST
from fleetgauge_probes.connection.validate import validate
from tests.exposition import samples_of
from tests.kafka.agents import Agent, probed
from tests.kafka.secured import KEY_PASSWORD, PASSWORD, USER, Secured, secret_files, ways_in
from tests.kafka.secured import secured as running
from tests.waiting import wait_until
from tests.whole_topic import values_on

DEADLINE_S = 60
BROKER = (1,)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with running(tmp_path_factory.mktemp("secured")) as found:
        yield found


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    return secret_files(tmp_path / "secrets")


def ways_out(secured: Secured, secrets: Path) -> dict[str, tuple[str, dict[str, Any], str]]:
    """Listener, security and the reason of each way that is not taken."""
    tls = {"ca": str(secured.certificates.authority)}
    wrong = {"mechanism": "SCRAM-SHA-512", "username": USER, "password": {"file": str(secrets / "wrong")}}
    client = {
        "token_url": secured.tokens.url,
        "client_id": USER,
        "client_secret": {"file": str(secrets / "wrong")},
    }
    return {
        "wrong-password": ("SASLTLS", {"tls": tls, "sasl": wrong}, "authentication"),
        "wrong-plain": ("SASL", {"sasl": wrong | {"mechanism": "PLAIN"}}, "authentication"),
        "wrong-client": ("SASL", {"oauth": client}, "authentication"),
        "expired": ("EXPIRED", {"tls": tls}, "certificate_expired"),
        "other-name": ("OTHERNAME", {"tls": tls}, "certificate_of_another_name"),
        "stranger": ("STRANGER", {"tls": tls}, "certificate_untrusted"),
        "no-certificate": ("MTLS", {"tls": tls}, "our_certificate_refused"),
        "no-tls": ("TLS", {}, "wants_tls"),
        "too-much-tls": ("SASL", {"tls": tls}, "no_tls"),
    }


def fleet_of(
    secured: Secured, ways: Mapping[str, tuple[str, dict[str, Any]]], carried: dict[str, Any]
) -> Fleet:
    """A cluster for each way: each is the same, by another door."""
    suffix = uuid.uuid4().hex[:8]
    kinds = ("probe_minutes", "probe_pulse", "health_events")
    topics = {kind: {"name": f"{kind}-{suffix}", "partitions": 1, "retention_hours": 2} for kind in kinds}
    document = {
        "clusters": [
            {"id": name, "bootstrap": secured.at(listener), "security": security}
            for name, (listener, security) in ways.items()
        ],
        "telemetry": {"bootstrap": secured.at("SASLTLS"), "security": carried, "topics": topics},
    }
    return Fleet.model_validate(document)


def test_every_way_in_measures_and_every_way_out_has_its_reason(
    secured: Secured, secrets: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    inward, outward = ways_in(secured, secrets), ways_out(secured, secrets)
    turned_away = {name: (listener, security) for name, (listener, security, _) in outward.items()}
    fleet = fleet_of(secured, inward | turned_away, inward["scram-512"][1])
    assert fleet.telemetry is not None
    agent = Agent(fleet, fleet.telemetry, tmp_path / "spool")
    with agent.running():
        for name in inward:
            assert probed(fleet.telemetry, name, BROKER), name
        reasons = {(name, reason): 1.0 for name, (_, _, reason) in outward.items()}

        def unreachable() -> dict[tuple[str, ...], float]:
            return samples_of(agent.vitals.registry, "fleetgauge_agent_cluster_unreachable")

        wait_until(lambda: unreachable() == reasons, DEADLINE_S, "the reasons")
    assert agent.waiting == 0
    values = values_on(fleet.telemetry.access, fleet.telemetry.topics.probe_minutes.name)
    told = [PROBE_MINUTE.decode(value) for value in values]
    assert {one["cluster_id"] for one in told} == set(inward)
    assert not any(one["produce_failures"] or one["consume_failures"] for one in told)
    ends = samples_of(agent.vitals.registry, "fleetgauge_agent_certificate_expiry_timestamp_seconds")
    assert {cluster for _, cluster in ends} == set(inward) - {"scram-256"}
    words = "\n".join(record.getMessage() for record in caplog.records)
    assert not any(secret in words for secret in (PASSWORD, KEY_PASSWORD, "hunter2", "of-the-client"))


def test_a_check_names_what_is_wrong_and_how_to_mend_it(
    secured: Secured, secrets: Path, tmp_path: Path
) -> None:
    inward, outward = ways_in(secured, secrets), ways_out(secured, secrets)
    turned_away = {name: (listener, security) for name, (listener, security, _) in outward.items()}
    missing = {"mechanism": "PLAIN", "username": USER, "password": {"file": str(tmp_path / "absent")}}
    fleet = fleet_of(
        secured, inward | turned_away | {"absent": ("SASL", {"sasl": missing})}, inward["oauth"][1]
    )
    config = tmp_path / "fleet.yaml"
    config.write_text(yaml.safe_dump(fleet.model_dump(mode="json", exclude_none=True)), encoding="utf-8")
    assert load(config).clusters == fleet.clusters
    result = CliRunner().invoke(validate, [str(config), "--connect", "--json"])
    assert result.exit_code == 1
    found = {one["cluster"]: one["checks"] for one in json.loads(result.stdout)["clusters"]}
    for name in (*inward, "telemetry"):
        wrong = [one for one in found[name] if one["ok"] is False]
        # Each shows the one broker, whose probe topic has the replicas that one broker can have.
        assert wrong == [], name
    wrong_words = {
        "expired": "certificate has expired",
        "other-name": "for another name",
        "stranger": "not of an authority",
        "no-certificate": "does not take our certificate",
        "no-tls": "speaks TLS alone",
        "too-much-tls": "does not speak TLS",
        "absent": "No such file",
    }
    for name, words in wrong_words.items():
        (check,) = (one for one in found[name] if one["ok"] is False)
        assert words in check["found"], name
        assert check["mend"], name
    for name in ("wrong-password", "wrong-plain", "wrong-client"):
        (check,) = (one for one in found[name] if one["ok"] is False)
        assert check["check"] == "brokers"
        assert "`security`" in check["mend"]
    assert not any(secret in result.stdout for secret in ("hunter2", KEY_PASSWORD))


def test_secrets_and_certificates_are_replaced_while_the_agent_runs(
    secured: Secured, secrets: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    inward = ways_in(secured, secrets)
    fleet = fleet_of(secured, {name: inward[name] for name in ("mtls", "scram-512")}, inward["scram-512"][1])
    assert fleet.telemetry is not None
    agent = Agent(fleet, fleet.telemetry, tmp_path / "spool")

    def beginnings() -> Counter[str]:
        words = [record.getMessage() for record in caplog.records]
        return Counter(word.split(":")[0] for word in words if word.endswith("probing broker 1"))

    with agent.running():
        for name in ("mtls", "scram-512"):
            assert probed(fleet.telemetry, name, BROKER)
        secured.set_password("another one")
        try:
            (secrets / "password").write_text("another one\n", encoding="utf-8")
            secured.certificates.give_client()
            wait_until(lambda: beginnings() == {"mtls": 2, "scram-512": 2}, DEADLINE_S, "another beginning")
            for name in ("mtls", "scram-512"):
                assert probed(fleet.telemetry, name, BROKER)
        finally:
            secured.set_password(PASSWORD)
            (secrets / "password").write_text(PASSWORD, encoding="utf-8")
    assert agent.waiting == 0
    values = values_on(fleet.telemetry.access, fleet.telemetry.topics.probe_minutes.name)
    told = [PROBE_MINUTE.decode(value) for value in values]
    assert not any(one["produce_failures"] or one["consume_failures"] for one in told)


def test_who_is_not_believed_is_told_from_who_finds_nobody(secured: Secured, secrets: Path) -> None:
    wrong = ways_out(secured, secrets)["wrong-password"]
    with pytest.raises(KafkaUnavailableError) as refused:
        registered_brokers(Access(secured.at(wrong[0]), Security.model_validate(wrong[1])))
    assert refused.value.reason == "authentication"
    with pytest.raises(KafkaUnavailableError) as absent:
        registered_brokers(Access("127.0.0.1:1"), timeout_ms=500)
    assert absent.value.reason == "refused"


@pytest.mark.parametrize(
    "way", ["expired", "other-name", "stranger", "no-certificate", "no-tls", "too-much-tls"]
)
def test_a_cold_question_meets_the_same(secured: Secured, secrets: Path, way: str) -> None:
    listener, security, reason = ways_out(secured, secrets)[way]
    tls = tls_context(Access(secured.at(listener), Security.model_validate(security)))
    silence = asyncio.run(cold_answer(HOST, secured.ports[listener], DEADLINE_S, tls))
    assert isinstance(silence, Silence)
    assert silence.name.lower() == reason


def test_a_topic_is_seen_by_tokens_alone(secured: Secured, secrets: Path) -> None:
    listener, security = ways_in(secured, secrets)["oauth"]
    before = secured.tokens.given
    admin = Admin(Access(secured.at(listener), Security.model_validate(security)))
    admin.start()
    assert admin.brokers() == BROKER
    assert secured.tokens.given > before
    assert secured.tokens.asked_for[-1]["scope"] == ["kafka"]
