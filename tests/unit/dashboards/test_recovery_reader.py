"""Recovery tables are read only as far as needed, and a lake without them is empty."""

from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from fleetgauge_core import tables
from fleetgauge_core.tables import Table
from fleetgauge_dashboards.reader import LakeReader, TableReader, UnreadableError
from fleetgauge_dashboards.reader.recovery import (
    GROUP_MINUTE_COLUMNS,
    MAX_DRILL_ROWS,
    MIRROR_MINUTE_COLUMNS,
    PRODUCER_MINUTE_COLUMNS,
    RPO_MINUTE_COLUMNS,
    RecoveryReader,
)
from fleetgauge_dashboards.reader.table import FilePredicates, RowFilter
from tests.browser.lake import put
from tests.browser.recovery_lake import drill, finding, group_minute, mirror_minute, producer_minute, week_row
from tests.unit.dashboards.frames import START, WEEK, minute

DAY = timedelta(days=1)


@pytest.mark.parametrize(
    ("names", "table"),
    [
        (MIRROR_MINUTE_COLUMNS, tables.MIRROR_MINUTES),
        (RPO_MINUTE_COLUMNS, tables.MIRROR_MINUTES),
        (GROUP_MINUTE_COLUMNS, tables.GROUP_MINUTES),
        (PRODUCER_MINUTE_COLUMNS, tables.PRODUCER_MINUTES),
    ],
)
def test_the_columns_read_exist_in_the_table(names: tuple[str, ...], table: Table) -> None:
    assert set(names) <= set(table.column_names)


def test_a_lake_without_recovery_tables_is_empty_and_is_not_created(tmp_path: Path) -> None:
    reader = LakeReader(str(tmp_path / "none")).recovery
    assert not reader.has_rows
    assert [
        len(rows) for rows in (reader.mirror_minutes(), reader.group_minutes(), reader.producer_minutes())
    ] == [0] * 3
    assert reader.findings() == reader.weeks() == reader.drills() == []
    assert not (tmp_path / "none").exists()


def test_a_changed_recovery_table_changes_the_lakes_versions(tmp_path: Path) -> None:
    put(tmp_path, tables.MIRROR_MINUTES, [mirror_minute("a", "b", START)])
    before = LakeReader(str(tmp_path)).versions()
    put(tmp_path, tables.MIRROR_MINUTES, [mirror_minute("a", "b", minute(1))])
    put(tmp_path, tables.DRILLS, [drill(START, "g")])
    after = LakeReader(str(tmp_path)).versions()
    assert (
        sum(
            version_before != version_after
            for version_before, version_after in zip(before, after, strict=True)
        )
        == 2
    )


def test_only_files_of_the_newest_days_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for days in range(10):
        put(tmp_path, tables.MIRROR_MINUTES, [mirror_minute("a", "b", START - days * DAY)])
    file_counts: list[int] = []
    read_columns = TableReader.read_columns

    def count_files(
        self: TableReader, delta: DeltaTable, names: tuple[str, ...], where: RowFilter, files: FilePredicates
    ) -> pa.Table:
        file_counts.append(len(delta.to_pyarrow_dataset(file_pruning_predicate=files).files))
        return read_columns(self, delta, names, where, files)

    monkeypatch.setattr(TableReader, "read_columns", count_files)
    reader = RecoveryReader(str(tmp_path))
    assert sorted(reader.mirror_minutes()["minute"].to_pylist()) == [START - DAY, START]
    assert len(reader.rpo_minutes(7)) == 8
    assert file_counts == [2, 8]


def test_group_and_producer_minutes_are_read(tmp_path: Path) -> None:
    put(tmp_path, tables.GROUP_MINUTES, [group_minute("a", "b", "g", START, ready=None)])
    put(tmp_path, tables.PRODUCER_MINUTES, [producer_minute("a", START)])
    reader = RecoveryReader(str(tmp_path))
    assert reader.has_rows
    assert reader.group_minutes().select(["group_id", "ready"]).to_pylist() == [
        {"group_id": "g", "ready": None}
    ]
    assert reader.producer_minutes()["records_per_s"].to_pylist() == [4_000.0]


def test_the_newest_closed_week_and_the_newest_open_week_are_read(tmp_path: Path) -> None:
    weeks = [WEEK - timedelta(days=7 * back) for back in range(4)]
    put(
        tmp_path,
        tables.RECOVERY_WEEKS,
        [week_row(week, "rpo_s", "fleet", closed=week != WEEK) for week in weeks],
    )
    assert sorted(row["week"] for row in RecoveryReader(str(tmp_path)).weeks()) == weeks[1::-1]


def test_drills_are_newest_first_and_limited(tmp_path: Path) -> None:
    rows = [
        drill(START + timedelta(minutes=number), f"g{number % 3}") for number in range(MAX_DRILL_ROWS + 5)
    ]
    put(tmp_path, tables.DRILLS, rows)
    drills = RecoveryReader(str(tmp_path)).drills()
    assert len(drills) == MAX_DRILL_ROWS
    assert drills[0]["at"] == rows[-1]["at"]


def test_every_opening_and_closing_of_a_finding_is_read(tmp_path: Path) -> None:
    opening = finding(START, "MIRROR_STALE", "a", "b")
    put(tmp_path, tables.RECOVERY_FINDINGS, [opening, opening | {"at": minute(3), "opens": False}])
    assert len(RecoveryReader(str(tmp_path)).findings()) == 2


def test_a_broken_table_raises_a_one_line_error(tmp_path: Path) -> None:
    put(tmp_path, tables.GROUP_MINUTES, [group_minute("a", "b", "g", START)])
    (commit,) = (tmp_path / "recovery/group_minutes/_delta_log").glob("*.json")
    commit.write_text("{broken")
    with pytest.raises(UnreadableError, match=r"^recovery/group_minutes: [^\n]+$"):
        RecoveryReader(str(tmp_path)).group_minutes()
