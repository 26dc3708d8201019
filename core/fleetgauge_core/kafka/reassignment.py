"""Where replicas lie: who is being moved, and whom to move (KIP-455). librdkafka cannot ask either."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from kafka import TopicPartition

from fleetgauge_core.fleet import Access
from fleetgauge_core.kafka.broker_registry import open_doors
from fleetgauge_core.kafka.cluster_metadata import Place
from fleetgauge_core.kafka.cluster_queries import partition_view
from fleetgauge_core.kafka.errors import KafkaUnavailableError, unavailable
from fleetgauge_core.kafka.kafka_python_admin import (
    asking,
    in_our_words,
    settle,
    tried,
)

Known = Mapping[Place, Collection[tuple[int, ...]]]


def reassign(access: Access, topic: str, replicas: Mapping[int, Sequence[int]]) -> bool:
    """Let these be the replicas, by partition, in this order; False, nothing done, while the topic is moving.

    Raises KafkaUnavailableError, KafkaRefusedError.
    """
    doors = open_doors(access)
    wanted = {Place(topic, number): brokers for number, brokers in replicas.items()}
    return tried(lambda timeout_ms: _reassign(doors, wanted, timeout_ms))


def reorder_all(access: Access, replicas: Mapping[Place, Sequence[int]], known: Known) -> bool:
    """Let replicas be in this order, by partition; False, nothing done, while any of them is moving.

    ``known``: the orders in which each may be found. Raises KafkaUnavailableError where somebody has given
    one another since, so that theirs would be lost or data move: nothing was done; KafkaRefusedError.
    """
    doors = open_doors(access)
    return tried(lambda timeout_ms: _reassign(doors, replicas, timeout_ms, known))


def _reassign(
    doors: Access, replicas: Mapping[Place, Sequence[int]], timeout_ms: int, known: Known | None = None
) -> bool:
    wanted = {TopicPartition(*place): list(brokers) for place, brokers in replicas.items()}
    topics = {place.topic for place in replicas}
    with in_our_words(doors), asking(doors, "fleetgauge-reassign", timeout_ms, timeout_ms) as (admin, net):
        settle(net)
        moving = admin.list_partition_reassignments(timeout_ms=timeout_ms)
        if any(one.topic in topics for one in moving):
            return False
        if known is not None:
            _check_that_none_is_otherwise(known, replicas, admin.describe_topics(sorted(topics)))
        errors = admin.alter_partition_reassignments(wanted, timeout_ms=timeout_ms)
    for partition, refusal in errors.items():
        if refusal is not None:
            raise unavailable(refusal.message, f"partition {partition.partition}: {refusal.description}")
    return True


def _check_that_none_is_otherwise(
    known: Known, places: Iterable[Place], topics: Iterable[Mapping[str, Any]]
) -> None:
    now = {
        Place(topic["name"], one["partition_index"]): tuple(partition_view(one).replicas)
        for topic in topics
        for one in topic["partitions"]
    }
    for place in places:
        if now.get(place) not in known[place]:
            raise KafkaUnavailableError(
                f"{place.topic}-{place.partition} has been given other replicas or another order since"
            )
