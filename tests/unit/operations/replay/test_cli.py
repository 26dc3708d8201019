"""The commands of `fleetgauge replay` with files of incidents."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from fleetgauge_operations.replay.cli import replay
from tests.unit.operations.replay.sample_incidents import build_hang_pulses, build_incident

HANG = build_incident(build_hang_pulses(), note="disk full")


def _run(*arguments: object) -> Result:
    return CliRunner().invoke(replay, [str(argument) for argument in ("run", *arguments)])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with an incident, a false alarm in a subfolder, and a file that is no incident."""
    (tmp_path / "false-alarms").mkdir()
    HANG.write(tmp_path / "hang.incident.gz")
    replace(HANG, expected=()).write(tmp_path / "false-alarms/false.incident.gz")
    (tmp_path / "notes.txt").write_text("none")
    return tmp_path


def test_expected_findings_exit_with_0(folder: Path) -> None:
    result = _run(folder / "hang.incident.gz")
    assert result.exit_code == 0
    assert "hang.incident.gz: disk full" in result.stderr
    assert "same: BROKER_DOWN of orders, broker 1: opened 2026-03-02T12:01:05Z" in result.stderr


def test_every_incident_of_a_folder_is_replayed_and_a_difference_exits_with_1(folder: Path) -> None:
    result = _run(folder, "--json")
    assert result.exit_code == 1
    first, second = json.loads(result.stdout)
    assert [Path(document["file"]).name for document in (first, second)] == [
        "false.incident.gz",
        "hang.incident.gz",
    ]
    assert [finding["verdict"] for finding in first["findings"]] == ["new"]
    (finding,) = second["findings"]
    assert (finding["broker"], finding["kind"], finding["verdict"], finding["later_s"]) == (
        1,
        "BROKER_DOWN",
        "same",
        0,
    )
    assert (
        finding["wanted"]
        == finding["found"]
        == {
            "named_at": "2026-03-02T12:01:05+00:00",
            "cleared_at": "2026-03-02T12:01:35+00:00",
        }
    )


def test_a_threshold_can_be_changed_by_an_option(folder: Path) -> None:
    insensitive = ("--set", "unanswered_ms=60000")
    assert _run(folder / "false-alarms", *insensitive).exit_code == 0
    result = _run(folder / "hang.incident.gz", *insensitive)
    assert result.exit_code == 1
    assert "missed: BROKER_DOWN of orders, broker 1: expected to open 2026-03-02T12:01:05Z" in result.stderr
    assert _run(folder / "hang.incident.gz", "--set", "calm=7.5").exit_code == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("calmness=3", "unknown threshold 'calmness'; known ones: unanswered_ms"),
        ("flaps=some", "expected a number above 0, as in flaps=3"),
        ("slow_rounds=0", "expected a number above 0, as in slow_rounds=4"),
        ("history_block=-1", "expected a number above 0, as in history_block=15"),
        ("calm", "expected a number above 0, as in calm=120"),
        ("calm=nan", "expected a number above 0, as in calm=120"),
        ("calm=inf", "expected a number above 0, as in calm=120"),
    ],
)
def test_an_invalid_threshold_is_refused(change: str, message: str, folder: Path) -> None:
    result = _run(folder, "--set", change)
    assert result.exit_code == 2
    assert message in result.stderr.replace("\n", " ")


def test_an_unreadable_path_is_reported_in_one_line(folder: Path, tmp_path: Path) -> None:
    result = _run(folder / "notes.txt")
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert "not an incident" in result.stderr
    (tmp_path / "empty").mkdir()
    result = _run(tmp_path / "empty")
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert "write one with `fleetgauge replay export`" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--cluster", "payments"], "no cluster 'payments'"),
        (["--to", "2026-03-02T12:00:00Z"], "is not after --from"),
        (["--out", "fleet.yaml"], "fleet.yaml exists already"),
        (["--config", "none.yaml"], "No such file"),
        (["--from", "yesterday"], "is not a time"),
    ],
)
def test_an_invalid_export_is_refused_before_the_cluster_is_contacted(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    clusters = [{"id": "orders", "bootstrap": "unreachable:1"}]
    Path("fleet.yaml").write_text(
        yaml.safe_dump({"telemetry": {"bootstrap": "unreachable:1"}, "clusters": clusters})
    )
    required = ["--cluster", "orders", "--from", "2026-03-02T12:00:00Z", "--to", "2026-03-02T13:00:00Z"]
    result = CliRunner().invoke(replay, ["export", *required, *arguments])
    assert result.exit_code == 2
    assert message in result.stderr.replace("\n", " ")
