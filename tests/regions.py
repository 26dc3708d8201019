"""Regions of real brokers and mirrors, and `fleetgauge recover` upon them, for tests and demonstrations."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from click.testing import CliRunner, Result
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from fleetgauge_local.fleet import LocalFleet
from fleetgauge_operations.recovery.cli import recover
from tests.waiting import wait_until

DEADLINE_S = 60
QUIET = {"log_level": 0, "reconnect.backoff.max.ms": 500}


def client(fleet: LocalFleet, cluster: str) -> dict[str, object]:
    return {"bootstrap.servers": fleet.bootstrap(cluster), **QUIET}


def admin(fleet: LocalFleet, cluster: str) -> AdminClient:
    return AdminClient(client(fleet, cluster))


def make_topic(fleet: LocalFleet, topic: str, *clusters: str) -> None:
    """Where it is mirrored to it comes by itself."""
    for cluster in clusters:
        maker = admin(fleet, cluster)
        maker.create_topics([NewTopic(topic, 1, 1)])[topic].result(DEADLINE_S)


def produce(fleet: LocalFleet, cluster: str, topic: str, values: Sequence[str]) -> None:
    producer = Producer({**client(fleet, cluster), "acks": "all"})
    for value in values:
        producer.produce(topic, value.encode(), partition=0)
    assert producer.flush(DEADLINE_S) == 0


def consume(fleet: LocalFleet, cluster: str, group: str, topic: str, count: int | None = None) -> list[str]:
    """As the group, from where it has committed, so many records or all that are there; then commit."""
    consumer = Consumer(
        {
            **client(fleet, cluster),
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )
    try:
        here = TopicPartition(topic, 0)
        start, end = consumer.get_watermark_offsets(here, DEADLINE_S)
        at = consumer.committed([here], DEADLINE_S)[0].offset
        at = at if at >= 0 else start
        consumer.assign([TopicPartition(topic, 0, at)])
        found: list[str] = []
        while at < end and (count is None or len(found) < count):
            message = consumer.poll(DEADLINE_S)
            assert message is not None
            assert message.error() is None
            found.append((message.value() or b"").decode())
            at = (message.offset() or 0) + 1
        consumer.commit(offsets=[TopicPartition(topic, 0, at)], asynchronous=False)
        return found
    finally:
        consumer.close()


def end_of(fleet: LocalFleet, cluster: str, topic: str) -> int:
    consumer = Consumer({**client(fleet, cluster), "group.id": "nobody"})
    try:
        return int(consumer.get_watermark_offsets(TopicPartition(topic, 0), DEADLINE_S)[1])
    finally:
        consumer.close()


def has_topic(fleet: LocalFleet, cluster: str, topic: str) -> bool:
    return topic in admin(fleet, cluster).list_topics(timeout=DEADLINE_S).topics


def wait_for_records(fleet: LocalFleet, cluster: str, topic: str, count: int) -> None:
    wait_until(
        lambda: has_topic(fleet, cluster, topic) and end_of(fleet, cluster, topic) >= count,
        DEADLINE_S,
        f"{count} records of {topic} in {cluster}",
    )


def merged(fleet: LocalFleet, topic: str, each: int = 60) -> None:
    """A topic of both regions, in both aggregates."""
    make_topic(fleet, topic, "north", "south")
    for region in ("north", "south"):
        produce(fleet, region, topic, [f"{region} {number}" for number in range(each)])
    for aggregate in ("north-all", "south-all"):
        wait_for_records(fleet, aggregate, topic, 2 * each)


def committed(fleet: LocalFleet, cluster: str, group: str, topic: str) -> int | None:
    asked = [ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0)])]
    asking = admin(fleet, cluster)
    found = asking.list_consumer_group_offsets(asked)[group].result(DEADLINE_S).topic_partitions
    return found[0].offset if found[0].offset >= 0 else None


def described(
    regions: LocalFleet, folder: Path, groups: Sequence[Mapping[str, str]] = (), **limits: float
) -> Path:
    document = yaml.safe_load(regions.fleet_file.read_text())
    document["lake"] = str(folder / "lake")
    if groups:
        document["recovery"]["groups"] = list(groups)
    document["recovery"]["limits"] = {"stale_s": 30, **limits}
    path = folder / "fleet.yaml"
    path.write_text(yaml.safe_dump(document))
    return path


def call(config: Path, *arguments: str) -> Result:
    return CliRunner().invoke(recover, [*arguments, "--config", str(config)])


def partition_of(result: Result, group: str, topic: str) -> dict[str, Any]:
    plans = {one["group"]: one for one in json.loads(result.stdout)}
    return next(one for one in plans[group]["partitions"] if one["topic"] == topic)


def planned(config: Path, group: str, topic: str) -> dict[str, Any]:
    return partition_of(call(config, "plan", "--group", group, "--json"), group, topic)


def wait_for_verdict(config: Path, group: str, topic: str, verdict: str) -> dict[str, Any]:
    found: dict[str, Any] = {}

    def is_so() -> bool:
        found.update(planned(config, group, topic))
        return bool(found["verdict"] == verdict)

    wait_until(is_so, DEADLINE_S, f"{group} to be {verdict}")
    return found


@contextmanager
def running(config: Path, *arguments: str) -> Iterator["subprocess.Popen[bytes]"]:
    command = [sys.executable, "-m", "fleetgauge_core", "recover", "run", "--config", str(config)]
    process = subprocess.Popen(
        [*command, "--look-every", "1", "--sync-every", "1", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.wait(DEADLINE_S)
