"""The stream after a power cut that damaged its checkpoint, on a real broker."""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import copytree, rmtree

import pytest
from pyspark.sql import SparkSession

from fleetgauge_local.fleet import LocalFleet
from fleetgauge_local.layout import ClusterSpec
from tests.spark.streams import Stream

Damage = Callable[[Path], None]


def empty(file: Path) -> None:
    file.write_bytes(b"")


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def flip_bit(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 4
    file.write_bytes(bytes(data))


def remove(path: Path) -> None:
    if path.is_dir():
        rmtree(path)
    else:
        path.unlink()


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
