import json
import socket
from pathlib import Path

import pytest
from click.testing import CliRunner

from fleetgauge_core.fleet.schema import fleet_json_schema
from fleetgauge_probes.connection.validate import validate
from tests.receiver import Receiver


@pytest.fixture
def fleet_file(tmp_path: Path) -> Path:
    path = tmp_path / "fleet.yaml"
    path.write_text("clusters: [{id: orders, bootstrap: 'orders:9092'}]\n", encoding="utf-8")
    return path


def test_a_valid_file_is_printed_with_its_defaults_as_json(fleet_file: Path) -> None:
    result = CliRunner().invoke(validate, [str(fleet_file), "--json"])
    assert result.exit_code == 0
    answer = json.loads(result.stdout)
    assert answer["clusters"][0]["tier"] == "single-zone"
    assert answer["lake"] == str(fleet_file.parent / "lake")
    assert result.stderr == ""


def test_a_valid_file_is_summarized_on_stderr(fleet_file: Path) -> None:
    result = CliRunner().invoke(validate, [str(fleet_file)])
    assert (result.exit_code, result.stdout) == (0, "")
    assert "valid; clusters orders" in " ".join(result.stderr.split())


@pytest.mark.parametrize("text", ["", "clusters: []", "clusters: [", "week: {zone: Nowhere}"])
def test_an_invalid_file_is_an_error_in_one_line(fleet_file: Path, text: str) -> None:
    fleet_file.write_text(text, encoding="utf-8")
    result = CliRunner().invoke(validate, [str(fleet_file), "--json"])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"fleetgauge: {fleet_file}: ")
    assert result.stderr.count("\n") == 1


def test_a_missing_file_is_an_error_in_one_line(tmp_path: Path) -> None:
    result = CliRunner().invoke(validate, [str(tmp_path / "absent.yaml")])
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1


def test_the_schema_is_printed_without_a_file_and_equals_the_documented_one() -> None:
    result = CliRunner().invoke(validate, ["--schema"])
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == fleet_json_schema()
    assert result.stdout == (Path(__file__).parents[4] / "docs/fleet.schema.json").read_text()


@pytest.fixture
def unreachable_fleet(tmp_path: Path) -> Path:
    """Write a fleet file with a cluster whose port is closed, and without a telemetry cluster."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    path = tmp_path / "fleet.yaml"
    path.write_text(f"clusters: [{{id: orders, bootstrap: '127.0.0.1:{port}'}}]\n", encoding="utf-8")
    return path


def test_a_failed_check_is_reported_with_exit_code_1(unreachable_fleet: Path) -> None:
    result = CliRunner().invoke(validate, [str(unreachable_fleet), "--connect", "--json"])
    assert result.exit_code == 1
    answer = json.loads(result.stdout)
    assert answer["config"] == str(unreachable_fleet)
    orders, telemetry = answer["clusters"]
    assert (orders["cluster"], telemetry["cluster"]) == ("orders", "telemetry")
    (check,) = orders["checks"]
    assert check.keys() == {"check", "ok", "found", "mend"}
    assert (check["check"], check["ok"]) == ("reachable", False)
    assert check["found"] == f"{orders['bootstrap']}: connection refused"


def test_notifiers_are_checked_as_well_and_not_notified(unreachable_fleet: Path) -> None:
    with Receiver().listening() as receiver:
        with unreachable_fleet.open("a", encoding="utf-8") as file:
            file.write(f"notifiers: [{{kind: slack, name: chat, url: '{receiver.url}'}}]\n")
        result = CliRunner().invoke(validate, [str(unreachable_fleet), "--connect", "--json"])
        shown = CliRunner().invoke(validate, [str(unreachable_fleet), "--connect"])
    (chat,) = json.loads(result.stdout)["notifiers"]
    (check,) = chat["checks"]
    assert (chat["notifier"], chat["kind"], check["ok"]) == ("chat", "slack", True)
    assert "cluster or notifier" in shown.stderr
    assert "chat" in shown.stderr
    assert receiver.posts == []


def test_failed_checks_are_shown_on_stderr(unreachable_fleet: Path) -> None:
    result = CliRunner().invoke(validate, [str(unreachable_fleet), "--connect"])
    assert (result.exit_code, result.stdout) == (1, "")
    assert "connection refused" in result.stderr
    assert "-> correct the port, or start the broker" in result.stderr
    assert "Traceback" not in result.stderr


def test_the_clusters_of_an_invalid_file_are_not_checked(fleet_file: Path) -> None:
    fleet_file.write_text("clusters: []", encoding="utf-8")
    result = CliRunner().invoke(validate, [str(fleet_file), "--connect"])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.count("\n") == 1
