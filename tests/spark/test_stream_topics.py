"""The stream when its topics are deleted, created anew, extended, or lose records, on a real broker."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict
from datetime import datetime, timedelta
from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from fleetgauge_core.contract import PROBE_PULSE, ClusterChange
from fleetgauge_core.tables import BROKER_MINUTES, CHANGES, QUARANTINE
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_local.layout import ClusterSpec
from fleetgauge_pipelines.io.small_frames import create_dataframe
from fleetgauge_pipelines.io.stream_checkpoint import StreamCheckpoint
from fleetgauge_pipelines.jobs.lost_records import find_missing_sequences
from fleetgauge_pipelines.jobs.silver import SilverWriter
from fleetgauge_pipelines.jobs.stream_topics import StreamTopics
from tests.spark.lakes import rows
from tests.spark.streams import DEADLINE_S, PARTITIONS, Stream
from tests.spark.test_backfill import CLOCK, MINUTE
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with LocalFleet(tmp_path_factory.mktemp("fleet"), (ClusterSpec("carrier", brokers=1),)) as fleet:
        yield fleet.bootstrap("carrier")


@pytest.fixture
def stream(spark: SparkSession, bootstrap: str, tmp_path: Path) -> Stream:
    return Stream(spark, bootstrap, tmp_path / "lake")


def fail_once(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> Callable[[], bool]:
    """Let the next call of a method end the process, as far as a test can; return whether it was called."""
    original, calls = getattr(owner, name), []

    def fail(*arguments: Any) -> Any:
        calls.append(name)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return original(*arguments)

    monkeypatch.setattr(owner, name, fail)
    return lambda: bool(calls)


def test_a_topic_that_was_recreated_between_two_runs_is_read_from_its_beginning(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream.send(5, 4)
    stream.run()
    # A version that stored no IDs of topics has read until here: the offsets tell that this is another topic.
    rmtree(stream.folder / "_checkpoints" / "stream_topics")
    stream.recreate_topic()
    stream.send(1, 2)
    stream.run()
    # Of a topic that is longer they do not tell it.
    stream.recreate_topic()
    stream.send(9, 8)
    was_killed = fail_once(monkeypatch, StreamCheckpoint, "save_generation")
    with pytest.raises(KeyboardInterrupt):
        stream.run()
    assert was_killed()
    stream.run()
    assert stream.sequences() == list(range(stream.sent))
    assert stream.counts == {"received": stream.sent, "stored": stream.sent, "replayed": 0}
    losses = stream.losses()
    assert [(loss["change"], loss["exact"]) for loss in losses] == [("recreated", False)] * 2
    assert "created anew" in losses[0]["text"]


def test_a_partition_that_is_added_before_a_new_generation_is_read_does_not_end_the_stream(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_generation = StreamCheckpoint.save_generation

    def save_and_extend(*arguments: Any) -> None:
        save_generation(*arguments)
        stream.add_partition(PARTITIONS + 1)
        stream.send(0, 0, 3)

    stream.send(5, 4)
    stream.run()
    stream.recreate_topic()
    stream.send(2, 1)
    monkeypatch.setattr(StreamCheckpoint, "save_generation", save_and_extend)
    stream.run()
    assert stream.sequences() == list(range(15))
    assert stream.counts["replayed"] == 0


def test_records_that_expired_before_they_were_read_are_named_exactly(stream: Stream) -> None:
    stream.send(5, 4)
    stream.run()
    assert stream.losses() == []
    stream.send(20, 10)
    stream.expire(13, 8)
    stream.run()
    (loss,) = stream.losses()
    assert (loss["records"], loss["exact"]) == (12, True)
    assert loss["offsets"] == {"0": ["5-12"], "1": ["4-7"]}
    assert [change.lost_records for change in stream.changes] == [12]
    assert len(stream.sequences()) == stream.sent - 12
    # All records that were left expire.
    stream.send(3)
    stream.expire(28)
    stream.run()
    assert [loss["offsets"] for loss in stream.losses()] == [{"0": ["5-12"], "1": ["4-7"]}, {"0": ["25-27"]}]


def test_records_of_an_interrupted_batch_reach_silver_though_their_topic_is_gone(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise OSError("no space left")

    stream.send(3, 2)
    with monkeypatch.context() as broken:
        broken.setattr(SilverWriter, "update", fail)
        with pytest.raises(StreamingQueryException, match="no space left"):
            stream.run()
    assert (len(stream.sequences()), rows(stream.folder, BROKER_MINUTES)) == (5, [])
    stream.recreate_topic()
    stream.run()
    measured = [row for row in rows(stream.folder, BROKER_MINUTES) if row["measured"]]
    assert [(row["broker_id"], row["attempted"]) for row in measured] == [(1, 500)]


def test_a_running_stream_follows_a_topic_that_is_deleted_or_extended(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stream.running():
        stream.send(5, 4)
        wait_until(lambda: stream.counts["stored"] == 9, DEADLINE_S, "the first records")
        stream.admin.delete_topics([stream.topic])[stream.topic].result()
        wait_until(lambda: bool(stream.changes), DEADLINE_S, "the deletion to be noticed")
        stream.send(2, 2)
        wait_until(lambda: stream.counts["stored"] == 13, DEADLINE_S, "the new topic")
        stream.add_partition(3)
        stream.send(0, 1, 2)
        wait_until(lambda: stream.counts["stored"] == 16, DEADLINE_S, "the added partition")
        # Without a look between two batches, a batch finds that it has read another topic.
        monkeypatch.setattr(StreamTopics, "is_outdated", lambda *_: False)
        stream.recreate_topic()
        stream.send(9, 9)
        wait_until(lambda: stream.counts["stored"] == 34, DEADLINE_S, "the longer topic")
    assert stream.sequences() == list(range(34))
    assert stream.counts["replayed"] == 0
    assert [loss["change"] for loss in stream.losses()] == ["recreated"] * 2


def change(number: int, **values: Any) -> ClusterChange:
    return ClusterChange(
        event_id=f"event-{number}",
        change_id=f"change-{number}",
        cluster_id="orders",
        kind="setting_changed",
        phase="happened",
        at=MINUTE,
        starts=MINUTE - timedelta(seconds=15),
        ends=MINUTE,
        source="observer",
        **values,
    )


def test_changes_are_stored_once_and_what_is_none_goes_to_quarantine(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as older:
        # A version before this one read no changes.
        initialize = StreamTopics.__init__

        def initialize_older(topics: StreamTopics, *arguments: Any) -> None:
            initialize(topics, *arguments)
            topics._names = topics._names[:2]

        older.setattr(StreamTopics, "__init__", initialize_older)
        stream.send(1, 1)
        stream.run()
    first = change(1, broker_id=2, before='{"a":1}', after='{"a":2}', evidence='{"orderly":true}')
    not_json, not_an_object = change(2, before="{"), change(3, evidence="[]")
    deep = change(4, after="[" * 20_000)
    stream.send_changes(first.encode(), b"nonsense", None, first.encode(), not_json.encode())
    stream.send_changes(not_an_object.encode(), deep.encode(), PROBE_PULSE.header, b"x" * 70_000)
    stream.send(1, 0)
    stream.run()
    assert [row | {"at": first.at} for row in rows(stream.folder, CHANGES)] == [asdict(first)]
    rejected = rows(stream.folder, QUARANTINE)
    reasons = Counter(row["reason"] for row in rejected)
    assert reasons == {"not_decodable": 5, "unknown_fingerprint": 1, "oversize": 1}
    assert all(row["detail"].startswith("not a change: ") for row in rejected)
    assert {row["value"] for row in rejected} >= {b"nonsense", b"", not_json.encode()}
    assert stream.sequences() == list(range(stream.sent))
    assert stream.losses() == []
    # A batch that is repeated stores nothing again; the next one adds what is new.
    rmtree(stream.folder / "_checkpoints")
    stream.send_changes(change(5).encode())
    stream.run()
    assert sorted(row["event_id"] for row in rows(stream.folder, CHANGES)) == ["event-1", "event-5"]
    assert len(rows(stream.folder, QUARANTINE)) == len(rejected)


def test_numbers_that_are_missing_are_found_once_a_run_has_gone_on(spark: SparkSession) -> None:
    def record(run: str, sequence: int, minute: int) -> tuple[str, int, datetime]:
        return run, sequence, CLOCK + minute * timedelta(minutes=1)

    records = [record("a", sequence, sequence // 4) for sequence in (0, 1, 2, 3, 6, 7, 8, 12, 13, 17, 20)]
    records += [record("b", sequence, 0) for sequence in (5, 9)]
    frame = create_dataframe(spark, records, "run_id STRING, sequence LONG, minute TIMESTAMP")
    # 14 to 19 may still arrive, like those of run b, which has not gone on.
    assert find_missing_sequences(frame) == {"a": [(4, 5), (9, 11)]}
