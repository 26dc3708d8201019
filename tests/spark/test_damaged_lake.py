"""The stream after a power failure that damaged its checkpoint or its tables, on a real broker."""

import json
import logging
import re
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from shutil import copytree, disk_usage
from typing import Any

import pytest
import yaml
from pyspark.sql import SparkSession

from fleetgauge_core.errors import OperationalError
from fleetgauge_core.lake.log_damage import LOG_FOLDER
from fleetgauge_core.lake.table_store import TableStoreError
from fleetgauge_core.tables import (
    BROKER_MINUTES,
    CLUSTER_MINUTES,
    CLUSTER_WEEKS,
    EVIDENCE,
    FLEET_WEEKS,
    PIPELINE_TABLES,
    PROBE_MINUTES,
    QUALITY,
    Table,
)
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_local.layout import ClusterSpec
from fleetgauge_pipelines.io.lake_errors import LakeFileError, explaining_lake_errors
from tests.damage import Damage, cut, empty, fill_with_zeros, flip_bit, remove
from tests.spark.lakes import content, delta
from tests.spark.streams import Stream
from tests.spark.test_backfill import FLEET

DAMAGES: tuple[Damage, ...] = (empty, cut, flip_bit, remove)
FILES = ("metadata", "sources/0/0", "offsets/1", "offsets/2", "commits/1", "commits/2")
FOLDERS = ("offsets", "commits", "sources", ".")


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with LocalFleet(tmp_path_factory.mktemp("fleet"), (ClusterSpec("carrier", brokers=1),)) as fleet:
        yield fleet.bootstrap("carrier")


@pytest.fixture(scope="module")
def ended_stream(spark: SparkSession, bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Stream:
    """A stream that has ended after three batches of two records."""
    stream = Stream(spark, bootstrap, tmp_path_factory.mktemp("ended") / "lake")
    for _ in range(3):
        stream.send(1, 1)
        stream.run()
    return stream


@pytest.fixture
def stream(ended_stream: Stream, tmp_path: Path) -> Iterator[Stream]:
    """The stream with a copy of its lake; its topics have the records of earlier tests as well."""
    original = ended_stream.folder
    ended_stream.move_to(copytree(original, tmp_path / "lake"))
    yield ended_stream
    ended_stream.move_to(original)


def find_checkpoint(stream: Stream) -> Path:
    return max(
        (stream.folder / "_checkpoints").glob("stream-*"), default=stream.folder / "_checkpoints" / "stream"
    )


def go_on(stream: Stream) -> None:
    """Let the stream read a further record of each partition."""
    stream.send(1, 1)
    stream.run()
    assert stream.sequences() == list(range(stream.sent))
    assert stream.losses() == []


def list_warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def test_a_stream_goes_on_after_its_newest_offsets_were_emptied(
    stream: Stream, caplog: pytest.LogCaptureFixture
) -> None:
    newest = find_checkpoint(stream) / "offsets" / "2"
    empty(newest)
    go_on(stream)
    assert list_warnings(caplog) == [
        f"{newest} is empty: the stream reads again from the last batch that is whole"
    ]
    # The batch whose offsets were lost is read again, and recognised.
    assert stream.counts["replayed"] == 2
    caplog.clear()
    go_on(stream)
    assert list_warnings(caplog) == []


def test_a_stream_without_checkpoints_reads_its_topics_again(
    stream: Stream, caplog: pytest.LogCaptureFixture
) -> None:
    remove(stream.folder / "_checkpoints")
    go_on(stream)
    assert "the stream's checkpoints are gone" in caplog.text
    assert stream.counts["replayed"] == 6


@pytest.mark.thorough
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", FILES)
def test_a_stream_goes_on_whichever_file_is_damaged(stream: Stream, name: str, damage: Damage) -> None:
    damage(find_checkpoint(stream) / name)
    go_on(stream)
    go_on(stream)


@pytest.mark.thorough
@pytest.mark.parametrize("name", FOLDERS)
def test_a_stream_goes_on_whichever_folder_is_gone(stream: Stream, name: str) -> None:
    remove(find_checkpoint(stream) / name)
    go_on(stream)
    go_on(stream)


def damage_generations(stream: Stream, pattern: str, damage: Damage, *, all_of_them: bool) -> None:
    """Begin a second generation, and damage the table that has the topics of both."""
    empty(find_checkpoint(stream) / "offsets" / "2")
    go_on(stream)
    files = sorted((stream.folder / "_checkpoints" / "stream_topics").glob(pattern))
    assert len(files) >= 2
    for file in files if all_of_them else files[-1:]:
        damage(file)


def test_a_stream_goes_on_after_the_generations_of_its_topics_became_zeros(
    stream: Stream, caplog: pytest.LogCaptureFixture
) -> None:
    damage_generations(stream, "*.parquet", fill_with_zeros, all_of_them=True)
    go_on(stream)
    go_on(stream)
    (message,) = [text for text in list_warnings(caplog) if "is repaired" in text]
    assert "stream_topics is repaired: part-" in message
    assert "is no Parquet file" in message


def list_batches(stream: Stream) -> list[str]:
    rows = content(stream.folder, QUALITY)
    return sorted({row["batch"] for row in rows if re.fullmatch(r"stream(-\d+)?/\d+", row["batch"])})


def test_a_generation_whose_row_is_lost_gives_its_number_to_no_other(
    stream: Stream, caplog: pytest.LogCaptureFixture
) -> None:
    """The checkpoint of the first generation was gone, so that the second one began."""
    remove(stream.folder / "_checkpoints" / "stream")
    go_on(stream)
    before = list_batches(stream)
    assert "stream-1/0" in before
    files = (stream.folder / "_checkpoints" / "stream_topics").glob("*.parquet")
    newest = max(files, key=lambda file: file.stat().st_mtime_ns)
    remove(newest)
    go_on(stream)
    assert "gone or damaged: it reads the topics again from their beginning" in caplog.text
    assert set(list_batches(stream)) - set(before) == {"stream-2/0"}
    go_on(stream)


@pytest.mark.parametrize("damaged", [True, False])
def test_the_stream_reads_again_what_a_repair_gave_up_although_its_own_table_was_damaged(
    stream: Stream, damaged: bool
) -> None:
    for file in (stream.folder / "_checkpoints" / "stream_topics").glob("*.parquet") if damaged else ():
        fill_with_zeros(file)
    damage_newest_commit(stream, CLUSTER_MINUTES)
    assert repair(stream, "--accept-loss")[CLUSTER_MINUTES.path]["outcome"] == "lost"
    go_on(stream)
    # All that the lake had.
    assert stream.counts["replayed"] == 6


@pytest.mark.thorough
@pytest.mark.parametrize("damage", [*DAMAGES, fill_with_zeros])
@pytest.mark.parametrize("pattern", ["*.parquet", "_delta_log/*.json"])
@pytest.mark.parametrize("all_of_them", [False, True])
def test_a_stream_goes_on_whatever_happened_to_the_generations_of_its_topics(
    stream: Stream, pattern: str, damage: Damage, all_of_them: bool
) -> None:
    damage_generations(stream, pattern, damage, all_of_them=all_of_them)
    go_on(stream)
    go_on(stream)


def damage_newest_commit(stream: Stream, table: Table) -> Path:
    newest: Path = max((stream.folder / table.path / LOG_FOLDER).glob("*.json"))
    empty(newest)
    return newest


def repair(stream: Stream, *options: str) -> dict[str, Any]:
    """Run `fleetgauge lake repair` in a process of its own, and return what it says of each table."""
    fleet_file = stream.folder.with_name("fleet.yaml")
    fleet_file.write_text(yaml.safe_dump(FLEET.model_dump(mode="json", exclude_defaults=True)))
    command = ("-m", "fleetgauge_core", "lake", "repair", "--config", str(fleet_file), "--json", *options)
    process = subprocess.run(
        [sys.executable, *command, "--lake", str(stream.folder)], capture_output=True, text=True, check=False
    )
    lines = {line["table"]: line for line in json.loads(process.stdout)}
    damaged = [line for line in lines.values() if line["outcome"] == "damaged"]
    assert process.returncode == bool(damaged), process.stderr
    return lines


def assert_rows_come_back(stream: Stream, table: Table) -> None:
    """Lose the newest commit of a table, and compare all tables after the repair with those before it."""
    before = {each: content(stream.folder, each) for each in PIPELINE_TABLES if each is not QUALITY}
    newest = damage_newest_commit(stream, table)
    with pytest.raises(TableStoreError, match=f"{newest.name} is empty: .*run `fleetgauge lake repair`"):
        stream.run()
    assert repair(stream)[table.path]["outcome"] == "damaged"
    outcomes = {path: line["outcome"] for path, line in repair(stream, "--accept-loss").items()}
    assert {path for path, outcome in outcomes.items() if outcome != "whole"} == {table.path}
    assert outcomes[table.path] == "lost"
    stream.run()
    assert {each: content(stream.folder, each) for each in before} == before
    go_on(stream)


def test_rows_of_a_commit_that_was_emptied_come_back_from_the_topics(stream: Stream) -> None:
    stream.run()
    assert_rows_come_back(stream, PROBE_MINUTES)


@pytest.mark.thorough
@pytest.mark.parametrize("table", [BROKER_MINUTES, CLUSTER_MINUTES, CLUSTER_WEEKS, FLEET_WEEKS, EVIDENCE])
def test_rows_of_each_table_of_the_pipeline_come_back(stream: Stream, table: Table) -> None:
    stream.run()
    assert_rows_come_back(stream, table)


def test_a_stream_repairs_what_loses_no_row(stream: Stream, caplog: pytest.LogCaptureFixture) -> None:
    delta(stream.folder, PROBE_MINUTES).create_checkpoint()
    (checkpoint,) = (stream.folder / PROBE_MINUTES.path / LOG_FOLDER).glob("*.checkpoint.parquet")
    cut(checkpoint)
    go_on(stream)
    assert [text for text in list_warnings(caplog) if "is repaired: " in text and checkpoint.name in text]


CHECKSUM_FILES = (
    ".*.json.crc",
    "[0-9]*.crc",
    ".*.crc.crc",
    ".*.checkpoint.parquet.crc",
    "._last_checkpoint.crc",
)


@pytest.mark.thorough
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_stream_goes_on_whichever_checksum_file_is_damaged(stream: Stream, damage: Damage) -> None:
    """Spark and Hadoop write them beside the files of the log; delta-rs does not read them."""
    log = stream.folder / CLUSTER_MINUTES.path / LOG_FOLDER
    stream.spark.sql(f"ALTER TABLE delta.`{log.parent}` SET TBLPROPERTIES ('delta.checkpointInterval' = '1')")
    go_on(stream)
    for pattern in CHECKSUM_FILES:
        damage(max(path for path in log.iterdir() if fnmatch(path.name, pattern)))
    go_on(stream)
    go_on(stream)


@pytest.mark.thorough
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("pattern", ["*.parquet", ".*.parquet.crc"])
def test_a_damaged_data_file_is_named_or_does_not_matter(
    stream: Stream, pattern: str, damage: Damage
) -> None:
    """A bit that is flipped in a file is noticed by its checksum file, and the other way round."""
    for file in (stream.folder / CLUSTER_MINUTES.path).rglob(f"day=*/{pattern}"):
        damage(file)
    try:
        with explaining_lake_errors(str(stream.folder)):
            go_on(stream)
    except LakeFileError as error:
        message = str(error)
        assert re.fullmatch(r"\S+/silver/cluster_minutes/day=\S+\.parquet is damaged or gone: .*", message)
        assert repair(stream)[CLUSTER_MINUTES.path]["outcome"] == "damaged"
        assert repair(stream, "--accept-loss")[CLUSTER_MINUTES.path]["outcome"] == "lost"
        assert repair(stream)[CLUSTER_MINUTES.path]["outcome"] == "whole"
        go_on(stream)
    else:
        # Without its checksum file a file is not checked, and is whole; any other damage is noticed.
        assert (pattern, damage) == (".*.parquet.crc", remove)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 8 MB. Only root may mount one, and without one a real disk would have to be filled."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("this user may not mount a disk")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.thorough
def test_a_full_disk_is_one_line_and_loses_no_record(stream: Stream, small_disk: Path) -> None:
    stream.move_to(copytree(stream.folder, small_disk / "lake"))
    _, _, free = disk_usage(small_disk)
    (small_disk / "filler").write_bytes(bytes(free - 4096))
    is_one_line = r"^[^\n]*(disk is full|No space left)[^\n]*$"
    with pytest.raises(OperationalError, match=is_one_line), explaining_lake_errors(str(stream.folder)):
        go_on(stream)
    remove(small_disk / "filler")
    go_on(stream)
    go_on(stream)
