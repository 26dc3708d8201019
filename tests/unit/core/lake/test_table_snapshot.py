"""Tests of the data files that the Delta log lists."""

from datetime import date
from pathlib import Path

from fleetgauge_core import tables
from fleetgauge_core.lake.table_snapshot import (
    SMALL_BYTES,
    DataFile,
    TableSnapshot,
    read_snapshot,
)
from tests.browser.lake import put

FIRST, SECOND, THIRD = (date(2026, 3, day) for day in (1, 2, 3))


def test_a_missing_table_has_no_version_and_no_files(tmp_path: Path) -> None:
    assert read_snapshot(str(tmp_path), tables.QUALITY) == TableSnapshot(None, ())


def test_a_snapshot_has_the_rows_bytes_and_days_of_the_newest_version(tmp_path: Path) -> None:
    for days in ([FIRST, SECOND], [SECOND, SECOND]):
        put(tmp_path, tables.CLUSTER_MINUTES, [{"cluster_id": "a", "day": day} for day in days])
    snapshot = read_snapshot(str(tmp_path), tables.CLUSTER_MINUTES)
    assert (snapshot.version, snapshot.rows, snapshot.days) == (1, 4, [FIRST, SECOND])
    files = (tmp_path / tables.CLUSTER_MINUTES.path).glob("day=*/*.parquet")
    assert snapshot.bytes == sum(file.stat().st_size for file in files)
    assert (snapshot.small_files, snapshot.days_to_compact(FIRST), snapshot.days_to_compact(SECOND)) == (
        1,
        [],
        [SECOND],
    )
    assert snapshot.before_day(SECOND).rows == 1


def test_a_table_without_days_is_compacted_as_a_whole(tmp_path: Path) -> None:
    for name in "abc":
        put(tmp_path, tables.QUALITY, [{"check_id": name}])
    snapshot = read_snapshot(str(tmp_path), tables.QUALITY)
    assert (snapshot.rows, snapshot.days, snapshot.small_files, snapshot.days_to_compact(FIRST)) == (
        3,
        [],
        2,
        [None],
    )
    assert snapshot.before_day(THIRD).files == ()


def test_large_files_are_not_compacted() -> None:
    files = tuple(DataFile(FIRST, size, 1) for size in (SMALL_BYTES, SMALL_BYTES, SMALL_BYTES - 1))
    assert (TableSnapshot(1, files).small_files, TableSnapshot(1, files).days_to_compact(FIRST)) == (0, [])
