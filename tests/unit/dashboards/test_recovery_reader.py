"""Tables of recovery: the newest days alone are read, and a lake without them is as it was."""

from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from fleetgauge_core import tables
from fleetgauge_core.tables import Table
from fleetgauge_dashboards.reader import Lake, TableReader, UnreadableError
from fleetgauge_dashboards.reader.recovery import (
    DRILLS_READ,
    GROUP_MINUTE,
    MIRROR_MINUTE,
    PRODUCER_MINUTE,
    RPO_MINUTE,
    RecoveryTables,
)
from fleetgauge_dashboards.reader.table import Files, Filter
from tests.browser.lake import put
from tests.browser.recovery_lake import drill, finding, group_minute, mirror_minute, producer_minute, week_row
from tests.unit.dashboards.frames import START, WEEK, minute

DAY = timedelta(days=1)


@pytest.mark.parametrize(
    ("names", "table"),
    [
        (MIRROR_MINUTE, tables.MIRROR_MINUTES),
        (RPO_MINUTE, tables.MIRROR_MINUTES),
        (GROUP_MINUTE, tables.GROUP_MINUTES),
        (PRODUCER_MINUTE, tables.PRODUCER_MINUTES),
    ],
)
def test_what_is_read_are_columns_of_the_table(names: tuple[str, ...], table: Table) -> None:
    assert set(names) <= set(table.names)


def test_a_lake_without_them_is_empty_and_is_not_made(tmp_path: Path) -> None:
    found = Lake(str(tmp_path / "none")).recovery
    assert not found.is_told_of
    assert [
        len(one) for one in (found.mirror_minutes(), found.group_minutes(), found.producer_minutes())
    ] == [0] * 3
    assert found.findings() == found.weeks() == found.drills() == []
    assert not (tmp_path / "none").exists()


def test_a_page_is_drawn_anew_when_one_of_them_moves(tmp_path: Path) -> None:
    put(tmp_path, tables.MIRROR_MINUTES, [mirror_minute("a", "b", START)])
    before = Lake(str(tmp_path)).versions()
    put(tmp_path, tables.MIRROR_MINUTES, [mirror_minute("a", "b", minute(1))])
    put(tmp_path, tables.DRILLS, [drill(START, "g")])
    after = Lake(str(tmp_path)).versions()
    assert (len(before), len(after)) == (15, 15)
    assert sum(one != other for one, other in zip(before, after, strict=True)) == 2


def test_the_newest_days_are_read_and_no_other_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for days in range(10):
        put(tmp_path, tables.MIRROR_MINUTES, [mirror_minute("a", "b", START - days * DAY)])
    read: list[int] = []
    plain = TableReader.frame

    def counting(
        self: TableReader, delta: DeltaTable, names: tuple[str, ...], where: Filter, files: Files
    ) -> pa.Table:
        read.append(len(delta.to_pyarrow_dataset(file_pruning_predicate=files).files))
        return plain(self, delta, names, where, files)

    monkeypatch.setattr(TableReader, "frame", counting)
    found = RecoveryTables(str(tmp_path))
    assert sorted(found.mirror_minutes()["minute"].to_pylist()) == [START - DAY, START]
    assert len(found.rpo_minutes(7)) == 8
    assert read == [2, 8]


def test_all_kinds_of_minutes_are_read(tmp_path: Path) -> None:
    put(tmp_path, tables.GROUP_MINUTES, [group_minute("a", "b", "g", START, ready=None)])
    put(tmp_path, tables.PRODUCER_MINUTES, [producer_minute("a", START)])
    found = RecoveryTables(str(tmp_path))
    assert found.is_told_of
    assert found.group_minutes().select(["group_id", "ready"]).to_pylist() == [
        {"group_id": "g", "ready": None}
    ]
    assert found.producer_minutes()["records_per_s"].to_pylist() == [4_000.0]


def test_of_weeks_the_newest_closed_and_the_newest_open_are_read(tmp_path: Path) -> None:
    weeks = [WEEK - timedelta(days=7 * back) for back in range(4)]
    put(
        tmp_path,
        tables.RECOVERY_WEEKS,
        [week_row(week, "rpo_s", "fleet", closed=week != WEEK) for week in weeks],
    )
    assert sorted(row["week"] for row in RecoveryTables(str(tmp_path)).weeks()) == weeks[1::-1]


def test_drills_are_newest_first_and_as_many_as_anybody_reads(tmp_path: Path) -> None:
    rows = [drill(START + timedelta(minutes=number), f"g{number % 3}") for number in range(DRILLS_READ + 5)]
    put(tmp_path, tables.DRILLS, rows)
    found = RecoveryTables(str(tmp_path)).drills()
    assert len(found) == DRILLS_READ
    assert found[0]["at"] == rows[-1]["at"]


def test_every_beginning_and_end_of_a_finding_is_read(tmp_path: Path) -> None:
    begun = finding(START, "MIRROR_STALE", "a", "b")
    put(tmp_path, tables.RECOVERY_FINDINGS, [begun, begun | {"at": minute(3), "opens": False}])
    assert len(RecoveryTables(str(tmp_path)).findings()) == 2


def test_a_broken_table_is_an_error_in_one_line(tmp_path: Path) -> None:
    put(tmp_path, tables.GROUP_MINUTES, [group_minute("a", "b", "g", START)])
    (commit,) = (tmp_path / "recovery/group_minutes/_delta_log").glob("*.json")
    commit.write_text("{broken")
    with pytest.raises(UnreadableError, match=r"^recovery/group_minutes: [^\n]+$"):
        RecoveryTables(str(tmp_path)).group_minutes()
