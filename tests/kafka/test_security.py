"""An agent with every authentication mechanism, with valid credentials and with rejected ones."""

import asyncio
import json
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from fleetgauge_core.contract import PROBE_MINUTE
from fleetgauge_core.fleet import (
    ClusterAccess,
    Fleet,
    Security,
    load_fleet,
)
from fleetgauge_core.kafka import (
    BrokerAddress,
    ClusterAdmin,
    ClusterReader,
    ConnectionFailure,
    HeldConnections,
    KafkaUnavailableError,
    LoginSurvey,
    NameResolver,
    ProbeTimeouts,
    create_tls_context,
    held_connections,
    probe_endpoint,
    read_broker_registry,
    survey_logins,
)
from fleetgauge_core.metadata import ConnectionEventKind
from fleetgauge_core.runtime.steady_clock import read_wall_clock
from fleetgauge_local.layout import HOST
from fleetgauge_probes.connection.validate import validate
from tests.exposition import samples_of
from tests.kafka.agents import Agent, has_successful_probes
from tests.kafka.secured import (
    KEY_PASSWORD,
    PASSWORD,
    USER,
    SecuredCluster,
    accepted_credentials,
    write_secret_files,
)
from tests.kafka.secured import secured as run_secured_cluster
from tests.topic_values import read_values
from tests.waiting import let_pass, wait_until

DEADLINE_S = 60
BROKER = (1,)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredCluster]:
    with run_secured_cluster(tmp_path_factory.mktemp("secured")) as cluster:
        yield cluster


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    return write_secret_files(tmp_path / "secrets")


def rejected_credentials(
    secured: SecuredCluster, secrets: Path
) -> dict[str, tuple[str, dict[str, Any], str]]:
    """Return listener, security settings and expected reason of each rejected connection."""
    tls = {"ca": str(secured.certificates.authority)}
    wrong_password = {
        "mechanism": "SCRAM-SHA-512",
        "username": USER,
        "password": {"file": str(secrets / "wrong")},
    }
    wrong_client = {
        "token_url": secured.token_server.url,
        "client_id": USER,
        "client_secret": {"file": str(secrets / "wrong")},
    }
    return {
        "wrong-password": ("SASLTLS", {"tls": tls, "sasl": wrong_password}, "authentication"),
        "wrong-plain": ("SASL", {"sasl": wrong_password | {"mechanism": "PLAIN"}}, "authentication"),
        "wrong-client": ("SASL", {"oauth": wrong_client}, "authentication"),
        "expired": ("EXPIRED", {"tls": tls}, "certificate_expired"),
        "other-name": ("OTHERNAME", {"tls": tls}, "certificate_of_another_name"),
        "stranger": ("STRANGER", {"tls": tls}, "certificate_untrusted"),
        "no-certificate": ("MTLS", {"tls": tls}, "our_certificate_refused"),
        "no-tls": ("TLS", {}, "wants_tls"),
        "too-much-tls": ("SASL", {"tls": tls}, "no_tls"),
    }


def build_fleet(
    secured: SecuredCluster,
    connections: Mapping[str, tuple[str, dict[str, Any]]],
    telemetry_security: dict[str, Any],
) -> Fleet:
    """Return a fleet with one cluster entry per connection; all are the same cluster."""
    suffix = uuid.uuid4().hex[:8]
    kinds = ("probe_minutes", "probe_pulse", "health_events")
    topics = {kind: {"name": f"{kind}-{suffix}", "partitions": 1, "retention_hours": 2} for kind in kinds}
    document = {
        "clusters": [
            {"id": name, "bootstrap": secured.bootstrap(listener), "security": security}
            for name, (listener, security) in connections.items()
        ],
        "telemetry": {
            "bootstrap": secured.bootstrap("SASLTLS"),
            "security": telemetry_security,
            "topics": topics,
        },
    }
    return Fleet.model_validate(document)


def test_accepted_credentials_observe_a_cluster_and_hold_a_connection(
    secured: SecuredCluster, secrets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_connections, "_REPLACE_AFTER_S", 1.0)
    accepted = accepted_credentials(secured, secrets)
    fleet = build_fleet(secured, accepted, accepted["scram-512"][1])
    for name, (listener, _) in accepted.items():
        access = fleet.cluster(name).access
        reader = ClusterReader(access, read_wall_clock)
        observation = reader.read()
        reader.close()
        assert (list(observation.brokers or ()), observation.failures) == ([1], {}), name
        connections = HeldConnections(access, read_wall_clock, lambda: None)
        connections.start()
        try:
            connections.hold({1: BrokerAddress(HOST, secured.ports[listener])})
            # It is replaced meanwhile: a listener with SASL answers once without a login.
            let_pass(time.monotonic() + 3)
            assert [event.kind for event in connections.take_events()] == [ConnectionEventKind.OPENED], name
        finally:
            connections.stop()


def test_accepted_credentials_are_measured_and_rejected_ones_have_a_reason(
    secured: SecuredCluster, secrets: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    accepted, rejected = (
        accepted_credentials(secured, secrets),
        rejected_credentials(secured, secrets),
    )
    rejected_connections = {name: (listener, security) for name, (listener, security, _) in rejected.items()}
    fleet = build_fleet(secured, accepted | rejected_connections, accepted["scram-512"][1])
    assert fleet.telemetry is not None
    agent = Agent(fleet, fleet.telemetry, tmp_path / "spool")
    with agent.running():
        for name in accepted:
            assert has_successful_probes(fleet.telemetry, name, BROKER), name
        reasons = {(name, reason): 1.0 for name, (_, _, reason) in rejected.items()}

        def read_unreachable_reasons() -> dict[tuple[str, ...], float]:
            return samples_of(agent.health.registry, "fleetgauge_agent_cluster_unreachable")

        wait_until(lambda: read_unreachable_reasons() == reasons, DEADLINE_S, "the reasons")
    assert agent.unsent_records == 0
    values = read_values(fleet.telemetry.access, fleet.telemetry.topics.probe_minutes.name)
    records = [PROBE_MINUTE.decode(value) for value in values]
    assert {record["cluster_id"] for record in records} == set(accepted)
    assert not any(record["produce_failures"] or record["consume_failures"] for record in records)
    expiries = samples_of(agent.health.registry, "fleetgauge_agent_certificate_expiry_timestamp_seconds")
    assert {cluster for _, cluster in expiries} == set(accepted) - {"scram-256"}
    log = "\n".join(record.getMessage() for record in caplog.records)
    assert not any(secret in log for secret in (PASSWORD, KEY_PASSWORD, "hunter2", "of-the-client"))


def test_a_connection_check_names_the_problem_and_the_remedy(
    secured: SecuredCluster, secrets: Path, tmp_path: Path
) -> None:
    accepted, rejected = (
        accepted_credentials(secured, secrets),
        rejected_credentials(secured, secrets),
    )
    rejected_connections = {name: (listener, security) for name, (listener, security, _) in rejected.items()}
    absent_password = {"mechanism": "PLAIN", "username": USER, "password": {"file": str(tmp_path / "absent")}}
    fleet = build_fleet(
        secured,
        accepted | rejected_connections | {"absent": ("SASL", {"sasl": absent_password})},
        accepted["oauth"][1],
    )
    config = tmp_path / "fleet.yaml"
    config.write_text(yaml.safe_dump(fleet.model_dump(mode="json", exclude_none=True)), encoding="utf-8")
    assert load_fleet(config).clusters == fleet.clusters
    result = CliRunner().invoke(validate, [str(config), "--connect", "--json"])
    assert result.exit_code == 1
    checks_by_cluster = {
        cluster["cluster"]: cluster["checks"] for cluster in json.loads(result.stdout)["clusters"]
    }
    for name in (*accepted, "telemetry"):
        # A replication factor of 1 is as expected, because the cluster has only one broker.
        failed = [check for check in checks_by_cluster[name] if check["ok"] is False]
        assert failed == [], name
    expected_text = {
        "expired": "certificate has expired",
        "other-name": "for another name",
        "stranger": "not of an authority",
        "no-certificate": "does not take our certificate",
        "no-tls": "speaks TLS alone",
        "too-much-tls": "does not speak TLS",
        "absent": "No such file",
    }
    for name, text in expected_text.items():
        (check,) = (check for check in checks_by_cluster[name] if check["ok"] is False)
        assert text in check["found"], name
        assert check["mend"], name
    for name in ("wrong-password", "wrong-plain", "wrong-client"):
        (check,) = (check for check in checks_by_cluster[name] if check["ok"] is False)
        assert check["check"] == "brokers"
        assert "`security`" in check["mend"]
    assert not any(secret in result.stdout for secret in ("hunter2", KEY_PASSWORD))


def test_secrets_and_certificates_are_replaced_while_the_agent_runs(
    secured: SecuredCluster, secrets: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    accepted = accepted_credentials(secured, secrets)
    fleet = build_fleet(
        secured, {name: accepted[name] for name in ("mtls", "scram-512")}, accepted["scram-512"][1]
    )
    assert fleet.telemetry is not None
    agent = Agent(fleet, fleet.telemetry, tmp_path / "spool")

    def count_probe_starts() -> Counter[str]:
        messages = [record.getMessage() for record in caplog.records]
        return Counter(message.split(":")[0] for message in messages if message.endswith("probing broker 1"))

    with agent.running():
        for name in ("mtls", "scram-512"):
            assert has_successful_probes(fleet.telemetry, name, BROKER)
        secured.set_scram_password("another one")
        try:
            (secrets / "password").write_text("another one\n", encoding="utf-8")
            secured.certificates.issue_client_certificate()
            wait_until(
                lambda: count_probe_starts() == {"mtls": 2, "scram-512": 2},
                DEADLINE_S,
                "the restart of the probes",
            )
            for name in ("mtls", "scram-512"):
                assert has_successful_probes(fleet.telemetry, name, BROKER)
        finally:
            secured.set_scram_password(PASSWORD)
            (secrets / "password").write_text(PASSWORD, encoding="utf-8")
    assert agent.unsent_records == 0
    values = read_values(fleet.telemetry.access, fleet.telemetry.topics.probe_minutes.name)
    records = [PROBE_MINUTE.decode(value) for value in values]
    assert not any(record["produce_failures"] or record["consume_failures"] for record in records)


def test_failed_authentication_is_distinguished_from_an_unreachable_cluster(
    secured: SecuredCluster, secrets: Path
) -> None:
    listener, security, _ = rejected_credentials(secured, secrets)["wrong-password"]
    with pytest.raises(KafkaUnavailableError) as unauthenticated:
        read_broker_registry(ClusterAccess(secured.bootstrap(listener), Security.model_validate(security)))
    assert unauthenticated.value.reason == "authentication"
    with pytest.raises(KafkaUnavailableError) as unreachable:
        read_broker_registry(ClusterAccess("127.0.0.1:1"), timeout_ms=500)
    assert unreachable.value.reason == "refused"


def test_a_survey_tells_an_invalid_login_from_a_broker_that_does_not_answer(
    secured: SecuredCluster, secrets: Path
) -> None:
    listener, security = accepted_credentials(secured, secrets)["scram-256"]
    accepted = ClusterAccess(secured.bootstrap(listener), Security.model_validate(security))
    brokers = read_broker_registry(accepted).brokers
    assert survey_logins(accepted, brokers) == LoginSurvey(accepted=frozenset({1}))
    wrong_password = security["sasl"] | {"password": {"file": str(secrets / "wrong")}}
    rejected = ClusterAccess(accepted.bootstrap, Security.model_validate(security | {"sasl": wrong_password}))
    silent = {2: replace(brokers[1], broker_id=2, port=1)}
    survey = survey_logins(rejected, {**brokers, **silent})
    assert survey == LoginSurvey(refused=frozenset({1}))
    assert survey.is_invalid
    assert survey_logins(rejected, silent) == LoginSurvey()


@pytest.mark.parametrize(
    "name", ["expired", "other-name", "stranger", "no-certificate", "no-tls", "too-much-tls"]
)
def test_a_cold_connection_fails_with_the_same_reason(
    secured: SecuredCluster, secrets: Path, name: str
) -> None:
    listener, security, reason = rejected_credentials(secured, secrets)[name]
    tls = create_tls_context(ClusterAccess(secured.bootstrap(listener), Security.model_validate(security)))
    timeouts = ProbeTimeouts(DEADLINE_S, DEADLINE_S)
    port = secured.ports[listener]
    failure = asyncio.run(probe_endpoint(HOST, port, tls, timeouts, NameResolver()))
    assert isinstance(failure, ConnectionFailure)
    assert failure.value == reason


def test_an_admin_client_authenticates_with_an_oauth_token(secured: SecuredCluster, secrets: Path) -> None:
    listener, security = accepted_credentials(secured, secrets)["oauth"]
    issued_before = secured.token_server.issued
    admin = ClusterAdmin(ClusterAccess(secured.bootstrap(listener), Security.model_validate(security)))
    admin.start()
    assert admin.describe_topic("absent") is None
    assert secured.token_server.issued > issued_before
    assert secured.token_server.requests[-1]["scope"] == ["kafka"]
