"""A whole cluster as it is now: who is registered, where every replica lies, who leads, what is moving."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType

from fleetgauge_core.fleet import Access
from fleetgauge_core.kafka.admin import PartitionView
from fleetgauge_core.kafka.broker_registry import Registration, open_doors, registry
from fleetgauge_core.kafka.cluster_queries import partition_view
from fleetgauge_core.kafka.errors import KafkaUnavailableError
from fleetgauge_core.kafka.kafka_python_admin import (
    asking,
    in_our_words,
    settle,
    tried,
)

_MIN_IN_SYNC = "min.insync.replicas"
#: Of a topic, which followers are slowed, and of a broker, to how many bytes a second together (KIP-73).
THROTTLED_REPLICAS = "follower.replication.throttled.replicas"
THROTTLED_RATE = "follower.replication.throttled.rate"


class Place(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class Layout:
    """Brokers by id; ``min_in_sync`` by topic; ``moving``: what is being reassigned.

    ``throttled``: topics of which followers are slowed on purpose (follower.replication.throttled.replicas).
    """

    brokers: Mapping[int, Registration]
    partitions: Mapping[Place, PartitionView]
    min_in_sync: Mapping[str, int]
    moving: frozenset[Place]
    throttled: frozenset[str] = frozenset()

    def replicated_on(self, broker_id: int) -> Mapping[Place, PartitionView]:
        """The partitions of which that broker has a replica."""
        return {place: one for place, one in self.partitions.items() if broker_id in one.replicas}

    def led_by(self, broker_id: int) -> frozenset[Place]:
        return frozenset(place for place, one in self.partitions.items() if one.leader == broker_id)


def read_layout(access: Access) -> Layout:
    """Internal topics included. Raises KafkaUnavailableError, KafkaRefusedError."""
    doors = open_doors(access)
    return tried(lambda timeout_ms: _read(doors, timeout_ms))


def _read(doors: Access, timeout_ms: int) -> Layout:
    with in_our_words(doors), asking(doors, "fleetgauge-layout", timeout_ms, timeout_ms) as (admin, net):
        settle(net)
        topics = admin.describe_topics()
        settings = _settings(admin, [topic["name"] for topic in topics])
        return Layout(
            brokers=registry(admin.describe_cluster()).brokers,
            partitions={
                Place(topic["name"], one["partition_index"]): partition_view(one)
                for topic in topics
                for one in topic["partitions"]
            },
            min_in_sync={name: int(one[_MIN_IN_SYNC]) for name, one in settings.items()},
            moving=frozenset(
                Place(one.topic, one.partition)
                for one in admin.list_partition_reassignments(timeout_ms=timeout_ms)
            ),
            throttled=frozenset(name for name, one in settings.items() if one[THROTTLED_REPLICAS]),
        )


def _settings(admin: KafkaAdminClient, topics: list[str]) -> dict[str, dict[str, str]]:
    keys = [_MIN_IN_SYNC, THROTTLED_REPLICAS]
    wanted = [ConfigResource(ConfigResourceType.TOPIC, name, keys) for name in topics]
    found = admin.describe_configs(wanted, config_filter="all").get("topic", {})
    # Of one that was deleted since it was listed nothing is said, nor of one that we may not ask for.
    untold = [name for name in topics if not set(keys) <= found.get(name, {}).keys()]
    if untold:
        raise KafkaUnavailableError(
            f"settings of topic {untold[0]} are not told: it was just deleted, or DescribeConfigs is missing"
        )
    return {name: {key: found[name][key]["value"] for key in keys} for name in topics}
