"""A fleet file as commands read it: faults end a command with one line and exit code 2."""

from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from fleetgauge_core.fleet import load_fleet, require_telemetry
from fleetgauge_core.runtime.cli import Command, print_json
from fleetgauge_core.runtime.options import config_option, json_option, lake_option

CLUSTERS = "clusters: [{id: orders, bootstrap: 'orders:9092'}]\n"


@click.command(cls=Command)
@config_option
@lake_option
@json_option("Print the bootstrap servers on stdout as JSON.")
def command(config: Path, location: str | None, as_json: bool) -> None:
    fleet = load_fleet(config)
    telemetry = require_telemetry(fleet, config)
    if as_json:
        print_json({"bootstrap": telemetry.bootstrap, "lake": location})


def _run(folder: Path, content: str, *arguments: str) -> Result:
    config = folder / "fleet.yaml"
    config.write_text(content)
    return CliRunner().invoke(command, ["--config", str(config), *arguments])


def test_a_valid_file_with_telemetry_is_used(tmp_path: Path) -> None:
    content = CLUSTERS + "telemetry: {bootstrap: 'telemetry:9092'}\n"
    result = _run(tmp_path, content, "--lake", "lake", "--json")
    assert (result.exit_code, result.stdout) == (0, '{"bootstrap": "telemetry:9092", "lake": "lake"}\n')


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("clusters: []\n", "clusters: expected at least one entry"),
        (CLUSTERS, "fleet.yaml: telemetry.bootstrap is missing: set it to"),
    ],
)
def test_a_fault_is_reported_in_one_line_with_exit_code_2(tmp_path: Path, content: str, message: str) -> None:
    result = _run(tmp_path, content)
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert message in result.stderr
