"""A stream of a test, from topics of its own into a lake of its own."""

import json
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from fleetgauge_core.contract import PROBE_MINUTE
from fleetgauge_core.fleet import Telemetry
from fleetgauge_core.kafka import ClusterAdmin, ensure_telemetry_topics, keep_changes_topic
from fleetgauge_core.metadata import TopicChange
from fleetgauge_core.runtime.shutdown import ShutdownFlag
from fleetgauge_core.tables import PROBE_MINUTES, QUALITY
from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.jobs.batch import BatchResult
from fleetgauge_pipelines.jobs.stream import StreamTrigger, run_stream
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
            for kind in ("probe_minutes", "probe_pulse", "health_events", "changes")
        }
        self.telemetry = Telemetry.model_validate({"bootstrap": bootstrap, "topics": topics})
        self.topic = self.telemetry.topics.probe_minutes.name
        self.spark = spark
        self.move_to(folder)
        self.admin = AdminClient({"bootstrap.servers": bootstrap})
        self.changes: list[TopicChange] = []
        self.sent = 0
        ensure_telemetry_topics(self.telemetry)

    def move_to(self, folder: Path) -> None:
        """Write into another lake from now on, and count anew."""
        self.folder, self.lake = folder, Lake(self.spark, str(folder))
        self.counts: Counter[str] = Counter()

    def send(self, *counts: int) -> None:
        """Append so many records to each partition, with consecutive sequences."""
        producer = Producer({"bootstrap.servers": self.telemetry.bootstrap, "enable.idempotence": True})
        for partition, count in enumerate(counts):
            for _ in range(count):
                value = PROBE_MINUTE.encode(good_record(self.sent, MINUTE))
                producer.produce(self.topic, value, partition=partition)
                self.sent += 1
        assert producer.flush(30) == 0

    def send_changes(self, *values: bytes | None) -> None:
        """Append values to the topic of changes."""
        keep_changes_topic(self.telemetry).ensure()
        producer = Producer({"bootstrap.servers": self.telemetry.bootstrap, "enable.idempotence": True})
        for value in values:
            producer.produce(self.telemetry.topics.changes.name, value, key=b"orders")
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
