"""Spark's Kafka client authenticates like the agent's clients, also with a signed OAuth token."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from fleetgauge_core.fleet import Telemetry
from fleetgauge_core.kafka import RecordProducer, ensure_telemetry_topics
from fleetgauge_pipelines.jobs.backfill import open_record_topic
from tests.kafka.secured import SecuredCluster, accepted_credentials, write_secret_files
from tests.kafka.secured import secured as running


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredCluster]:
    with running(tmp_path_factory.mktemp("secured")) as cluster:
        yield cluster


@pytest.mark.parametrize("way", ["tls", "mtls", "plain", "scram-256", "scram-512"])
def test_a_secured_topic_is_read(
    spark: SparkSession, secured: SecuredCluster, tmp_path: Path, way: str
) -> None:
    listener, security = accepted_credentials(secured, write_secret_files(tmp_path / "secrets"))[way]
    topics = {"probe_minutes": {"name": f"minutes-{uuid.uuid4()}", "partitions": 1, "retention_hours": 2}}
    telemetry = Telemetry.model_validate(
        {"bootstrap": secured.bootstrap(listener), "security": security, "topics": topics}
    )
    ensure_telemetry_topics(telemetry)
    topic = telemetry.topics.probe_minutes.name
    producer = RecordProducer(telemetry.access, "fleetgauge-tests")
    producer.start()
    producer.send_all(topic, [("orders", b"%d" % number) for number in range(20)])
    assert producer.stop() == 0
    records = open_record_topic(telemetry, topic)
    rows = records.read(spark, records.splits).select("value").collect()
    assert sorted(int(row["value"]) for row in rows) == list(range(20))
