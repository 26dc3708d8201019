"""What the log says of a table's files."""

from datetime import date
from pathlib import Path

from fleetgauge_core import tables
from fleetgauge_core.lake.table_files import (
    SMALL_BYTES,
    Contents,
    File,
    contents,
)
from tests.browser.lake import put

FIRST, SECOND, THIRD = (date(2026, 3, day) for day in (1, 2, 3))


def test_a_table_that_is_not_there_has_no_version_and_no_files(tmp_path: Path) -> None:
    assert contents(str(tmp_path), tables.QUALITY) == Contents(None, ())


def test_rows_bytes_and_days_are_those_of_the_newest_version(tmp_path: Path) -> None:
    for days in ([FIRST, SECOND], [SECOND, SECOND]):
        put(tmp_path, tables.CLUSTER_MINUTES, [{"cluster_id": "a", "day": day} for day in days])
    found = contents(str(tmp_path), tables.CLUSTER_MINUTES)
    assert (found.version, found.rows, found.days) == (1, 4, [FIRST, SECOND])
    files = (tmp_path / tables.CLUSTER_MINUTES.path).glob("day=*/*.parquet")
    assert found.bytes == sum(file.stat().st_size for file in files)
    assert (found.small_files, found.scattered(FIRST), found.scattered(SECOND)) == (1, [], [SECOND])
    assert found.before(SECOND).rows == 1


def test_a_table_without_days_is_one_portion(tmp_path: Path) -> None:
    for name in "abc":
        put(tmp_path, tables.QUALITY, [{"check_id": name}])
    found = contents(str(tmp_path), tables.QUALITY)
    assert (found.rows, found.days, found.small_files, found.scattered(FIRST)) == (3, [], 2, [None])
    assert found.before(THIRD).files == ()


def test_large_files_are_not_scattered() -> None:
    files = tuple(File(FIRST, size, 1) for size in (SMALL_BYTES, SMALL_BYTES, SMALL_BYTES - 1))
    assert (Contents(1, files).small_files, Contents(1, files).scattered(FIRST)) == (0, [])
