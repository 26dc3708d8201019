"""The command line tool that evaluates a run."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from deltalake import write_deltalake

from fleetgauge_core.tables import CLUSTER_WEEKS, PROBE_MINUTES, Table
from fleetgauge_core.tables.arrow_schema import arrow_schema
from tests.oracle.evaluate_run import main
from tests.oracle.oracle import Row
from tests.oracle.week import random_week
from tests.unit.oracle.conftest import LONG_AFTER

CLOCK = "2026-05-01T00:00:00Z"


def _write(lake: Path, table: Table, rows: list[Row]) -> None:
    write_deltalake(str(lake / table.path), pa.Table.from_pylist(rows, arrow_schema(table)), mode="overwrite")


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Return a lake with random records of an hour, beside their fleet file."""
    document = {"lake": "lake", "clusters": [{"id": f"cluster-{n}", "bootstrap": "b:9092"} for n in range(3)]}
    (tmp_path / "fleet.yaml").write_text(yaml.safe_dump(document))
    lake = tmp_path / "lake"
    added = {"source": "test", "ingested_at": LONG_AFTER}
    records = [record | added | {"day": record["minute"].date()} for record in random_week(5, minutes=60)]
    _write(lake, PROBE_MINUTES, records)
    return lake


def _run(lake: Path, *arguments: str) -> int:
    return main([str(lake), "--fleet", str(lake.parent / "fleet.yaml"), "--clock", CLOCK, *arguments])


def _weeks(lake: Path, capsys: pytest.CaptureFixture[str]) -> list[Row]:
    """Return the oracle's rows as the pipeline would write them."""
    assert _run(lake) == 0
    rows: list[Row] = json.loads(capsys.readouterr().out)["cluster_weeks"]
    computed = {"computed_at": datetime(2026, 5, 1, tzinfo=UTC)}
    return [row | computed | {"week": datetime.fromisoformat(row["week"]).date()} for row in rows]


def _difference_columns(capsys: pytest.CaptureFixture[str]) -> list[str]:
    reported: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["differences"]
    return [difference["column"] for difference in reported]


def test_the_path_of_the_lake_and_of_its_records_give_the_same_weeks(
    lake: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    weeks = _weeks(lake, capsys)
    assert {row["cluster_id"] for row in weeks} == {"cluster-0", "cluster-1", "cluster-2"}
    assert (
        main([str(lake / PROBE_MINUTES.path), "--fleet", str(lake.parent / "fleet.yaml"), "--clock", CLOCK])
        == 0
    )
    assert len(json.loads(capsys.readouterr().out)["cluster_weeks"]) == len(weeks)


def test_equal_gold_has_no_differences_in_its_latest_revisions(
    lake: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    weeks = _weeks(lake, capsys)
    open_weeks = [
        row | {"revision": 0, "closed": False, "revision_reason": None, "bad_minutes": 0} for row in weeks
    ]
    later = weeks[0] | {"revision": 2, "revision_reason": "late records"}
    _write(lake, CLUSTER_WEEKS, [*open_weeks, *weeks, later])
    assert _run(lake, "--compare") == 0
    assert _difference_columns(capsys) == []


def test_a_difference_of_a_microsecond_is_reported(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    weeks = _weeks(lake, capsys)
    weeks[0]["latency_p99_us"] += 1
    _write(lake, CLUSTER_WEEKS, weeks)
    assert _run(lake, "--compare") == 1
    assert _difference_columns(capsys) == ["latency_p99_us"]


def test_a_week_missing_in_gold_is_reported(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _write(lake, CLUSTER_WEEKS, _weeks(lake, capsys)[1:])
    assert _run(lake, "--compare") == 1
    assert _difference_columns(capsys) == [""]


def test_records_ingested_later_can_be_ignored(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(lake, "--taken-by", LONG_AFTER.isoformat()) == 0
    all_records = json.loads(capsys.readouterr().out)["records"]
    assert _run(lake, "--taken-by", (LONG_AFTER - timedelta(microseconds=1)).isoformat()) == 0
    assert all_records > 0 == json.loads(capsys.readouterr().out)["records"]


def test_an_unreadable_input_is_reported_in_one_line(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(lake, "--compare") == 2
    assert _run(lake.parent / "nowhere" / "lake") == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 2
