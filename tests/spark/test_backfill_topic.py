"""A backfill from a topic that the stream reads as well, on real brokers."""

from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from fleetgauge_local.fleet import LocalFleet
from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.jobs.backfill import records_of
from fleetgauge_pipelines.jobs.stream import Pace, run_stream
from fleetgauge_pipelines.tables import PROBE_MINUTES, QUALITY, QUARANTINE
from fleetgauge_probes.contract import PROBE_MINUTE
from fleetgauge_probes.fleet import Telemetry, load
from fleetgauge_probes.kafka import ensure_topics
from fleetgauge_probes.stopping import Stopping
from tests.spark.broken import good_record
from tests.spark.lakes import backfilled, rows, versions
from tests.spark.test_backfill import CLOCK, FLEET, GOOD, LACKING, MINUTE, OTHER, assert_equal_lakes


def _telemetry(local_fleet: LocalFleet) -> Telemetry:
    """The local fleet's, with topics that nobody else uses."""
    telemetry = load(local_fleet.fleet_file).telemetry
    assert telemetry is not None
    names = {
        use: topic.model_copy(update={"name": f"{topic.name}.backfilled", "partitions": 2})
        for use, topic in telemetry.topics
    }
    return telemetry.model_copy(update={"topics": telemetry.topics.model_copy(update=names)})


def _send(telemetry: Telemetry, values: list[bytes]) -> None:
    producer = Producer({"bootstrap.servers": telemetry.bootstrap, "enable.idempotence": True})
    for number, value in enumerate(values):
        producer.produce(telemetry.topics.probe_minutes.name, value, partition=number % 2)
    assert producer.flush(30) == 0


def test_a_topic_that_the_stream_has_taken_changes_nothing_and_alone_makes_the_same_tables(
    spark: SparkSession, local_fleet: LocalFleet, tmp_path: Path
) -> None:
    telemetry = _telemetry(local_fleet)
    topic = telemetry.topics.probe_minutes.name
    ensure_topics(telemetry)
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
