"""A replay moves records that are valid now from quarantine to the tables once, even after failures."""

import json
import shutil
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from pyspark.sql import SparkSession

from fleetgauge_core.contract import PROBE_MINUTE
from fleetgauge_core.fleet import Fleet
from fleetgauge_core.lake.quarantine_view import QuarantineFilter
from fleetgauge_core.lake.table_store import TableStore
from fleetgauge_core.tables import PROBE_MINUTES, QUARANTINE
from fleetgauge_pipelines.io import lake
from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.jobs import quarantine_cli, quarantine_command
from fleetgauge_pipelines.jobs.batch import BatchResult, Pipeline
from fleetgauge_pipelines.jobs.quarantine import run_replay
from tests.spark.agreement import assert_tables_equal
from tests.spark.broken import Record, conflicting, good_record
from tests.spark.lakes import SOURCE, opened, raw_frame, rows, versions

CLOCK = datetime(2026, 4, 1, 12, 0, 30, tzinfo=UTC)
MINUTE = CLOCK.replace(second=0) - timedelta(minutes=10)
OLDEST = MINUTE - timedelta(minutes=20)
ORDERS, CARTS = ({"id": name, "bootstrap": f"{name}:9092"} for name in ("orders", "carts"))
FLEET = {"clusters": [ORDERS]}
MENDED = {"clusters": [ORDERS, CARTS]}

TAKEN = [good_record(n, MINUTE + n * timedelta(minutes=1)) for n in range(3)]
OF_CARTS = [good_record(10 + n, MINUTE + n * timedelta(minutes=1), "carts") for n in range(3)]
TOO_OLD = good_record(20, OLDEST - timedelta(minutes=5))
NEGATIVE = good_record(30, MINUTE, "carts") | {"ack_us": tuple(range(-1, 99))}
#: A file that lacks a field gives records of a schema of its own.
FOREIGN = b"\xc3\x01" + bytes(8) + b"some body"


@dataclass(frozen=True, slots=True)
class Scene:
    """A lake whose quarantine holds records that a fix makes valid, and records that stay invalid."""

    spark: SparkSession
    folder: Path

    @property
    def lake(self) -> Lake:
        return Lake(self.spark, str(self.folder))

    def reasons(self) -> dict[str, str]:
        return {row["source"]: row["reason"] for row in rows(self.folder, QUARANTINE)}


@pytest.fixture(scope="module")
def quarantined(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the lake as it is before the fix."""
    folder = tmp_path_factory.mktemp("quarantined") / "lake"
    encoded = [PROBE_MINUTE.encode(record) for record in (*TAKEN, *OF_CARTS, TOO_OLD, NEGATIVE)]
    encoded += [conflicting(TAKEN[0]), conflicting(OF_CARTS[0])]
    _, pipeline = opened(spark, folder, FLEET)
    pipeline.process(raw_frame(spark, encoded), "batch", CLOCK, OLDEST)
    hinted = raw_frame(spark, [FOREIGN, None], first=10).selectExpr(
        "value", "source", "position", "IF(value IS NULL, 'not_decodable', 'missing_field') AS hint"
    )
    pipeline.process(hinted, "files", CLOCK)
    return folder


@pytest.fixture
def scene(spark: SparkSession, quarantined: Path, tmp_path: Path) -> Scene:
    return Scene(spark, shutil.copytree(quarantined, tmp_path / "lake"))


STAY = {
    SOURCE.format(7): "negative_latency",
    SOURCE.format(8): "conflicting_duplicate",
    SOURCE.format(9): "conflicting_duplicate",
    SOURCE.format(10): "missing_field",
    SOURCE.format(11): "not_decodable",
}


class BrokenOffError(Exception):
    """Simulates a killed process."""


def _break_off_after(monkeypatch: pytest.MonkeyPatch, writes: int) -> None:
    """Let the batch fail before the write that follows ``writes`` successful ones."""
    left = iter(range(writes))

    def spending(method: Any) -> Any:
        def write(*arguments: Any) -> Any:
            if next(left, None) is None:
                raise BrokenOffError
            return method(*arguments)

        return write

    for writer, name in (
        (lake, "commit_files"),
        (TableStore, "_append"),
        (TableStore, "_overwrite"),
    ):
        monkeypatch.setattr(writer, name, spending(getattr(writer, name)))


def _assert_moved(scene: Scene, records: Sequence[Record]) -> None:
    assert scene.reasons() == STAY
    stored = sorted(row["sequence"] for row in rows(scene.folder, PROBE_MINUTES))
    assert stored == sorted(record["sequence"] for record in records)
    assert_tables_equal(scene.folder, records, Fleet.model_validate(MENDED), CLOCK)


def _replay(scene: Scene) -> BatchResult | None:
    return run_replay(scene.spark, scene.lake, Fleet.model_validate(MENDED), QuarantineFilter(), CLOCK)


def _assert_repetition_writes_nothing(scene: Scene) -> None:
    before = versions(scene.folder)
    again = _replay(scene)
    assert again is not None
    assert (again.released, again.ingested.quarantined) == (0, len(STAY))
    assert {path for path, v in versions(scene.folder).items() if v != before[path]} <= {"ops/quality"}


def test_a_replay_that_fails_twice_moves_valid_records_once_when_repeated(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It fails once before silver is written, and once before gold is complete."""
    of_carts = {SOURCE.format(n): "unknown_cluster" for n in (3, 4, 5, 7, 9)}
    assert scene.reasons() == STAY | of_carts | {SOURCE.format(6): "too_old"}
    for writes in (1, 3):
        with monkeypatch.context() as patch:
            _break_off_after(patch, writes)
            with pytest.raises(BrokenOffError):
                _replay(scene)
    _replay(scene)
    _assert_moved(scene, [*TAKEN, *OF_CARTS, TOO_OLD])
    _assert_repetition_writes_nothing(scene)


@pytest.mark.thorough
def test_a_replay_that_fails_at_any_write_moves_valid_records_once_when_repeated(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each attempt fails after one more write than the previous one, the first before any write."""
    attempts, done = 0, False
    while not done:
        with monkeypatch.context() as patch:
            _break_off_after(patch, min(attempts, 1))
            try:
                _replay(scene)
                done = True
            except BrokenOffError:
                attempts += 1

    assert attempts >= 6, "fewer writes than tables show that nothing was broken off"
    _assert_moved(scene, [*TAKEN, *OF_CARTS, TOO_OLD])
    _assert_repetition_writes_nothing(scene)


def test_a_valid_record_of_the_same_source_releases_no_other_record(scene: Scene) -> None:
    """Files of two folders may share a name."""
    before = scene.reasons()
    pipeline = Pipeline(scene.spark, scene.lake, Fleet.model_validate(MENDED))
    pipeline.open()

    other = PROBE_MINUTE.encode(good_record(99, MINUTE))
    outcome = pipeline.process(raw_frame(scene.spark, [other], first=3), "other", CLOCK)

    assert (outcome.ingested.stored, outcome.released) == (1, 0)
    assert scene.reasons() == before


def test_the_command_replays_the_selected_rows_and_counts_the_released_ones(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "fleet.yaml"
    config.write_text(yaml.safe_dump({"lake": str(scene.folder), **MENDED}))
    monkeypatch.setattr(
        quarantine_command, "open_lake_for_pipeline", lambda *_: nullcontext((scene.spark, scene.lake))
    )

    def replay(*arguments: str) -> Result:
        always = ("replay", "--config", str(config), "--clock", "2026-04-01T12:00:30Z", "--json")
        return CliRunner().invoke(quarantine_cli.quarantine, [*always, *arguments])

    first = json.loads(replay("--reason", "unknown_cluster").stdout)
    assert (first["moved"], first["still_quarantined"], first["stored"]) == (3, 2, 3)
    assert scene.reasons() == STAY | {SOURCE.format(6): "too_old"}
    nothing = json.loads(replay("--since", "2026-04-02T00:00:00Z").stdout)
    assert set(nothing.values()) == {0}
    absent = replay("--source", "no/such/1")
    assert (absent.exit_code, absent.stdout) == (2, "")
    assert "no matching row with source 'no/such/1' in quarantine" in absent.stderr
    counts = json.loads(replay("--source", SOURCE.format(6)).stdout)
    assert (counts["moved"], counts["still_quarantined"]) == (1, 0)
