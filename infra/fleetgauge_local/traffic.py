"""What uses a demo's regions: ``python -m fleetgauge_local.traffic FLEET_FILE``, until it is told to end.

Producers in every region, and a group a topic in the first aggregate. Whatever a broker's fault breaks is
begun again, from what is committed.
"""

import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import click

from fleetgauge_core.fleet import Cluster, Fleet, load
from fleetgauge_core.kafka import (
    Admin,
    Committed,
    Groups,
    KafkaUnavailableError,
    Place,
    RecordProducer,
    TopicReader,
    TopicSpec,
)
from fleetgauge_core.runtime.logs import start_logging
from fleetgauge_core.runtime.shutdown import Stopping, stopping_on_signals
from fleetgauge_local.services import ServiceSpec

_log = logging.getLogger("fleetgauge.traffic")

_CLIENT_ID = "fleetgauge-traffic"
_PER_S = 20
_KEYS = 50
_COMMIT_EVERY_S = 1.0
_POLL_S = 0.2
_AGAIN_S = 1.0
#: Whoever is told to end has to within seconds, though nobody answers.
_ANSWER_S = 2


@dataclass(frozen=True, slots=True)
class Flow:
    """A topic of every region, and the group that reads what the aggregate has of it."""

    topic: str
    partitions: int
    group: str

    @property
    def spec(self) -> TopicSpec:
        """With the cluster's own number of copies."""
        return TopicSpec(self.topic, partitions=self.partitions, replication_factor=-1)


BILLING = Flow("orders", 3, "billing")
FLOWS = (BILLING, Flow("payments", 1, "ledger"))


def regions(fleet: Fleet) -> tuple[Cluster, ...]:
    """What mirrors copy from."""
    sources = {mirror.source for mirror in fleet.recovery.mirrors}
    return tuple(cluster for cluster in fleet.clusters if cluster.id in sources)


def aggregate(fleet: Fleet) -> Cluster:
    """Where groups read that may go on elsewhere."""
    return fleet.cluster(fleet.recovery.groups[0].active)


def record(region: str, number: int) -> tuple[str, bytes]:
    """A key and a value; records of one key keep their order."""
    return f"customer-{number % _KEYS}", f"{region} {number}".encode()


class Producing:
    """Records of one region, numbered from 0 on."""

    def __init__(self, region: Cluster) -> None:
        self._region = region
        self._number = 0

    def run(self, stopping: Stopping) -> None:
        """Raises KafkaUnavailableError before the topics are there; later what is not taken waits."""
        self._make_topics()
        producer = RecordProducer(self._region.access, _CLIENT_ID)
        producer.start()
        _log.info("%s: produces from %d on", self._region.id, self._number)
        try:
            while not stopping.wait(1 / _PER_S):
                for flow in FLOWS:
                    producer.send(flow.topic, *record(self._region.id, self._number))
                self._number += 1
        finally:
            left = producer.stop(_ANSWER_S)
            told = (self._region.id, producer.delivered, producer.failed + left)
            _log.info("%s: %d records delivered, %d not", *told)

    def _make_topics(self) -> None:
        admin = Admin(self._region.access, _ANSWER_S)
        admin.start()
        for flow in FLOWS:
            admin.create(flow.spec)


class Consuming:
    """One group reads its topic. Without members: it takes partitions by hand, and offsets are set for it."""

    def __init__(self, cluster: Cluster, flow: Flow) -> None:
        self._cluster = cluster
        self._flow = flow

    def run(self, stopping: Stopping) -> None:
        """Raises KafkaUnavailableError without the topic, or where nothing can be committed."""
        reader = TopicReader(self._cluster.access, self._flow.topic, _CLIENT_ID)
        groups = Groups(self._cluster.access, _CLIENT_ID, _ANSWER_S)
        reader.start()
        groups.start()
        try:
            self._begin(reader, groups)
            self._consume(reader, groups, stopping)
        finally:
            groups.stop()
            reader.stop()

    def _begin(self, reader: TopicReader, groups: Groups) -> None:
        partitions = reader.partitions(_ANSWER_S)
        known = committed(groups, self._flow)
        reader.add_from(known)
        reader.add((one for one in partitions if one not in known), from_beginning=True)
        _log.info("%s: reads %s in %s", self._flow.group, self._flow.topic, self._cluster.id)

    def _consume(self, reader: TopicReader, groups: Groups, stopping: Stopping) -> None:
        consumed: dict[Place, Committed] = {}
        commit_at = time.monotonic() + _COMMIT_EVERY_S
        while not stopping.is_set():
            found = reader.poll(_POLL_S)
            if found:
                consumed[Place(self._flow.topic, found.partition)] = Committed(found.offset + 1)
            if consumed and time.monotonic() >= commit_at:
                commit_at = time.monotonic() + _COMMIT_EVERY_S
                if groups.commit(self._flow.group, consumed):
                    raise KafkaUnavailableError(f"{self._flow.group} may not be moved on")
                consumed = {}


def committed(groups: Groups, flow: Flow) -> dict[int, int]:
    """By partition of the flow's topic, what its group reads next. Raises KafkaUnavailableError."""
    places = groups.committed([flow.group])[flow.group]
    return {place.partition: one.offset for place, one in places.items() if place.topic == flow.topic}


def traffic_spec(fleet_file: Path) -> ServiceSpec:
    """This module as a service; it yields to whoever measures."""
    return ServiceSpec("traffic", (str(fleet_file),), nice=5, module="fleetgauge_local.traffic")


def again_and_again(name: str, work: Callable[[Stopping], None], stopping: Stopping) -> None:
    """Begin it again a while after it has failed, whatever a client says of that."""
    while not stopping.is_set():
        try:
            work(stopping)
        except Exception as error:
            _log.warning("%s begins again: %s", name, error)
            stopping.wait(_AGAIN_S)


def run(fleet: Fleet, stopping: Stopping) -> None:
    """All at once, until ``stopping`` is set."""
    producing = {region.id: Producing(region).run for region in regions(fleet)}
    consuming = {flow.group: Consuming(aggregate(fleet), flow).run for flow in FLOWS}
    work = producing | consuming
    with ThreadPoolExecutor(len(work), "traffic") as at_once:
        for name, one in work.items():
            at_once.submit(again_and_again, name, one, stopping)


@click.command()
@click.argument("fleet_file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def main(fleet_file: Path) -> None:
    """Produce and consume in the regions that FLEET_FILE describes."""
    start_logging("text")
    run(load(fleet_file), stopping_on_signals())


if __name__ == "__main__":
    main()
