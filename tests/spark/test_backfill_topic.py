"""A backfill from a topic that the stream reads too, on real brokers."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from fleetgauge_core.contract import PROBE_MINUTE
from fleetgauge_core.fleet import Telemetry
from fleetgauge_core.kafka import ensure_telemetry_topics
from fleetgauge_core.runtime.shutdown import ShutdownFlag
from fleetgauge_core.tables import PROBE_MINUTES, QUALITY, QUARANTINE
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_local.layout import ClusterSpec
from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.jobs.backfill import open_record_topic
from fleetgauge_pipelines.jobs.stream import StreamTrigger, run_stream
from tests.spark.broken import good_record
from tests.spark.lakes import backfilled, rows, versions
from tests.spark.test_backfill import CLOCK, FLEET, GOOD, LACKING, MINUTE, OTHER, assert_equal_lakes


@pytest.fixture
def telemetry(tmp_path: Path) -> Iterator[Telemetry]:
    """Start a telemetry cluster of one broker; another worker uses the suite's fleet."""
    with LocalFleet(tmp_path / "fleet", (ClusterSpec("carrier", brokers=1),)) as fleet:
        topics = {"probe_minutes": {"name": "probe-minutes", "partitions": 2, "retention_hours": 2}}
        telemetry_ = Telemetry.model_validate({"bootstrap": fleet.bootstrap("carrier"), "topics": topics})
        ensure_telemetry_topics(telemetry_)
        yield telemetry_


def _send(telemetry: Telemetry, values: list[bytes]) -> None:
    producer = Producer({"bootstrap.servers": telemetry.bootstrap, "enable.idempotence": True})
    for number, value in enumerate(values):
        producer.produce(telemetry.topics.probe_minutes.name, value, partition=number % 2)
    assert producer.flush(30) == 0


def test_a_topic_backfill_after_the_stream_changes_nothing_and_alone_gives_the_same_tables(
    spark: SparkSession, telemetry: Telemetry, tmp_path: Path
) -> None:
    topic = telemetry.topics.probe_minutes.name
    values = [PROBE_MINUTE.encode(record) for record in (*GOOD, LACKING, OTHER[0])]
    _send(telemetry, [*values, b"noise"])
    streamed, alone = tmp_path / "streamed", tmp_path / "alone"
    lake = Lake(spark, str(streamed))
    received_counts = stream_once(spark, lake, telemetry)
    before = versions(streamed)

    [after_it] = backfilled(spark, lake, FLEET, open_record_topic(telemetry, topic), CLOCK).batches
    backfilled(spark, Lake(spark, str(alone)), FLEET, open_record_topic(telemetry, topic), CLOCK)

    assert sum(received_counts) == after_it.ingested.received == len(values) + 1
    assert after_it.ingested.stored == 0
    assert {path for path, v in versions(streamed).items() if v != before[path]} == {QUALITY.path}
    assert len(rows(alone, QUARANTINE)) == 3
    assert_equal_lakes(streamed, alone)

    _send(telemetry, [PROBE_MINUTE.encode(good_record(77, MINUTE))])
    more = backfilled(spark, Lake(spark, str(alone)), FLEET, open_record_topic(telemetry, topic), CLOCK)
    assert [batch.ingested.stored for batch in more.batches] == [1]
    assert len(rows(alone, PROBE_MINUTES)) == len(GOOD) + 1
    with pytest.raises(LookupError, match="has no topic absent"):
        open_record_topic(telemetry, "absent")


def expire_before(telemetry: Telemetry, partition: int, offset: int) -> None:
    """Delete records as the topic's retention does."""
    admin = AdminClient({"bootstrap.servers": telemetry.bootstrap})
    before = TopicPartition(telemetry.topics.probe_minutes.name, partition, offset)
    for deletion in admin.delete_records([before]).values():
        deletion.result(30)


def test_records_that_expire_while_a_backfill_runs_are_named(
    spark: SparkSession, telemetry: Telemetry, tmp_path: Path
) -> None:
    topic = telemetry.topics.probe_minutes.name
    lake = Lake(spark, str(tmp_path / "lake"))
    send_numbered(telemetry, range(4))
    backfilled(spark, lake, FLEET, open_record_topic(telemetry, topic), CLOCK)
    send_numbered(telemetry, range(4, 20))
    opened = open_record_topic(telemetry, topic)
    # Partition 0 has the even numbers: 0 and 2 have been read, 4 to 10 have not.
    expire_before(telemetry, 0, 6)

    result = backfilled(spark, lake, FLEET, opened, CLOCK)

    assert [batch.ingested.stored for batch in result.batches] == [12]
    (loss,) = read_losses(tmp_path / "lake")
    observed = json.loads(loss["observed"])
    assert (observed["records"], observed["exact"], observed["offsets"]) == (4, True, {"0": ["2-5"]})
    assert loss["expectation"] == f"every_record_is_read({topic})"


def test_the_stream_tells_what_it_has_not_read_itself_and_no_backfill_does(
    spark: SparkSession, telemetry: Telemetry, tmp_path: Path
) -> None:
    topic = telemetry.topics.probe_minutes.name
    lake = Lake(spark, str(tmp_path / "lake"))
    send_numbered(telemetry, range(4))
    stream_once(spark, lake, telemetry)
    send_numbered(telemetry, range(4, 20))
    opened = open_record_topic(telemetry, topic)
    expire_before(telemetry, 0, 6)
    backfilled(spark, lake, FLEET, opened, CLOCK)
    assert read_losses(tmp_path / "lake") == []
    stream_once(spark, lake, telemetry)
    (loss,) = read_losses(tmp_path / "lake")
    assert json.loads(loss["observed"])["offsets"] == {"0": ["2-5"]}


def send_numbered(telemetry: Telemetry, numbers: range) -> None:
    _send(telemetry, [PROBE_MINUTE.encode(good_record(number, MINUTE)) for number in numbers])


def read_losses(lake: Path) -> list[dict[str, Any]]:
    return [row for row in rows(lake, QUALITY) if row["suite"] == "topics"]


def stream_once(spark: SparkSession, lake: Lake, telemetry: Telemetry) -> list[int]:
    """Let a stream process what there is, and return how many records each batch received."""
    received: list[int] = []
    run_stream(
        spark,
        lake,
        FLEET,
        telemetry,
        StreamTrigger(None),
        lambda: CLOCK,
        lambda _, outcome: received.append(outcome.ingested.received),
        lambda: None,
        ShutdownFlag(),
        lambda *_: None,
    )
    return received
