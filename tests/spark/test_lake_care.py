"""Expiry removes old days without changing what is computed from others; compaction merges small files."""

import os
import shutil
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from pyspark.sql import SparkSession

from fleetgauge_core.contract import PROBE_MINUTE
from fleetgauge_core.fleet import Fleet
from fleetgauge_core.lake.table_snapshot import read_snapshot
from fleetgauge_core.tables import (
    BROKER_MINUTES,
    CLUSTER_MINUTES,
    CLUSTER_WEEKS,
    FLEET_WEEKS,
    PIPELINE_TABLES,
    PROBE_MINUTES,
    QUALITY,
    QUARANTINE,
    Table,
)
from fleetgauge_pipelines.io import lake as lake_module
from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.jobs.batch import BatchResult, Pipeline
from fleetgauge_pipelines.jobs.table_maintenance import DailyCompaction, compact_tables, expire_days
from tests.spark.agreement import assert_tables_equal, write_rows
from tests.spark.broken import Record, good_record
from tests.spark.lakes import delta, opened, raw_frame, rows

DAY, MINUTE = timedelta(days=1), timedelta(minutes=1)
#: The second day is the first one that stays.
MIDNIGHT = datetime(2026, 4, 8, tzinfo=UTC)
FIRST_KEPT, EXPIRED = MIDNIGHT.date(), (MIDNIGHT - DAY).date()
CLOCK = MIDNIGHT + timedelta(hours=1)
FLEET = Fleet.model_validate(
    {
        "clusters": [
            {"id": "orders", "bootstrap": "orders:9092", "since": (MIDNIGHT - 20 * MINUTE).isoformat()}
        ]
    }
)
RECORDS = [good_record(number, MIDNIGHT + at * MINUTE) for number, at in enumerate((-15, 5, 20))]


def process(spark: SparkSession, pipeline: Pipeline, name: str, *records: Record) -> BatchResult:
    values = [PROBE_MINUTE.encode(record) for record in records]
    return pipeline.process(raw_frame(spark, values), name, CLOCK)


def restarted(spark: SparkSession, lake: Lake) -> Pipeline:
    pipeline = Pipeline(spark, lake, FLEET)
    pipeline.open()
    return pipeline


def of_day(folder: Path, table: Table, day: date) -> list[Mapping[str, Any]]:
    day_rows = [row for row in rows(folder, table) if row["day"] == day]
    return sorted(day_rows, key=lambda row: tuple(str(row[name]) for name in table.key))


@pytest.fixture(scope="module")
def first_batch(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake after its first batch."""
    folder = tmp_path_factory.mktemp("first") / "lake"
    _, pipeline = opened(spark, folder, FLEET)
    process(spark, pipeline, "first", *RECORDS)
    return folder


@pytest.fixture
def lake(spark: SparkSession, first_batch: Path, tmp_path: Path) -> Lake:
    """A lake in ``tmp_path``, after its first batch."""
    return Lake(spark, str(shutil.copytree(first_batch, tmp_path, dirs_exist_ok=True)))


def test_records_of_expired_days_are_refused_and_other_days_are_computed_as_before(
    spark: SparkSession, lake: Lake, tmp_path: Path
) -> None:
    before = of_day(tmp_path, BROKER_MINUTES, EXPIRED)
    assert before

    expire_days(lake, {PROBE_MINUTES: FIRST_KEPT}, lambda *_: None)
    late, too_late = good_record(4, MIDNIGHT + 6 * MINUTE), good_record(5, MIDNIGHT - MINUTE)
    outcome = process(spark, restarted(spark, lake), "late", too_late, late)

    assert (outcome.ingested.stored, outcome.ingested.quarantined) == (1, 1)
    assert [row["reason"] for row in rows(tmp_path, QUARANTINE)] == ["expired"]
    assert of_day(tmp_path, PROBE_MINUTES, EXPIRED) == []
    assert of_day(tmp_path, BROKER_MINUTES, EXPIRED) == before
    assert_tables_equal(tmp_path, [*RECORDS, late], FLEET, CLOCK)


def test_expired_minutes_are_not_recomputed_and_their_weeks_do_not_change(
    spark: SparkSession, lake: Lake, tmp_path: Path
) -> None:
    """Not even where silver begins with a record that is older than the first one it knows,
    which brings everything since the cluster's `since`."""
    weeks = {table: rows(tmp_path, table) for table in (CLUSTER_WEEKS, FLEET_WEEKS)}

    kept = dict.fromkeys((PROBE_MINUTES, BROKER_MINUTES, CLUSTER_MINUTES), FIRST_KEPT)
    expire_days(lake, kept, lambda *_: None)
    early = MIDNIGHT + 2 * MINUTE
    outcome = process(spark, restarted(spark, lake), "early", good_record(4, early))

    assert (outcome.ingested.stored, outcome.gold_rows_changed) == (1, 0)
    for table in (BROKER_MINUTES, CLUSTER_MINUTES):
        minutes = {row["minute"] for row in rows(tmp_path, table)}
        assert min(minutes) == MIDNIGHT
        assert early in minutes
    assert {table: rows(tmp_path, table) for table in weeks} == weeks
    assert all(delta(tmp_path, table).metadata().configuration["fleetgauge.keptFrom"] for table in kept)


def test_files_of_batches_that_failed_are_invisible_until_vacuum_deletes_them(
    spark: SparkSession, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One batch fails before bronze is committed, one before silver is."""
    new = good_record(4, MIDNIGHT + 6 * MINUTE)
    before = {table: rows(tmp_path, table) for table in (PROBE_MINUTES, BROKER_MINUTES)}
    for commits in (0, 1):
        with monkeypatch.context() as patch:
            _fail_after(patch, commits)
            with pytest.raises(BrokenOffError):
                process(spark, restarted(spark, lake), "broken off", new)
        assert rows(tmp_path, BROKER_MINUTES) == before[BROKER_MINUTES]
    left = {table: _find_unreferenced(tmp_path, table) for table in (PROBE_MINUTES, BROKER_MINUTES)}
    assert all(left.values())

    process(spark, restarted(spark, lake), "repeated", new)
    assert_tables_equal(tmp_path, [*RECORDS, new], FLEET, CLOCK)
    lake.vacuum(PROBE_MINUTES)
    assert _find_unreferenced(tmp_path, PROBE_MINUTES) >= left[PROBE_MINUTES], "a task may still use them"
    for table, files in left.items():
        for file in files:
            os.utime(file, (0, 0))
        lake.vacuum(table)
        assert not _find_unreferenced(tmp_path, table) & files
    assert_tables_equal(tmp_path, [*RECORDS, new], FLEET, CLOCK)


class BrokenOffError(Exception):
    """Simulates a killed process."""


def _fail_after(monkeypatch: pytest.MonkeyPatch, commits: int) -> None:
    """Let the commit of a large table fail that follows ``commits`` successful ones."""
    left, commit = iter(range(commits)), lake_module.commit_files

    def commit_or_fail(*arguments: Any) -> None:
        if next(left, None) is None:
            raise BrokenOffError
        commit(*arguments)

    monkeypatch.setattr(lake_module, "commit_files", commit_or_fail)


def _find_unreferenced(folder: Path, table: Table) -> set[Path]:
    """Return the data files of a table that its newest version does not name."""
    named = {Path(unquote(uri)) for uri in delta(folder, table).file_uris()}
    return (
        set((folder / table.path).rglob("*.parquet"))
        - named
        - set((folder / table.path / "_delta_log").iterdir())
    )


def test_compaction_leaves_one_file_per_day_and_keeps_every_row(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, str(tmp_path))
    lake.create_tables()
    days = [EXPIRED, FIRST_KEPT]
    for number in range(3):
        for day in days:
            _append(tmp_path, CLUSTER_MINUTES, day, number)
        _append(tmp_path, QUALITY, None, number)
    for bad_minutes in range(2):
        week = {"cluster_id": "orders", "week": FIRST_KEPT, "revision": 0, "bad_minutes": bad_minutes}
        lake.table_store(CLUSTER_WEEKS).update(week)
    retention = {"delta.deletedFileRetentionDuration": "interval 0 hours"}
    delta(tmp_path, CLUSTER_WEEKS).alter.set_table_properties(retention)
    before = {table: read_snapshot(str(tmp_path), table) for table in PIPELINE_TABLES}
    parts = {table: snapshot.days_to_compact(days[0]) for table, snapshot in before.items() if snapshot.files}
    steps: list[tuple[str, int, int]] = []

    compact_tables(lake, parts, lambda *step: steps.append(step))

    after = {table: read_snapshot(str(tmp_path), table) for table in parts}
    assert {table: (len(snapshot.files), snapshot.rows) for table, snapshot in after.items()} == {
        CLUSTER_MINUTES: (4, 6),
        QUALITY: (1, 3),
        CLUSTER_WEEKS: (1, 1),
    }
    assert len([*(tmp_path / CLUSTER_WEEKS.path).rglob("*.parquet")]) == 1
    assert len(rows(tmp_path, CLUSTER_MINUTES)) == 6
    assert ("silver/cluster_minutes", 1, 1) in steps


@pytest.mark.parametrize(("files", "left"), [(8, 8), (9, 1)])
def test_each_table_of_the_closed_day_is_compacted_once_between_batches(
    spark: SparkSession, tmp_path: Path, files: int, left: int
) -> None:
    lake = Lake(spark, str(tmp_path))
    lake.create_tables()
    closed, clock = EXPIRED, CLOCK
    for number in range(files):
        _append(tmp_path, BROKER_MINUTES, closed, number)
    compaction = DailyCompaction(lake)

    behind = compaction.compact_next_table(clock - timedelta(minutes=6), clock)
    asleep = compaction.compact_next_table(None, clock)
    done = [compaction.compact_next_table(clock, clock) for _ in range(len(PIPELINE_TABLES) + 1)]

    assert (behind, asleep) == (None, None)
    assert [portion for portion in done if portion] == [(BROKER_MINUTES, closed)] * (left == 1)
    assert len(read_snapshot(str(tmp_path), BROKER_MINUTES).files) == left
    version = delta(tmp_path, BROKER_MINUTES).version()
    _append(tmp_path, BROKER_MINUTES, closed, files)
    assert compaction.compact_next_table(clock, clock) is None
    assert delta(tmp_path, BROKER_MINUTES).version() == version + 1


def _append(folder: Path, table: Table, day: date | None, number: int) -> None:
    """Append a row in a file of its own."""
    values = {"cluster_id": str(number), "check_id": str(number), "day": day}
    write_rows(folder, table, [values])
