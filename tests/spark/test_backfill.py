"""A backfill in pieces, stopped, continued and repeated, gives the same tables as one batch."""

import json
from collections.abc import Mapping
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from fleetgauge_core.fleet import Fleet
from fleetgauge_core.runtime.shutdown import ShutdownFlag
from fleetgauge_core.tables import ALL_TABLES, QUALITY, Table
from fleetgauge_pipelines.io import lake as lake_module
from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.jobs import backfill, backfill_cli, backfill_command
from fleetgauge_pipelines.jobs.backfill import open_record_folder, run_backfill
from tests.spark.broken import good_record
from tests.spark.lakes import backfilled, rows, versions
from tests.spark.test_avro_files import write as write_avro
from tests.spark.test_parquet_files import write as write_parquet

CLOCK = datetime(2026, 4, 1, 12, 0, 30, tzinfo=UTC)
MINUTE = CLOCK.replace(second=0) - timedelta(minutes=30)
DOCUMENT = {"clusters": [{"id": "orders", "bootstrap": "orders:9092"}]}
FLEET = Fleet.model_validate(DOCUMENT)
GOOD = [
    good_record(n, MINUTE + n // 6 * timedelta(minutes=1), "orders", n % 3 + 1, ("client", "leader")[n % 2])
    for n in range(36)
]
#: Other content under the run and sequence of a record that another file has as well.
OTHER = [GOOD[n] | {"lost": 1} for n in (3, 15)]
LACKING = GOOD[1] | {"sequence": 900, "ack_us": (1,)}
#: Verdicts are a batch's: they tell how far silver reached when it was judged.
OF_RECORDS = tuple(table for table in ALL_TABLES if table is not QUALITY)


def content(lake: Path, table: Table) -> list[Mapping[str, Any]]:
    """Return sorted rows without their computation times, with bronze's sources."""
    names = [n for n in table.column_names if n not in ("ingested_at", "computed_at", "at")]
    return sorted(({name: row[name] for name in names} for row in rows(lake, table)), key=str)


def assert_equal_lakes(first_lake: Path, second_lake: Path) -> None:
    for table in OF_RECORDS:
        assert content(first_lake, table) == content(second_lake, table), table.path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "records"
    folder.mkdir()
    write_avro(folder / "a.avro", [*GOOD[:14], LACKING, OTHER[1]])
    write_parquet(folder / "b.parquet", [*GOOD[12:26], OTHER[0]])
    write_avro(folder / "c.avro", GOOD[24:], codec="deflate")
    return folder


class StopAfter:
    """Records progress calls, and requests a shutdown after some pieces."""

    def __init__(self, after: int) -> None:
        self.shutdown = ShutdownFlag()
        self.calls: list[tuple[int, int, bool]] = []
        self._after = after

    def __call__(self, done: int, of: int, outcome: object) -> None:
        self.calls.append((done, of, outcome is not None))
        if done == self._after:
            self.shutdown.set()


def test_a_stopped_and_continued_backfill_gives_the_tables_of_one_batch(
    spark: SparkSession, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once, in_pieces = tmp_path / "at-once", tmp_path / "in-pieces"
    records = open_record_folder(folder)
    [batch] = backfilled(spark, Lake(spark, str(at_once)), FLEET, records, CLOCK).batches
    assert (batch.ingested.stored, batch.ingested.replayed, batch.ingested.quarantined) == (36, 4, 3)
    monkeypatch.setattr(backfill, "PIECE_BYTES", 1)
    lake = Lake(spark, str(in_pieces))

    watch = StopAfter(after=1)
    begun = run_backfill(spark, lake, FLEET, records, (), CLOCK, False, watch.shutdown, watch)
    rest = backfilled(spark, lake, FLEET, records, CLOCK)

    assert watch.calls == [(0, 3, False), (1, 3, True)]
    assert (len(begun.batches), begun.skipped, begun.remaining) == (1, 0, 2)
    assert (len(rest.batches), rest.skipped, rest.remaining) == (2, 1, 0)
    assert_equal_lakes(at_once, in_pieces)

    before = versions(in_pieces)
    skipped = backfilled(spark, lake, FLEET, records, CLOCK)
    assert (len(skipped.batches), skipped.skipped, skipped.gold_rows_changed) == (0, 3, 0)
    assert versions(in_pieces) == before
    closed = backfilled(spark, lake, FLEET, records, CLOCK + timedelta(days=14))
    assert not closed.batches
    assert closed.gold_rows_changed, "weeks close with time, whether or not there is a record"


@pytest.mark.thorough
def test_pieces_that_are_processed_again_change_no_table(
    spark: SparkSession, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backfill, "PIECE_BYTES", 1)
    lake, records = Lake(spark, str(tmp_path / "lake")), open_record_folder(folder)
    backfilled(spark, lake, FLEET, records, CLOCK)
    before = versions(tmp_path / "lake")
    again = backfilled(spark, lake, FLEET, records, CLOCK, again=True)
    assert (len(again.batches), again.skipped, again.gold_rows_changed) == (3, 0, 0)
    assert {path for path, v in versions(tmp_path / "lake").items() if v != before[path]} <= {QUALITY.path}


def test_a_failed_piece_and_a_modified_file_are_processed_again(
    spark: SparkSession, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once, broken_off = tmp_path / "at-once", tmp_path / "broken-off"
    (folder / "a.avro").unlink()
    lake = Lake(spark, str(broken_off))

    def die(table: DeltaTable, *_: object) -> None:
        raise OSError(f"killed before {table.table_uri}")

    with monkeypatch.context() as patch:
        patch.setattr(lake_module, "commit_files", die)
        with pytest.raises(OSError, match="bronze/probe_minutes"):
            backfilled(spark, lake, FLEET, open_record_folder(folder), CLOCK)

    [piece] = backfilled(spark, lake, FLEET, open_record_folder(folder), CLOCK).batches
    assert piece.ingested.stored == 25
    write_avro(folder / "c.avro", GOOD[24:35])
    [changed] = backfilled(spark, lake, FLEET, open_record_folder(folder), CLOCK).batches
    assert (changed.ingested.received, changed.ingested.replayed) == (11, 11)
    write_avro(folder / "c.avro", GOOD[24:])
    backfilled(spark, Lake(spark, str(at_once)), FLEET, open_record_folder(folder), CLOCK)
    assert_equal_lakes(at_once, broken_off)


def test_the_command_adds_up_its_pieces_and_reports_where_it_stopped(
    spark: SparkSession, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "fleet.yaml"
    config.write_text(yaml.safe_dump(DOCUMENT))
    lake = Lake(spark, str(tmp_path / "lake"))
    monkeypatch.setattr(backfill_command, "open_lake_for_pipeline", lambda *_: nullcontext((spark, lake)))
    monkeypatch.setattr(backfill, "PIECE_BYTES", 1)
    (folder / "a.avro").unlink()
    command = ["--from", str(folder), "--config", str(config), "--clock", "2026-04-01T12:00:30Z", "--json"]

    asked = ShutdownFlag()
    asked.set()
    with monkeypatch.context() as patch:
        patch.setattr(backfill_command, "supervise_process", lambda _: nullcontext(asked))
        ended = CliRunner().invoke(backfill_cli.backfill, command, env={"COLUMNS": "200"})
    assert (ended.exit_code, ended.stdout) == (130, "")
    assert "stopped after 0 of 2 pieces" in ended.stderr

    done = json.loads(CliRunner().invoke(backfill_cli.backfill, command).stdout)
    assert (done["pieces"], done["pieces_skipped"], done["batches"]) == (2, 0, 2)
    assert (done["received"], done["stored"], done["replayed"]) == (27, 25, 2)
    repeated = json.loads(CliRunner().invoke(backfill_cli.backfill, command).stdout)
    assert repeated == dict.fromkeys(repeated, 0) | {"pieces_skipped": 2}
