"""Helpers for tests of `fleetgauge recover` with real brokers and mirrors in two regions."""

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


def client_settings(fleet: LocalFleet, cluster: str) -> dict[str, object]:
    return {"bootstrap.servers": fleet.bootstrap(cluster), **QUIET}


def create_admin_client(fleet: LocalFleet, cluster: str) -> AdminClient:
    return AdminClient(client_settings(fleet, cluster))


def create_topic(fleet: LocalFleet, topic: str, *clusters: str) -> None:
    """Create a topic with one partition; the mirrors create it in their destinations."""
    for cluster in clusters:
        admin = create_admin_client(fleet, cluster)
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(DEADLINE_S)


def create_producer(fleet: LocalFleet, cluster: str) -> Producer:
    return Producer({**client_settings(fleet, cluster), "acks": "all"})


def produce(fleet: LocalFleet, cluster: str, topic: str, values: Sequence[str]) -> None:
    producer = create_producer(fleet, cluster)
    for value in values:
        producer.produce(topic, value.encode(), partition=0)
    assert producer.flush(DEADLINE_S) == 0


def consume(fleet: LocalFleet, cluster: str, group: str, topic: str, count: int | None = None) -> list[str]:
    """Consume ``count`` records, or all, from the group's committed offset; then commit the new offset."""
    consumer = Consumer(
        {
            **client_settings(fleet, cluster),
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )
    try:
        partition = TopicPartition(topic, 0)
        start, end = consumer.get_watermark_offsets(partition, DEADLINE_S)
        next_offset = consumer.committed([partition], DEADLINE_S)[0].offset
        next_offset = next_offset if next_offset >= 0 else start
        consumer.assign([TopicPartition(topic, 0, next_offset)])
        values: list[str] = []
        while next_offset < end and (count is None or len(values) < count):
            message = consumer.poll(DEADLINE_S)
            assert message is not None
            assert message.error() is None
            values.append((message.value() or b"").decode())
            next_offset = (message.offset() or 0) + 1
        consumer.commit(offsets=[TopicPartition(topic, 0, next_offset)], asynchronous=False)
        return values
    finally:
        consumer.close()


def read_end_offset(fleet: LocalFleet, cluster: str, topic: str) -> int:
    consumer = Consumer({**client_settings(fleet, cluster), "group.id": "nobody"})
    try:
        return int(consumer.get_watermark_offsets(TopicPartition(topic, 0), DEADLINE_S)[1])
    finally:
        consumer.close()


def has_topic(fleet: LocalFleet, cluster: str, topic: str) -> bool:
    return topic in create_admin_client(fleet, cluster).list_topics(timeout=DEADLINE_S).topics


def wait_for_records(fleet: LocalFleet, cluster: str, topic: str, count: int) -> None:
    wait_until(
        lambda: has_topic(fleet, cluster, topic) and read_end_offset(fleet, cluster, topic) >= count,
        DEADLINE_S,
        f"{count} records of {topic} in {cluster}",
    )


def create_replicated_topic(fleet: LocalFleet, topic: str, records_per_region: int = 60) -> None:
    """Create a topic in both regions, write records, and wait until both aggregates hold all of them."""
    create_topic(fleet, topic, "north", "south")
    for region in ("north", "south"):
        produce(fleet, region, topic, [f"{region} {number}" for number in range(records_per_region)])
    for aggregate in ("north-all", "south-all"):
        wait_for_records(fleet, aggregate, topic, 2 * records_per_region)


def read_committed_offset(fleet: LocalFleet, cluster: str, group: str, topic: str) -> int | None:
    request = [ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0)])]
    client = create_admin_client(fleet, cluster)
    (partition,) = client.list_consumer_group_offsets(request)[group].result(DEADLINE_S).topic_partitions
    return partition.offset if partition.offset >= 0 else None


def write_fleet_file(
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


def run_recover(config: Path, *arguments: str) -> Result:
    return CliRunner().invoke(recover, [*arguments, "--config", str(config)])


def run_fleet_command(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "fleetgauge_core", "fleet", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def find_partition(result: Result, group: str, topic: str) -> dict[str, Any]:
    plans = {plan["group"]: plan for plan in json.loads(result.stdout)}
    return next(partition for partition in plans[group]["partitions"] if partition["topic"] == topic)


def plan_partition(config: Path, group: str, topic: str) -> dict[str, Any]:
    return find_partition(run_recover(config, "plan", "--group", group, "--json"), group, topic)


def wait_for_verdict(config: Path, group: str, topic: str, *verdicts: str) -> dict[str, Any]:
    """Wait until a partition has one of the verdicts, and return it."""
    partition: dict[str, Any] = {}

    def has_verdict() -> bool:
        partition.update(plan_partition(config, group, topic))
        return partition["verdict"] in verdicts

    # A plan reads the syncs of all mirrors: the mirrors need the processor meanwhile.
    wait_until(has_verdict, DEADLINE_S, f"the verdict {' or '.join(verdicts)} of {group}", every_s=1)
    return partition


@contextmanager
def running_controller(config: Path, *arguments: str) -> Iterator["subprocess.Popen[bytes]"]:
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
