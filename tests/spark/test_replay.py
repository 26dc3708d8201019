"""What was mended leaves quarantine for the tables, once, whenever the replay breaks off."""

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
from fleetgauge_core.lake.quarantine_view import Selection
from fleetgauge_core.tables import PROBE_MINUTES, QUARANTINE
from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.jobs import quarantine_cli
from fleetgauge_pipelines.jobs.batch import Pipeline
from fleetgauge_pipelines.jobs.quarantine import run_replay
from tests.spark.broken import Record, conflicting, good_record
from tests.spark.lakes import SOURCE, opened, raw_frame, rows, versions
from tests.spark.test_pipeline_agrees_with_oracle import assert_tables_equal

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
    """A lake whose quarantine holds what a mend helps and what it does not."""

    spark: SparkSession
    folder: Path

    @property
    def lake(self) -> Lake:
        return Lake(self.spark, str(self.folder))

    def reasons(self) -> dict[str, str]:
        return {row["source"]: row["reason"] for row in rows(self.folder, QUARANTINE)}


@pytest.fixture(scope="module")
def quarantined(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The lake as the mend finds it."""
    folder = tmp_path_factory.mktemp("quarantined") / "lake"
    encoded = [PROBE_MINUTE.encode(one) for one in (*TAKEN, *OF_CARTS, TOO_OLD, NEGATIVE)]
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
    """A kill, as far as one process can play it."""


def _break_off_after(monkeypatch: pytest.MonkeyPatch, writes: int) -> None:
    """The write after so many never happens, nor does anything behind it."""
    left = iter(range(writes))

    def spending(method: Any) -> Any:
        def write(*arguments: Any) -> Any:
            if next(left, None) is None:
                raise BrokenOffError
            return method(*arguments)

        return write

    for name in ("append", "_merge"):
        monkeypatch.setattr(Lake, name, spending(getattr(Lake, name)))


def _assert_moved(scene: Scene, records: Sequence[Record]) -> None:
    assert scene.reasons() == STAY
    stored = sorted(row["sequence"] for row in rows(scene.folder, PROBE_MINUTES))
    assert stored == sorted(record["sequence"] for record in records)
    assert_tables_equal(scene.lake, records, Fleet.model_validate(MENDED), CLOCK)


def test_a_replay_broken_off_at_any_write_and_repeated_moves_what_is_good_now_once(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each attempt dies after one more write of its own, the first before any."""
    fleet = Fleet.model_validate(MENDED)
    of_carts = {SOURCE.format(n): "unknown_cluster" for n in (3, 4, 5, 7, 9)}
    assert scene.reasons() == STAY | of_carts | {SOURCE.format(6): "too_old"}
    attempts, done = 0, False
    while not done:
        with monkeypatch.context() as patch:
            _break_off_after(patch, min(attempts, 1))
            try:
                run_replay(scene.spark, scene.lake, fleet, Selection(), CLOCK)
                done = True
            except BrokenOffError:
                attempts += 1

    assert attempts >= 6, "fewer writes than tables show that nothing was broken off"
    _assert_moved(scene, [*TAKEN, *OF_CARTS, TOO_OLD])
    before = versions(scene.folder)
    again = run_replay(scene.spark, scene.lake, fleet, Selection(), CLOCK)
    assert again is not None
    assert (again.released, again.ingested.quarantined) == (0, len(STAY))
    assert {path for path, v in versions(scene.folder).items() if v != before[path]} <= {"ops/quality"}


def test_a_good_record_of_the_same_source_drives_no_other_out_of_quarantine(scene: Scene) -> None:
    """Files of two folders may share a name."""
    before = scene.reasons()
    pipeline = Pipeline(scene.spark, scene.lake, Fleet.model_validate(MENDED))
    pipeline.open()

    other = PROBE_MINUTE.encode(good_record(99, MINUTE))
    outcome = pipeline.process(raw_frame(scene.spark, [other], first=3), "other", CLOCK)

    assert (outcome.ingested.stored, outcome.released) == (1, 0)
    assert scene.reasons() == before


def test_the_command_replays_what_is_selected_and_counts_what_left(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "fleet.yaml"
    config.write_text(yaml.safe_dump({"lake": str(scene.folder), **MENDED}))
    monkeypatch.setattr(quarantine_cli, "writing", lambda _: nullcontext((scene.spark, scene.lake)))

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
    assert "no row 'no/such/1' in quarantine" in absent.stderr
    one = json.loads(replay("--source", SOURCE.format(6)).stdout)
    assert (one["moved"], one["still_quarantined"]) == (1, 0)
