"""Reported changes on a real telemetry cluster, and what `changes` lists."""

import json
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from fleetgauge_core.contract.change_document import read_change_document
from fleetgauge_core.fleet import load_fleet
from fleetgauge_core.tables import CHANGE_COSTS, CHANGES
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_operations.changes.change_topic import read_change_records
from fleetgauge_operations.changes.cli import change, changes
from tests.browser.lake import put
from tests.unit.operations.changes.test_change_costs import cost


@pytest.fixture(scope="module")
def config(local_fleet: LocalFleet, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fleet file with a topic of changes of its own."""
    path = tmp_path_factory.mktemp("changes") / "fleet.yaml"
    document = yaml.safe_load(local_fleet.fleet_file.read_text())
    topic = {"name": "changes-of-a-test", "partitions": 1, "retention_hours": 720}
    document["telemetry"]["topics"] = {"changes": topic}
    document["lake"] = str(path.with_name("lake"))
    path.write_text(yaml.safe_dump(document))
    return path


def add(config: Path, *options: str) -> Result:
    return CliRunner().invoke(change, ["add", *options, "--config", str(config)])


def list_changes(config: Path, *arguments: str) -> list[dict[str, Any]]:
    result = CliRunner().invoke(changes, [*arguments, "--config", str(config), "--json"])
    assert result.exit_code == 0, result.output
    documents: list[dict[str, Any]] = json.loads(result.stdout)
    return documents


def test_a_reported_change_is_listed_for_its_cluster_and_that_of_the_fleet_for_all(config: Path) -> None:
    result = CliRunner().invoke(changes, ["--config", str(config)])
    assert (result.exit_code, result.stdout) == (0, "")
    assert "no change was ever recorded: start fleetgauge observe" in result.stderr
    added = add(
        config,
        *("--cluster", "orders", "--broker", "2", "--kind", "host_maintenance", "--title", "new disk"),
        *("--author", "eve", "--link", "https://tickets.example/7", "--json"),
    )
    assert added.exit_code == 0, added.output
    document = json.loads(added.stdout)
    assert (document["cluster"], document["broker"], document["kind"]) == ("orders", 2, "host_maintenance")
    assert add(config, "--fleet", "--kind", "deploy", "--title", "clients 9").exit_code == 0
    assert add(config, "--segment", "region=south", "--title", "network").exit_code == 0
    listed = list_changes(config)
    assert [each["title"] for each in listed] == ["new disk", "clients 9", "network"]
    assert listed[0] == document
    assert [each["title"] for each in list_changes(config, "payments")] == ["clients 9", "network"]
    assert [each["title"] for each in list_changes(config, "--kind", "deploy")] == ["clients 9"]
    assert list_changes(config, "--since", "2999-01-01T00:00:00Z") == []
    lines = CliRunner().invoke(changes, ["orders", "--config", str(config)]).stderr
    assert "orders, broker 2  host_maintenance  new disk (eve) https://tickets.example/7" in lines


def test_a_report_is_withdrawn_and_what_was_observed_is_not(config: Path, tmp_path: Path) -> None:
    document = yaml.safe_load(config.read_text())
    document["lake"], own = str(tmp_path / "lake"), tmp_path / "fleet.yaml"
    document["telemetry"]["topics"]["changes"]["name"] = "changes-that-are-withdrawn"
    own.write_text(yaml.safe_dump(document))
    reported = json.loads(add(own, "--fleet", "--title", "by mistake", "--json").stdout)
    arguments = ["withdraw", reported["change_id"], "--config", str(own), "--author", "eve", "--json"]
    withdrawn = CliRunner().invoke(change, arguments)
    assert withdrawn.exit_code == 0, withdrawn.output
    (listed,) = list_changes(own)
    assert (listed["phase"], listed["author"], listed["title"]) == ("cancelled", "eve", "by mistake")
    record = read_change_document(listed, datetime.now(UTC))
    observed = replace(record, event_id="o", change_id="o", kind="throttle", phase="ended")
    put(tmp_path / "lake", CHANGES, [asdict(observed)])
    for change_id, message in (
        ("o", "o: what was observed (throttle) cannot be withdrawn"),
        ("x", "no change"),
    ):
        result = CliRunner().invoke(change, ["withdraw", change_id, "--config", str(own)])
        assert (result.exit_code, message in result.stderr) == (2, True), result.output


def test_changes_of_the_lake_are_listed_with_those_that_are_in_the_topic_alone(
    config: Path, tmp_path: Path
) -> None:
    document = yaml.safe_load(config.read_text())
    document["lake"], own = str(tmp_path / "lake"), tmp_path / "fleet.yaml"
    document["telemetry"]["topics"]["changes"]["name"] = "changes-of-another-test"
    own.write_text(yaml.safe_dump(document))
    assert add(own, "--cluster", "orders", "--title", "stored and in the topic").exit_code == 0
    assert add(own, "--fleet", "--title", "in the topic").exit_code == 0
    telemetry = load_fleet(own).telemetry
    assert telemetry
    (stored,) = (
        record for record in read_change_records(telemetry) if record.title == "stored and in the topic"
    )
    expired = replace(stored, event_id="e", change_id="c", title="in the lake")
    put(tmp_path / "lake", CHANGES, [asdict(stored), asdict(expired)])
    titles = ["in the lake", "in the topic", "stored and in the topic"]
    assert sorted(each["title"] for each in list_changes(own, "orders")) == titles
    assert [each["title"] for each in list_changes(own, "payments")] == ["in the topic"]
    put(tmp_path / "lake", CHANGE_COSTS, [cost(change_id=stored.change_id)])
    with_costs = list_changes(own, "orders", "--cost")
    assert [each["title"] for each in with_costs if each["costs"]] == [stored.title]
    lines = CliRunner().invoke(changes, ["orders", "--cost", "--config", str(own)]).stderr
    assert "  orders: bad minutes +12.0, +9.5 to +13.2 (cost: 14.0, 2.0 expected; " in lines
    assert lines.count("  no cost was computed") == 2
    (tmp_path / "lake" / CHANGES.path / "_delta_log" / f"{0:020}.json").write_text("damaged")
    result = CliRunner().invoke(changes, ["--config", str(own)])
    assert result.exit_code == 0
    assert "only the topic is listed: " in result.stderr
    assert "  stored and in the topic" in result.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--title", "x"], "give one of --cluster (with or without --broker), --segment and --fleet"),
        (["--title", "x", "--cluster", "nobody"], "cluster: the fleet has no cluster 'nobody'"),
        (["--title", "x", "--segment", "region"], "--segment is NAME=VALUE, such as region=eu-west-1"),
        (["--title", " ", "--fleet"], "title: must not be blank"),
        (["--title", "x", "--fleet", "--kind", "roll"], "'roll' is not one of"),
    ],
)
def test_a_report_that_cannot_be_accepted_says_why(config: Path, options: list[str], message: str) -> None:
    result = add(config, *options)
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_telemetry_cluster_that_does_not_answer_is_named(config: Path, tmp_path: Path) -> None:
    document = yaml.safe_load(config.read_text())
    document["telemetry"]["bootstrap"] = "127.0.0.1:1"
    unreachable = tmp_path / "fleet.yaml"
    unreachable.write_text(yaml.safe_dump(document))
    result = add(unreachable, "--fleet", "--title", "x")
    assert (result.exit_code, "cannot reach the telemetry cluster" in result.stderr) == (2, True)
