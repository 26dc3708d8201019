"""The agent with exactly the ACLs that `fleetgauge probe acls` prints, on brokers with an authorizer."""

import json
import shlex
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner
from confluent_kafka.admin import AclOperation

from fleetgauge_core.fleet import load_fleet
from fleetgauge_local import properties
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_local.fleet_folder import FleetFolder, FleetPlan, read_json
from fleetgauge_local.layout import ClusterSpec
from fleetgauge_probes.cli import probe
from fleetgauge_probes.connection.validate import validate
from tests.kafka.acls import add_acl
from tests.kafka.agents import Agent, has_successful_probes
from tests.kafka.broker_classes import add_class

BROKERS = (1, 2, 3)
STRICT = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:INTERNAL;User:CONTROLLER",
}


@pytest.fixture
def strict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalFleet]:
    """Run clusters on which clients are User:CLIENT without any permission; brokers are super users."""
    builder = add_class("ListenerPrincipalBuilder", tmp_path / "classes", monkeypatch)
    for key, value in (STRICT | {"principal.builder.class": builder}).items():
        monkeypatch.setitem(properties._BEHAVIOR, key, value)
    clusters = (ClusterSpec("strict"), ClusterSpec("telemetry", brokers=1))
    with LocalFleet(tmp_path / "fleet", clusters) as fleet:
        yield fleet


def find_broker_listener(local: LocalFleet, cluster: str) -> str:
    """Return the address of the inter-broker listener, whose clients are super users."""
    plan = read_json(FleetFolder(local.fleet_file.parent).plan, FleetPlan)
    assert plan is not None
    return f"127.0.0.1:{plan.layout.list_placements(cluster)[0].internal_port}"


def create_acls(bootstrap: str, command: str) -> None:
    """Create the ACLs of a kafka-acls.sh command line."""
    words = shlex.split(command)
    options = list(pairwise(words))
    (principal,) = (after for word, after in options if word == "--allow-principal")
    topic = next((after for word, after in options if word == "--topic"), None)
    operations = {operation.name.replace("_", "").lower(): operation for operation in AclOperation}
    for operation in (after for word, after in options if word == "--operation"):
        add_acl(bootstrap, topic, operations[operation.lower()], principal=principal)


def print_commands(config: Path) -> list[tuple[str, str]]:
    """Return the cluster and the printed command of each grant."""
    arguments = ["acls", "--config", str(config), "--principal", "User:CLIENT"]
    lines = CliRunner().invoke(probe, arguments).stdout.splitlines()
    grants = json.loads(CliRunner().invoke(probe, [*arguments, "--json"]).stdout)["grants"]
    return [(grant["cluster"], line) for grant, line in zip(grants, lines, strict=True)]


def test_an_agent_with_the_printed_permissions_measures_and_lacks_none(
    strict: LocalFleet, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = strict.fleet_file
    for cluster, command in print_commands(config):
        create_acls(find_broker_listener(strict, cluster), command)
    fleet = load_fleet(config)
    assert fleet.telemetry is not None
    agent = Agent(fleet, fleet.telemetry, tmp_path / "spool")
    with agent.running():
        reader_telemetry = fleet.telemetry.model_copy(
            update={"bootstrap": find_broker_listener(strict, "telemetry")}
        )
        assert has_successful_probes(reader_telemetry, "strict", BROKERS)
    assert agent.unsent_records == 0
    assert [record.getMessage() for record in caplog.records if "AUTHORIZATION" in record.getMessage()] == []
    result = CliRunner().invoke(validate, [str(config), "--connect", "--json"])
    (checks,) = (
        cluster["checks"]
        for cluster in json.loads(result.stdout)["clusters"]
        if cluster["cluster"] == "strict"
    )
    assert next(check for check in checks if check["check"] == "rights")["ok"] is True
