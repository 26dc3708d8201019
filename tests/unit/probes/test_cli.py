import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from fleetgauge_probes.agent.spool import Spool
from fleetgauge_probes.cli import probe

CLUSTERS = "clusters: [{id: orders, bootstrap: 'orders:9092'}]\n"


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("", "telemetry.bootstrap is missing"),
        ("simulated: true\ntelemetry: {bootstrap: 'telemetry:9092'}\n", "simulated is true"),
    ],
)
def test_a_fleet_that_cannot_be_probed_is_an_error_in_one_line(
    tmp_path: Path, keys: str, message: str
) -> None:
    config = tmp_path / "fleet.yaml"
    config.write_text(CLUSTERS + keys, encoding="utf-8")
    result = CliRunner().invoke(probe, ["--config", str(config)])
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--spool", "{}/fleet.yaml/spool"],
            "/fleet.yaml/spool: Not a directory; set another folder with --spool",
        ),
        (["--spool", "{}/locked"], "another agent uses it; set another folder with --spool"),
        (["--spool-max-mb", "0"], "0 is not in the range x>=1"),
        (["--shard", "3/2"], "'3/2' is not a shard: give its number and the number of shards, as 2/5"),
    ],
)
def test_an_unusable_spool_or_shard_is_an_error(tmp_path: Path, options: list[str], message: str) -> None:
    config = tmp_path / "fleet.yaml"
    config.write_text(CLUSTERS + "telemetry: {bootstrap: 'telemetry:9092'}\n", encoding="utf-8")
    locked = Spool(tmp_path / "locked", 1000)
    locked.open()
    arguments = [option.format(tmp_path) for option in options]
    result = CliRunner().invoke(probe, ["--config", str(config), *arguments])
    locked.close()
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


def test_the_least_permissions_are_printed_as_commands_or_as_json(tmp_path: Path) -> None:
    config = tmp_path / "fleet.yaml"
    config.write_text(CLUSTERS, encoding="utf-8")
    arguments = ["acls", "--config", str(config), "--principal", "User:me"]
    lines = CliRunner().invoke(probe, arguments).stdout.splitlines()
    assert len(lines) == 2
    assert all("--bootstrap-server orders:9092 --add --allow-principal User:me" in line for line in lines)
    document = json.loads(CliRunner().invoke(probe, [*arguments, "--json"]).stdout)
    assert document["principal"] == "User:me"
    assert [grant["topic"] for grant in document["grants"]] == ["fleetgauge.probe", None]
