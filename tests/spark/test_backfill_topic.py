"""A backfill from a topic that the stream reads as well, on real brokers."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from fleetgauge_core.contract import PROBE_MINUTE
from fleetgauge_core.fleet import Telemetry
from fleetgauge_core.kafka import ensure_topics
from fleetgauge_core.runtime.shutdown import Stopping
from fleetgauge_core.tables import PROBE_MINUTES, QUALITY, QUARANTINE
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_local.layout import ClusterSpec
from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.jobs.backfill import records_of
from fleetgauge_pipelines.jobs.stream import Pace, run_stream
from tests.spark.broken import good_record
from tests.spark.lakes import backfilled, rows, versions
from tests.spark.test_backfill import CLOCK, FLEET, GOOD, LACKING, MINUTE, OTHER, assert_equal_lakes


@pytest.fixture
def telemetry(tmp_path: Path) -> Iterator[Telemetry]:
    """Of one broker: the suite's fleet is another worker's."""
    with LocalFleet(tmp_path / "fleet", (ClusterSpec("carrier", brokers=1),)) as fleet:
        topics = {"probe_minutes": {"name": "probe-minutes", "partitions": 2, "retention_hours": 2}}
        found = Telemetry.model_validate({"bootstrap": fleet.bootstrap("carrier"), "topics": topics})
        ensure_topics(found)
        yield found


def _send(telemetry: Telemetry, values: list[bytes]) -> None:
    producer = Producer({"bootstrap.servers": telemetry.bootstrap, "enable.idempotence": True})
    for number, value in enumerate(values):
        producer.produce(telemetry.topics.probe_minutes.name, value, partition=number % 2)
    assert producer.flush(30) == 0


def test_a_topic_that_the_stream_has_taken_changes_nothing_and_alone_makes_the_same_tables(
    spark: SparkSession, telemetry: Telemetry, tmp_path: Path
) -> None:
    topic = telemetry.topics.probe_minutes.name
    values = [PROBE_MINUTE.encode(record) for record in (*GOOD, LACKING, OTHER[0])]
    _send(telemetry, [*values, b"noise"])
    streamed, alone = tmp_path / "streamed", tmp_path / "alone"
    lake = Lake(spark, str(streamed))
    told: list[int] = []
    run_stream(
        spark,
        lake,
        FLEET,
        telemetry,
        Pace(None),
        lambda: CLOCK,
        lambda _, outcome: told.append(outcome.ingested.received),
        lambda: None,
        Stopping(),
    )
    before = versions(streamed)

    [after_it] = backfilled(spark, lake, FLEET, records_of(telemetry, topic), CLOCK).outcomes
    backfilled(spark, Lake(spark, str(alone)), FLEET, records_of(telemetry, topic), CLOCK)

    assert sum(told) == after_it.ingested.received == len(values) + 1
    assert after_it.ingested.stored == 0
    assert {path for path, v in versions(streamed).items() if v != before[path]} == {QUALITY.path}
    assert len(rows(alone, QUARANTINE)) == 3
    assert_equal_lakes(streamed, alone)

    _send(telemetry, [PROBE_MINUTE.encode(good_record(77, MINUTE))])
    more = backfilled(spark, Lake(spark, str(alone)), FLEET, records_of(telemetry, topic), CLOCK)
    assert [one.ingested.stored for one in more.outcomes] == [1]
    assert len(rows(alone, PROBE_MINUTES)) == len(GOOD) + 1
    with pytest.raises(LookupError, match="has no topic absent"):
        records_of(telemetry, "absent")
