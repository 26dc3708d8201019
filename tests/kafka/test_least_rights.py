"""The agent with exactly the rights that `fleetgauge probe acls` prints, on brokers that ask for them."""

import json
import shlex
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner
from confluent_kafka.admin import AclOperation

from fleetgauge_core.fleet import load
from fleetgauge_local import properties
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_local.folder import Folder, Plan, read
from fleetgauge_local.layout import ClusterSpec
from fleetgauge_probes.cli import probe
from fleetgauge_probes.connection.validate import validate
from tests.kafka.acls import rule
from tests.kafka.agents import Agent, probed
from tests.kafka.broker_classes import add_class

BROKERS = (1, 2, 3)
STRICT = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:INTERNAL;User:CONTROLLER",
}


@pytest.fixture
def strict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalFleet]:
    """Clients are User:CLIENT, who may do nothing that nobody has granted; brokers may do everything."""
    builder = add_class("ByListener", tmp_path / "classes", monkeypatch)
    for key, value in (STRICT | {"principal.builder.class": builder}).items():
        monkeypatch.setitem(properties._BEHAVIOUR, key, value)
    clusters = (ClusterSpec("strict"), ClusterSpec("telemetry", brokers=1))
    with LocalFleet(tmp_path / "fleet", clusters) as fleet:
        yield fleet


def as_a_broker(local: LocalFleet, cluster: str) -> str:
    """The listener of the brokers themselves, where everybody is one."""
    plan = read(Folder(local.fleet_file.parent).plan, Plan)
    assert plan is not None
    return f"127.0.0.1:{plan.layout.of(cluster)[0].internal_port}"


def grant(bootstrap: str, command: str) -> None:
    """What kafka-acls.sh would do with these words."""
    words = shlex.split(command)
    said = list(pairwise(words))
    (principal,) = (after for word, after in said if word == "--allow-principal")
    topic = next((after for word, after in said if word == "--topic"), None)
    names = {one.name.replace("_", "").lower(): one for one in AclOperation}
    for operation in (after for word, after in said if word == "--operation"):
        rule(bootstrap, topic, names[operation.lower()], principal=principal)


def commands(config: Path) -> list[tuple[str, str]]:
    """Cluster and command of each grant, as printed."""
    given = ["acls", "--config", str(config), "--principal", "User:CLIENT"]
    lines = CliRunner().invoke(probe, given).stdout.splitlines()
    told = json.loads(CliRunner().invoke(probe, [*given, "--json"]).stdout)["grants"]
    return [(one["cluster"], line) for one, line in zip(told, lines, strict=True)]


def test_an_agent_with_the_rights_that_are_printed_measures_and_misses_none(
    strict: LocalFleet, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = strict.fleet_file
    for cluster, command in commands(config):
        grant(as_a_broker(strict, cluster), command)
    fleet = load(config)
    assert fleet.telemetry is not None
    agent = Agent(fleet, fleet.telemetry, tmp_path / "spool")
    with agent.running():
        reading = fleet.telemetry.model_copy(update={"bootstrap": as_a_broker(strict, "telemetry")})
        assert probed(reading, "strict", BROKERS)
    assert agent.waiting == 0
    assert [one.getMessage() for one in caplog.records if "AUTHORIZATION" in one.getMessage()] == []
    result = CliRunner().invoke(validate, [str(config), "--connect", "--json"])
    (checks,) = (one["checks"] for one in json.loads(result.stdout)["clusters"] if one["cluster"] == "strict")
    assert next(one for one in checks if one["check"] == "rights")["ok"] is True
