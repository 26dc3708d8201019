"""The stream when its topics are deleted, created anew, extended, or lose records, on a real broker."""

import json
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from shutil import rmtree
from threading import Thread
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from fleetgauge_core.contract import PROBE_MINUTE
from fleetgauge_core.fleet import Telemetry
from fleetgauge_core.kafka import ClusterAdmin, ensure_telemetry_topics
from fleetgauge_core.metadata import TopicChange
from fleetgauge_core.runtime.shutdown import ShutdownFlag
from fleetgauge_core.tables import BROKER_MINUTES, PROBE_MINUTES, QUALITY
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_local.layout import ClusterSpec
from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.io.small_frames import create_dataframe
from fleetgauge_pipelines.io.stream_checkpoint import StreamCheckpoint
from fleetgauge_pipelines.jobs.batch import BatchResult
from fleetgauge_pipelines.jobs.lost_records import find_missing_sequences
from fleetgauge_pipelines.jobs.silver import SilverWriter
from fleetgauge_pipelines.jobs.stream import StreamTrigger, run_stream
from fleetgauge_pipelines.jobs.stream_topics import StreamTopics
from tests.spark.broken import good_record
from tests.spark.lakes import rows
from tests.spark.test_backfill import CLOCK, FLEET, MINUTE
from tests.waiting import wait_until

DEADLINE_S = 180
PARTITIONS = 2


class Stream:
    """A stream into a lake of its own from topics of its own."""

    def __init__(self, spark: SparkSession, bootstrap: str, folder: Path) -> None:
        suffix = uuid.uuid4().hex[:8]
        topics = {
            kind: {"name": f"{kind}-{suffix}", "partitions": PARTITIONS, "retention_hours": 2}
            for kind in ("probe_minutes", "probe_pulse", "health_events")
        }
        self.telemetry = Telemetry.model_validate({"bootstrap": bootstrap, "topics": topics})
        self.topic = self.telemetry.topics.probe_minutes.name
        self.folder = folder
        self.lake = Lake(spark, str(folder))
        self.spark = spark
        self.admin = AdminClient({"bootstrap.servers": bootstrap})
        self.counts: Counter[str] = Counter()
        self.changes: list[TopicChange] = []
        self.sent = 0
        ensure_telemetry_topics(self.telemetry)

    def send(self, *counts: int) -> None:
        """Append so many records to each partition, with consecutive sequences."""
        producer = Producer({"bootstrap.servers": self.telemetry.bootstrap, "enable.idempotence": True})
        for partition, count in enumerate(counts):
            for _ in range(count):
                value = PROBE_MINUTE.encode(good_record(self.sent, MINUTE))
                producer.produce(self.topic, value, partition=partition)
                self.sent += 1
        assert producer.flush(30) == 0

    def recreate_topic(self) -> None:
        """Delete the topic and create it anew."""
        admin = ClusterAdmin(self.telemetry.access)
        admin.start()
        before = admin.describe_topic(self.topic)
        self.admin.delete_topics([self.topic])[self.topic].result()
        wait_until(lambda: admin.describe_topic(self.topic) != before, DEADLINE_S, "the deletion")
        ensure_telemetry_topics(self.telemetry)
        wait_until(lambda: bool(admin.describe_topic(self.topic)), DEADLINE_S, "the new topic")

    def add_partition(self, total: int) -> None:
        """Give the topic so many partitions, and wait until it has them."""
        admin = ClusterAdmin(self.telemetry.access)
        admin.start()
        admin.add_partitions(self.topic, total)
        wait_until(
            lambda: len((admin.describe_topic(self.topic) or pytest.fail("gone")).partitions) == total,
            DEADLINE_S,
            "the partition",
        )

    def expire(self, *befores: int) -> None:
        """Delete the records before these offsets of the partitions."""
        partitions = [TopicPartition(self.topic, number, before) for number, before in enumerate(befores)]
        for future in self.admin.delete_records(partitions).values():
            future.result()

    def run(self, interval_s: float | None = None, shutdown: ShutdownFlag | None = None) -> None:
        """Process what there is, or with an interval until shutdown."""

        def count(_: int, result: BatchResult) -> None:
            ingested = result.ingested
            self.counts.update(received=ingested.received, stored=ingested.stored, replayed=ingested.replayed)

        run_stream(
            self.spark,
            self.lake,
            FLEET,
            self.telemetry,
            StreamTrigger(interval_s),
            lambda: CLOCK,
            count,
            lambda: None,
            shutdown or ShutdownFlag(),
            lambda _, __, change: self.changes.append(change),
        )

    @contextmanager
    def running(self) -> Iterator[None]:
        shutdown, errors = ShutdownFlag(), []

        def run() -> None:
            try:
                self.run(1, shutdown)
            except Exception as error:
                errors.append(error)

        thread = Thread(target=run)
        thread.start()
        try:
            yield
        finally:
            shutdown.set()
            thread.join(DEADLINE_S)
        assert not thread.is_alive()
        assert errors == []

    def sequences(self) -> list[int]:
        return sorted(row["sequence"] for row in rows(self.folder, PROBE_MINUTES))

    def losses(self) -> list[dict[str, Any]]:
        """Return what ops/quality says of lost records."""
        failed_checks = [row for row in rows(self.folder, QUALITY) if row["suite"] == "topics"]
        assert not any(row["success"] for row in failed_checks)
        assert {row["expectation"] for row in failed_checks} <= {f"every_record_is_read({self.topic})"}
        return [
            json.loads(row["observed"]) for row in sorted(failed_checks, key=lambda row: str(row["check_id"]))
        ]


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


def test_numbers_that_are_missing_are_found_once_a_run_has_gone_on(spark: SparkSession) -> None:
    def record(run: str, sequence: int, minute: int) -> tuple[str, int, datetime]:
        return run, sequence, CLOCK + minute * timedelta(minutes=1)

    records = [record("a", sequence, sequence // 4) for sequence in (0, 1, 2, 3, 6, 7, 8, 12, 13, 17, 20)]
    records += [record("b", sequence, 0) for sequence in (5, 9)]
    frame = create_dataframe(spark, records, "run_id STRING, sequence LONG, minute TIMESTAMP")
    # 14 to 19 may still arrive, like those of run b, which has not gone on.
    assert find_missing_sequences(frame) == {"a": [(4, 5), (9, 11)]}
