"""The commands `fleetgauge lake`, as far as they need no JVM."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from fleetgauge_core.tables import ALL_TABLES
from fleetgauge_pipelines.jobs.lake_cli import lake
from tests.browser.lake import write

NOW = datetime(2026, 3, 5, 2, tzinfo=UTC)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    fleet = {"clusters": [{"id": "orders-eu", "bootstrap": "orders:9092"}], "lake": str(tmp_path / "lake")}
    (tmp_path / "fleet.yaml").write_text(json.dumps(fleet))
    return tmp_path


def _run(folder: Path, *arguments: str) -> Result:
    return CliRunner().invoke(lake, [*arguments, "--config", str(folder / "fleet.yaml")])


def _json(folder: Path, *arguments: str) -> list[dict[str, Any]]:
    result = _run(folder, *arguments, "--json")
    assert result.exit_code == 0, result.output
    lines: list[dict[str, Any]] = json.loads(result.stdout)
    return lines


def test_status_shows_the_size_of_each_table_and_what_expire_would_remove(folder: Path) -> None:
    write(folder / "lake", NOW)
    lines = {line["table"]: line for line in _json(folder, "status", "--clock", "2027-04-04T00:00:00Z")}
    assert list(lines) == [table.path for table in ALL_TABLES]
    minutes = lines["silver/cluster_minutes"]
    assert (minutes["version"], minutes["rows"], minutes["files"]) == (0, 540, 2)
    assert (minutes["first_day"], minutes["last_day"], minutes["small_files"]) == (
        "2026-03-04",
        "2026-03-05",
        0,
    )
    # Its weeks were never closed, so their days are kept, whatever their age.
    assert minutes["expires"] == {"days": 0, "files": 0, "mb": 0.0}
    assert lines["gold/evidence"]["version"] is None
    assert lines["gold/cluster_weeks"]["expires"] is None


def test_status_prints_a_table_to_stderr(folder: Path) -> None:
    write(folder / "lake", NOW)
    result = _run(folder, "status")
    assert result.exit_code == 0
    assert result.stdout == ""
    assert "silver/cluster_minutes" in result.stderr


def test_a_dry_run_removes_nothing(folder: Path) -> None:
    write(folder / "lake", NOW)
    before = sorted((folder / "lake").rglob("*"))
    lines = _json(folder, "expire", "--dry-run", "--samples-days", "1", "--minutes-days", "1")
    expiring = ["bronze/probe_minutes", "silver/broker_minutes", "silver/cluster_minutes"]
    assert [line["table"] for line in lines] == expiring
    assert sorted((folder / "lake").rglob("*")) == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("status",), "no lake found"),
        (("compact",), "no lake found"),
        (
            ("expire", "--samples-days", "400"),
            "--minutes-days 396: minutes are computed from samples, so keep them at least",
        ),
    ],
)
def test_wrong_input_is_reported_in_one_line(folder: Path, arguments: tuple[str, ...], message: str) -> None:
    result = _run(folder, *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_broken_table_is_reported_in_one_line(folder: Path) -> None:
    write(folder / "lake", NOW)
    (commit,) = (folder / "lake/gold/fleet_weeks/_delta_log").glob("*.json")
    commit.write_text("{broken")
    result = _run(folder, "status")
    assert result.exit_code == 2
    assert "gold/fleet_weeks: " in result.stderr
    assert len(result.stderr.splitlines()) == 1
