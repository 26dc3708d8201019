"""`fleetgauge lake` as far as it needs no JVM."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from fleetgauge_core.tables import ALL
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
    done = _run(folder, *arguments, "--json")
    assert done.exit_code == 0, done.output
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def test_status_says_what_each_table_takes_and_what_expire_would_remove(folder: Path) -> None:
    write(folder / "lake", NOW)
    found = {line["table"]: line for line in _json(folder, "status", "--clock", "2027-04-04T00:00:00Z")}
    assert list(found) == [table.path for table in ALL]
    minutes = found["silver/cluster_minutes"]
    assert (minutes["version"], minutes["rows"], minutes["files"]) == (0, 540, 2)
    assert (minutes["first_day"], minutes["last_day"], minutes["small_files"]) == (
        "2026-03-04",
        "2026-03-05",
        0,
    )
    # Its weeks never closed, so their days stay, whatever their age.
    assert minutes["expires"] == {"days": 0, "files": 0, "mb": 0.0}
    assert found["gold/evidence"]["version"] is None
    assert found["gold/cluster_weeks"]["expires"] is None


def test_status_is_a_table_for_people(folder: Path) -> None:
    write(folder / "lake", NOW)
    done = _run(folder, "status")
    assert done.exit_code == 0
    assert done.stdout == ""
    assert "silver/cluster_minutes" in done.stderr


def test_a_dry_run_removes_nothing(folder: Path) -> None:
    write(folder / "lake", NOW)
    before = sorted((folder / "lake").rglob("*"))
    lines = _json(folder, "expire", "--dry-run", "--samples-days", "1", "--minutes-days", "1")
    expiring = ["bronze/probe_minutes", "silver/broker_minutes", "silver/cluster_minutes"]
    assert [line["table"] for line in lines] == expiring
    assert sorted((folder / "lake").rglob("*")) == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("status",), "there is no lake"),
        (("compact",), "there is no lake"),
        (("expire", "--samples-days", "400"), "--minutes-days 396: minutes are kept at least as long"),
    ],
)
def test_what_cannot_be_done_is_one_line(folder: Path, arguments: tuple[str, ...], said: str) -> None:
    done = _run(folder, *arguments)
    assert done.exit_code == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_broken_table_is_one_line(folder: Path) -> None:
    write(folder / "lake", NOW)
    (commit,) = (folder / "lake/gold/fleet_weeks/_delta_log").glob("*.json")
    commit.write_text("{broken")
    done = _run(folder, "status")
    assert done.exit_code == 2
    assert "gold/fleet_weeks: " in done.stderr
    assert len(done.stderr.splitlines()) == 1
