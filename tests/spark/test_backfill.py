"""A backfill is cut in pieces, stopped, gone on with and repeated, and the tables are those of one batch."""

import json
from collections.abc import Mapping
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from pyspark.sql import SparkSession

from fleetgauge_core.fleet import Fleet
from fleetgauge_core.runtime.shutdown import Stopping
from fleetgauge_core.tables import ALL, QUALITY, Table
from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.jobs import backfill, backfill_cli
from fleetgauge_pipelines.jobs.backfill import records_in, run_backfill
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
OF_RECORDS = tuple(table for table in ALL if table is not QUALITY)


def content(lake: Path, table: Table) -> list[Mapping[str, Any]]:
    """Rows without the times at which they were made, bronze's sources included, in order."""
    names = [n for n in table.names if n not in ("ingested_at", "computed_at", "at")]
    return sorted(({name: row[name] for name in names} for row in rows(lake, table)), key=str)


def assert_equal_lakes(one: Path, other: Path) -> None:
    for table in OF_RECORDS:
        assert content(one, table) == content(other, table), table.path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "records"
    folder.mkdir()
    write_avro(folder / "a.avro", [*GOOD[:14], LACKING, OTHER[1]])
    write_parquet(folder / "b.parquet", [*GOOD[12:26], OTHER[0]])
    write_avro(folder / "c.avro", GOOD[24:], codec="deflate")
    return folder


class Watch:
    """Remembers what it was told and asks to end after so many pieces."""

    def __init__(self, after: int) -> None:
        self.stopping = Stopping()
        self.told: list[tuple[int, int, bool]] = []
        self._after = after

    def __call__(self, done: int, of: int, outcome: object) -> None:
        self.told.append((done, of, outcome is not None))
        if done == self._after:
            self.stopping.set()


def test_pieces_of_files_stopped_and_gone_on_with_make_the_tables_of_one_batch(
    spark: SparkSession, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once, in_pieces = tmp_path / "at-once", tmp_path / "in-pieces"
    records = records_in(folder)
    [one] = backfilled(spark, Lake(spark, str(at_once)), FLEET, records, CLOCK).outcomes
    assert (one.ingested.stored, one.ingested.replayed, one.ingested.quarantined) == (36, 4, 3)
    monkeypatch.setattr(backfill, "PIECE_BYTES", 1)
    lake = Lake(spark, str(in_pieces))

    watch = Watch(after=1)
    begun = run_backfill(spark, lake, FLEET, records, CLOCK, False, watch.stopping, watch)
    rest = backfilled(spark, lake, FLEET, records, CLOCK)

    assert watch.told == [(0, 3, False), (1, 3, True)]
    assert (len(begun.outcomes), begun.skipped, begun.left) == (1, 0, 2)
    assert (len(rest.outcomes), rest.skipped, rest.left) == (2, 1, 0)
    assert_equal_lakes(at_once, in_pieces)

    before = versions(in_pieces)
    again = backfilled(spark, lake, FLEET, records, CLOCK, again=True)
    assert (len(again.outcomes), again.skipped, again.gold_rows_changed) == (3, 0, 0)
    after = versions(in_pieces)
    assert {path for path, v in after.items() if v != before[path]} <= {QUALITY.path}
    skipped = backfilled(spark, lake, FLEET, records, CLOCK)
    assert (len(skipped.outcomes), skipped.skipped, skipped.gold_rows_changed) == (0, 3, 0)
    assert versions(in_pieces) == after
    closed = backfilled(spark, lake, FLEET, records, CLOCK + timedelta(days=14))
    assert not closed.outcomes
    assert closed.gold_rows_changed, "weeks close with time, whether or not there is a record"


def test_a_piece_that_broke_off_is_taken_again_and_a_file_that_was_written_to_as_well(
    spark: SparkSession, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once, broken_off = tmp_path / "at-once", tmp_path / "broken-off"
    (folder / "a.avro").unlink()
    lake = Lake(spark, str(broken_off))

    def die(_: object, table: Table, __: object) -> None:
        raise OSError(f"killed before {table.path}")

    with monkeypatch.context() as patch:
        patch.setattr(Lake, "append", die)
        with pytest.raises(OSError, match="bronze/probe_minutes"):
            backfilled(spark, lake, FLEET, records_in(folder), CLOCK)

    [piece] = backfilled(spark, lake, FLEET, records_in(folder), CLOCK).outcomes
    assert piece.ingested.stored == 25
    write_avro(folder / "c.avro", GOOD[24:35])
    [changed] = backfilled(spark, lake, FLEET, records_in(folder), CLOCK).outcomes
    assert (changed.ingested.received, changed.ingested.replayed) == (11, 11)
    write_avro(folder / "c.avro", GOOD[24:])
    backfilled(spark, Lake(spark, str(at_once)), FLEET, records_in(folder), CLOCK)
    assert_equal_lakes(at_once, broken_off)


def test_the_command_sums_its_pieces_and_says_where_it_was_ended(
    spark: SparkSession, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "fleet.yaml"
    config.write_text(yaml.safe_dump(DOCUMENT))
    lake = Lake(spark, str(tmp_path / "lake"))
    monkeypatch.setattr(backfill_cli, "writing", lambda _: nullcontext((spark, lake)))
    monkeypatch.setattr(backfill, "PIECE_BYTES", 1)
    (folder / "a.avro").unlink()
    command = ["--from", str(folder), "--config", str(config), "--clock", "2026-04-01T12:00:30Z", "--json"]

    asked = Stopping()
    asked.set()
    with monkeypatch.context() as patch:
        patch.setattr(backfill_cli, "stopping_on_signals", lambda: asked)
        ended = CliRunner().invoke(backfill_cli.backfill, command, env={"COLUMNS": "200"})
    assert (ended.exit_code, ended.stdout) == (130, "")
    assert "ended with 0 of 2 pieces taken" in ended.stderr

    monkeypatch.setattr(backfill_cli, "stopping_on_signals", Stopping)
    done = json.loads(CliRunner().invoke(backfill_cli.backfill, command).stdout)
    assert (done["pieces"], done["pieces_skipped"], done["batches"]) == (2, 0, 2)
    assert (done["received"], done["stored"], done["replayed"]) == (27, 25, 2)
    repeated = json.loads(CliRunner().invoke(backfill_cli.backfill, command).stdout)
    assert repeated == dict.fromkeys(repeated, 0) | {"pieces_skipped": 2}
