"""Application traffic for the demo's regions: ``python -m fleetgauge_local.traffic FLEET_FILE``.

Produces records in every region, and consumes each topic with one consumer group in the first aggregate
cluster. After a failure, producers and consumers restart; consumers resume from their committed offsets.
"""

import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import click

from fleetgauge_core.fleet import Cluster, Fleet, load_fleet
from fleetgauge_core.kafka import (
    ClusterAdmin,
    CommittedOffset,
    ConsumerGroups,
    KafkaUnavailableError,
    RecordProducer,
    TopicReader,
    TopicSpec,
    build_log_topic_spec,
)
from fleetgauge_core.metadata import TopicPartition
from fleetgauge_core.runtime.logs import configure_logging
from fleetgauge_core.runtime.options import PathParam
from fleetgauge_core.runtime.shutdown import ShutdownFlag
from fleetgauge_core.runtime.supervision import supervise_process
from fleetgauge_local.services import ServiceSpec

_log = logging.getLogger("fleetgauge.traffic")

_CLIENT_ID = "fleetgauge-traffic"
_RECORDS_PER_S = 20
_KEYS = 50
_RETENTION_MS = 86_400_000
_COMMIT_EVERY_S = 1.0
_POLL_S = 0.2
_RETRY_DELAY_S = 1.0
_SHUTDOWN_DEADLINE_S = 30
#: Short, so that the process ends within seconds even if no broker responds.
_RESPONSE_TIMEOUT_S = 2


@dataclass(frozen=True, slots=True)
class Workload:
    """A topic that exists in every region, and the consumer group that reads it in the aggregate."""

    topic: str
    partitions: int
    group: str

    @property
    def spec(self) -> TopicSpec:
        """The topic with the cluster's default replication factor."""
        spec = build_log_topic_spec(self.topic, self.partitions, _RETENTION_MS, brokers=1)
        return replace(spec, replication_factor=-1)


BILLING = Workload("orders", 3, "billing")
WORKLOADS = (BILLING, Workload("payments", 1, "ledger"))


def list_source_clusters(fleet: Fleet) -> tuple[Cluster, ...]:
    """Return the clusters that mirrors replicate from."""
    sources = {mirror.source for mirror in fleet.recovery.mirrors}
    return tuple(cluster for cluster in fleet.clusters if cluster.id in sources)


def find_aggregate(fleet: Fleet) -> Cluster:
    """Return the cluster whose consumer groups can fail over: the first failover group's active cluster."""
    return fleet.cluster(fleet.recovery.groups[0].active)


def build_record(region: str, number: int) -> tuple[str, bytes]:
    """Return the key and value of a record; keys repeat, and Kafka keeps the order within a key."""
    return f"customer-{number % _KEYS}", f"{region} {number}".encode()


class RegionProducer:
    """Produces records with consecutive numbers into all topics of one region."""

    def __init__(self, region: Cluster) -> None:
        self._region = region
        self._number = 0

    def run(self, shutdown: ShutdownFlag) -> None:
        """Create the topics and produce until shutdown; unacknowledged records are retried.

        Raises: KafkaUnavailableError when the topics cannot be created.
        """
        self._create_topics()
        producer = RecordProducer(self._region.access, _CLIENT_ID)
        producer.start()
        _log.info("%s: producing, next record number %d", self._region.id, self._number)
        try:
            while not shutdown.wait(1 / _RECORDS_PER_S):
                for workload in WORKLOADS:
                    producer.send(workload.topic, *build_record(self._region.id, self._number))
                self._number += 1
        finally:
            pending = producer.stop(_RESPONSE_TIMEOUT_S)
            failed = producer.failed + pending
            _log.info("%s: %d records delivered, %d failed", self._region.id, producer.delivered, failed)

    def _create_topics(self) -> None:
        admin = ClusterAdmin(self._region.access, _RESPONSE_TIMEOUT_S)
        admin.start()
        for workload in WORKLOADS:
            admin.create_topic(workload.spec)


class GroupConsumer:
    """Consumes a topic with manually assigned partitions and commits offsets for its group.

    The group has no members, as its partitions are not assigned by a group coordinator.
    """

    def __init__(self, cluster: Cluster, workload: Workload) -> None:
        self._cluster = cluster
        self._workload = workload

    def run(self, shutdown: ShutdownFlag) -> None:
        """Consume from the committed offsets until shutdown.

        Raises: KafkaUnavailableError when the topic is missing or offsets cannot be committed.
        """
        reader = TopicReader(self._cluster.access, self._workload.topic, _CLIENT_ID)
        groups = ConsumerGroups(self._cluster.access, _CLIENT_ID, _RESPONSE_TIMEOUT_S)
        reader.start()
        groups.start()
        try:
            self._assign_partitions(reader, groups)
            self._consume(reader, groups, shutdown)
        finally:
            groups.stop()
            reader.stop()

    def _assign_partitions(self, reader: TopicReader, groups: ConsumerGroups) -> None:
        partitions = reader.wait_for_partitions(_RESPONSE_TIMEOUT_S)
        committed = read_committed(groups, self._workload)
        reader.assign_from(committed)
        reader.assign(
            (partition for partition in partitions if partition not in committed), from_beginning=True
        )
        _log.info("%s: reads %s in %s", self._workload.group, self._workload.topic, self._cluster.id)

    def _consume(self, reader: TopicReader, groups: ConsumerGroups, shutdown: ShutdownFlag) -> None:
        consumed: dict[TopicPartition, CommittedOffset] = {}
        commit_at = time.monotonic() + _COMMIT_EVERY_S
        while not shutdown.is_set():
            record = reader.poll(_POLL_S)
            if record:
                consumed[TopicPartition(self._workload.topic, record.partition)] = CommittedOffset(
                    record.offset + 1
                )
            if consumed and time.monotonic() >= commit_at:
                commit_at = time.monotonic() + _COMMIT_EVERY_S
                if groups.commit_offsets(self._workload.group, consumed):
                    raise KafkaUnavailableError(f"group {self._workload.group}: committing offsets failed")
                consumed = {}


def read_committed(groups: ConsumerGroups, workload: Workload) -> dict[int, int]:
    """Return the group's committed offset by partition of the workload's topic.

    Raises: KafkaUnavailableError when the cluster does not respond.
    """
    offsets = groups.read_committed_offsets([workload.group])[workload.group]
    return {
        partition.partition: committed.offset
        for partition, committed in offsets.items()
        if partition.topic == workload.topic
    }


def build_traffic_service(fleet_file: Path) -> ServiceSpec:
    """Return the service that runs this module, at lower priority than the probe agent."""
    return ServiceSpec("traffic", (str(fleet_file),), nice=5, module="fleetgauge_local.traffic")


def run_with_retries(name: str, work: Callable[[ShutdownFlag], None], shutdown: ShutdownFlag) -> None:
    """Call ``work`` until shutdown, again after a delay whenever it raises an exception."""
    while not shutdown.is_set():
        try:
            work(shutdown)
        except Exception as error:
            _log.warning("%s failed, restarting it: %s", name, error)
            shutdown.wait(_RETRY_DELAY_S)


def run(fleet: Fleet, shutdown: ShutdownFlag) -> None:
    """Run all producers and consumers concurrently until ``shutdown`` is set."""
    producing = {region.id: RegionProducer(region).run for region in list_source_clusters(fleet)}
    consuming = {workload.group: GroupConsumer(find_aggregate(fleet), workload).run for workload in WORKLOADS}
    work = producing | consuming
    with ThreadPoolExecutor(len(work), "traffic") as executor:
        for name, task in work.items():
            executor.submit(run_with_retries, name, task, shutdown)


@click.command()
@click.argument("fleet_file", type=PathParam(exists=True, dir_okay=False))
def main(fleet_file: Path) -> None:
    """Produce and consume in the regions that FLEET_FILE describes."""
    configure_logging("text")
    with supervise_process(_SHUTDOWN_DEADLINE_S) as shutdown:
        run(load_fleet(fleet_file), shutdown)


if __name__ == "__main__":
    main()
