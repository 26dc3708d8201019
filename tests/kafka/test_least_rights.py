"""The agent with exactly the ACLs that `fleetgauge probe acls` prints, and with one of them less."""

import json
import logging
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner
from confluent_kafka.admin import AclOperation

from fleetgauge_core.contract import ProbeMinute, ProbePulse
from fleetgauge_core.detection import FleetHealth, HealthState, fold_pulse
from fleetgauge_core.fleet import Telemetry, load_fleet
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_local.layout import ClusterSpec
from fleetgauge_probes.agent.topic_plan import TOPIC
from fleetgauge_probes.connection.validate import validate
from tests.exposition import samples_of
from tests.kafka.acls import AclRight
from tests.kafka.agents import Agent, has_successful_probes, read_pulses
from tests.kafka.strict import find_broker_listener, grant, print_rights, revoke, run_strict_fleet
from tests.topic_values import read_values
from tests.waiting import wait_until

BROKERS = (1, 2, 3)
DEADLINE_S = 60
#: Without one of these, probes fail; without another, only changes of the topic do.
PROBING = (AclOperation.WRITE, AclOperation.READ)
_FAULTS = "fleetgauge_agent_own_faults"


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalFleet]:
    clusters = (ClusterSpec("strict"), ClusterSpec("telemetry", brokers=1))
    with run_strict_fleet(tmp_path_factory.mktemp("strict"), clusters) as fleet:
        for cluster, right in print_rights(fleet.fleet_file):
            grant(fleet, cluster, right)
        yield fleet


def load_telemetry(strict: LocalFleet) -> Telemetry:
    """Return the telemetry cluster as its super user reaches it."""
    telemetry = load_fleet(strict.fleet_file).telemetry
    assert telemetry is not None
    return telemetry.model_copy(update={"bootstrap": find_broker_listener(strict, "telemetry")})


def run_agent(strict: LocalFleet, folder: Path) -> Agent:
    fleet = load_fleet(strict.fleet_file)
    assert fleet.telemetry is not None
    return Agent(fleet, fleet.telemetry, folder / "spool")


def fold_new_pulses(telemetry: Telemetry, since: datetime) -> list[tuple[int | None, HealthState]]:
    """Return the broker and the state of each finding that pulses yield since then, and check the pulses."""
    health, transitions = FleetHealth(), []
    pulses = [pulse for pulse in read_pulses(telemetry, 3) if pulse.emitted_at >= since]
    for pulse in sorted(pulses, key=lambda pulse: pulse.emitted_at):
        assert [leg.failed for broker in pulse.brokers for leg in broker.legs] == [0] * 6
        health, findings = fold_pulse(health, pulse)
        transitions += [(finding.event.broker_id, finding.to_state) for finding in findings]
    return transitions


def read_minutes(telemetry: Telemetry, run_id: str) -> list[ProbeMinute]:
    values = read_values(telemetry.access, telemetry.topics.probe_minutes.name)
    return [record for record in map(ProbeMinute.decode, values) if record.run_id == run_id]


def has_agent_fault(pulse: ProbePulse, fault: str) -> bool:
    return any(leg.agent_fault == fault for broker in pulse.brokers for leg in broker.legs)


def test_an_agent_with_the_printed_permissions_measures_and_lacks_none(
    strict: LocalFleet, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    agent = run_agent(strict, tmp_path)
    with agent.running():
        assert has_successful_probes(load_telemetry(strict), "strict", BROKERS)
    assert agent.unsent_records == 0
    assert [record.getMessage() for record in caplog.records if "AUTHORIZATION" in record.getMessage()] == []
    result = CliRunner().invoke(validate, [str(strict.fleet_file), "--connect", "--json"])
    (checks,) = (
        cluster["checks"]
        for cluster in json.loads(result.stdout)["clusters"]
        if cluster["cluster"] == "strict"
    )
    assert next(check for check in checks if check["check"] == "rights")["ok"] is True


def test_a_permission_that_is_taken_away_is_no_outage_and_measuring_goes_on_when_it_is_back(
    strict: LocalFleet, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "fleetgauge")
    telemetry, agent, started_at = load_telemetry(strict), run_agent(strict, tmp_path), datetime.now(UTC)
    with agent.running():
        assert has_successful_probes(telemetry, "strict", BROKERS, started_at)
        since = datetime.now(UTC)
        for operation in PROBING:
            right = AclRight(operation, TOPIC)
            revoke(strict, "strict", right)
            revoked_at = datetime.now(UTC)
            assert any(
                has_agent_fault(pulse, "rights") and (pulse.emitted_at - revoked_at).total_seconds() > 20
                for pulse in read_pulses(telemetry, DEADLINE_S)
            )
            assert samples_of(agent.health.registry, _FAULTS) == {("strict", "rights"): 1}
            grant(strict, "strict", right)
            assert has_successful_probes(telemetry, "strict", BROKERS, datetime.now(UTC))
        transitions = fold_new_pulses(telemetry, since)
        wait_until(lambda: not samples_of(agent.health.registry, _FAULTS), DEADLINE_S, "the fault to end")
    assert set(transitions) <= {(None, HealthState.VANTAGE_ILL), (None, HealthState.HEALTHY)}
    assert transitions[0] == (None, HealthState.VANTAGE_ILL)
    minutes = read_minutes(telemetry, str(agent.run_id))
    assert [record.attempted - len(record.success_us) for record in minutes] == [0] * len(minutes)
    codes = {code for record in minutes for code in {**record.produce_failures, **record.consume_failures}}
    assert codes == {"TOPIC_AUTHORIZATION_FAILED"}
    log_records = [
        record for record in caplog.records if "the agent lacks a permission" in record.getMessage()
    ]
    assert [record.levelno for record in log_records] in (
        [logging.ERROR, logging.INFO],
        [logging.ERROR, logging.INFO] * 2,
    )


@pytest.mark.thorough
@pytest.mark.timeout(1800)
def test_an_agent_survives_the_loss_of_each_permission(strict: LocalFleet, tmp_path: Path) -> None:
    telemetry, agent, started_at = load_telemetry(strict), run_agent(strict, tmp_path), datetime.now(UTC)
    with agent.running():
        assert has_successful_probes(telemetry, "strict", BROKERS, started_at)
        since = datetime.now(UTC)
        for cluster, right in print_rights(strict.fleet_file):
            revoke(strict, cluster, right)
            let_pulses_pass(agent, 12)
            grant(strict, cluster, right)
            let_pulses_pass(agent, 6)
        assert has_successful_probes(telemetry, "strict", BROKERS, datetime.now(UTC))
        transitions = fold_new_pulses(telemetry, since)
    # Pulses that may not be delivered are missing; no broker is found for it.
    states = (HealthState.VANTAGE_ILL, HealthState.NO_DATA, HealthState.HEALTHY)
    assert set(transitions) <= {(None, state) for state in states}
    assert agent.unsent_records == 0
    minutes = read_minutes(telemetry, str(agent.run_id))
    assert [record.attempted - len(record.success_us) for record in minutes] == [0] * len(minutes)


def let_pulses_pass(agent: Agent, seconds: float) -> None:
    """Wait until the agent has emitted a pulse so many seconds after now, delivered or not."""
    until_s = time.time() + seconds

    def has_emitted() -> bool:
        emitted = samples_of(agent.health.registry, "fleetgauge_agent_pulse_timestamp_seconds")
        return emitted["strict",] > until_s

    wait_until(has_emitted, DEADLINE_S, "a pulse")
