import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from fleetgauge_probes.agent.spool import Spool
from fleetgauge_probes.cli import probe

CLUSTERS = "clusters: [{id: orders, bootstrap: 'orders:9092'}]\n"


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ("", "telemetry.bootstrap is missing"),
        ("simulated: true\ntelemetry: {bootstrap: 'telemetry:9092'}\n", "simulated is true"),
    ],
)
def test_a_fleet_that_cannot_be_measured_is_refused_in_one_line(tmp_path: Path, more: str, says: str) -> None:
    config = tmp_path / "fleet.yaml"
    config.write_text(CLUSTERS + more, encoding="utf-8")
    result = CliRunner().invoke(probe, ["--config", str(config)])
    assert (result.exit_code, result.stdout) == (2, "")
    assert says in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ["--spool", "{}/fleet.yaml/spool"],
            "/fleet.yaml/spool: Not a directory; name another folder with --spool",
        ),
        (["--spool", "{}/taken"], "another agent has it; name another folder with --spool"),
        (["--spool-max-mb", "0"], "0 is not in the range x>=1"),
        (["--shard", "3/2"], "'3/2' is no shard: give one of so many, as 2/5"),
    ],
)
def test_a_spool_that_cannot_be_is_refused(tmp_path: Path, arguments: list[str], says: str) -> None:
    config = tmp_path / "fleet.yaml"
    config.write_text(CLUSTERS + "telemetry: {bootstrap: 'telemetry:9092'}\n", encoding="utf-8")
    other = Spool(tmp_path / "taken", 1000)
    other.open()
    given = [one.format(tmp_path) for one in arguments]
    result = CliRunner().invoke(probe, ["--config", str(config), *given])
    other.close()
    assert (result.exit_code, result.stdout) == (2, "")
    assert says in result.stderr


def test_the_least_rights_are_printed_as_commands_or_as_json(tmp_path: Path) -> None:
    config = tmp_path / "fleet.yaml"
    config.write_text(CLUSTERS, encoding="utf-8")
    given = ["acls", "--config", str(config), "--principal", "User:me"]
    lines = CliRunner().invoke(probe, given).stdout.splitlines()
    assert len(lines) == 2
    assert all("--bootstrap-server orders:9092 --add --allow-principal User:me" in line for line in lines)
    told = json.loads(CliRunner().invoke(probe, [*given, "--json"]).stdout)
    assert told["principal"] == "User:me"
    assert [one["topic"] for one in told["grants"]] == ["fleetgauge.probe", None]
