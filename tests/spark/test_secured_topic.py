"""Spark's own Kafka client gets in where the agent's do; by a token as well, but none that is not signed."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from fleetgauge_core.fleet import Telemetry
from fleetgauge_core.kafka import RecordProducer, ensure_topics
from fleetgauge_pipelines.jobs.backfill import records_of
from tests.kafka.secured import Secured, secret_files, ways_in
from tests.kafka.secured import secured as running


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with running(tmp_path_factory.mktemp("secured")) as found:
        yield found


@pytest.mark.parametrize("way", ["tls", "mtls", "plain", "scram-256", "scram-512"])
def test_a_topic_behind_it_is_read(spark: SparkSession, secured: Secured, tmp_path: Path, way: str) -> None:
    listener, security = ways_in(secured, secret_files(tmp_path / "secrets"))[way]
    topics = {"probe_minutes": {"name": f"minutes-{uuid.uuid4()}", "partitions": 1, "retention_hours": 2}}
    telemetry = Telemetry.model_validate(
        {"bootstrap": secured.at(listener), "security": security, "topics": topics}
    )
    ensure_topics(telemetry)
    topic = telemetry.topics.probe_minutes.name
    producer = RecordProducer(telemetry.access, "fleetgauge-tests")
    producer.start()
    producer.send_all(topic, [("orders", b"%d" % number) for number in range(20)])
    assert producer.stop() == 0
    records = records_of(telemetry, topic)
    found = records.read(spark, records.items).select("value").collect()
    assert sorted(int(row["value"]) for row in found) == list(range(20))
