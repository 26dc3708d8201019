import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from fleetgauge_probes.fleet.cli import validate


@pytest.fixture
def fleet_file(tmp_path: Path) -> Path:
    path = tmp_path / "fleet.yaml"
    path.write_text("clusters: [{id: orders, bootstrap: 'orders:9092'}]\n", encoding="utf-8")
    return path


def test_a_valid_file_is_described_with_its_defaults_as_json(fleet_file: Path) -> None:
    result = CliRunner().invoke(validate, [str(fleet_file), "--json"])
    assert result.exit_code == 0
    answer = json.loads(result.stdout)
    assert answer["clusters"][0]["tier"] == "single-zone"
    assert answer["lake"] == str(fleet_file.parent / "lake")
    assert result.stderr == ""


def test_a_valid_file_is_described_to_a_person_on_stderr(fleet_file: Path) -> None:
    result = CliRunner().invoke(validate, [str(fleet_file)])
    assert (result.exit_code, result.stdout) == (0, "")
    assert "valid; clusters orders" in " ".join(result.stderr.split())


@pytest.mark.parametrize("text", ["", "clusters: []", "clusters: [", "week: {zone: Nowhere}"])
def test_a_bad_file_is_one_line_and_exit_2(fleet_file: Path, text: str) -> None:
    fleet_file.write_text(text, encoding="utf-8")
    result = CliRunner().invoke(validate, [str(fleet_file), "--json"])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"fleetgauge: {fleet_file}: ")
    assert result.stderr.count("\n") == 1


def test_a_missing_file_is_one_line_and_exit_2(tmp_path: Path) -> None:
    result = CliRunner().invoke(validate, [str(tmp_path / "absent.yaml")])
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
