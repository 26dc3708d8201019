"""Registered brokers, and partitions with their replicas and leaders."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple


class TopicPartition(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class BrokerRegistration:
    """A registered broker and its client listener."""

    broker_id: int
    host: str
    port: int
    rack: str | None
    fenced: bool


@dataclass(frozen=True, slots=True)
class PartitionMetadata:
    """A partition's leader (None if it has none), replicas in order of preference, and in-sync replicas."""

    leader: int | None
    replicas: tuple[int, ...]
    in_sync: frozenset[int]


@dataclass(frozen=True, slots=True)
class ClusterMetadata:
    """All brokers by ID and all partitions, with what limits their replication.

    ``min_in_sync`` is min.insync.replicas by topic; ``reassigning`` are the partitions being reassigned;
    ``throttled_topics`` are the topics with a value of follower.replication.throttled.replicas.
    """

    brokers: Mapping[int, BrokerRegistration]
    partitions: Mapping[TopicPartition, PartitionMetadata]
    min_in_sync: Mapping[str, int]
    reassigning: frozenset[TopicPartition]
    throttled_topics: frozenset[str] = frozenset()

    def replicated_on(self, broker_id: int) -> Mapping[TopicPartition, PartitionMetadata]:
        """Return the partitions with a replica on a broker."""
        return {
            partition: metadata
            for partition, metadata in self.partitions.items()
            if broker_id in metadata.replicas
        }

    def led_by(self, broker_id: int) -> frozenset[TopicPartition]:
        """Return the partitions that a broker leads."""
        return frozenset(
            partition for partition, metadata in self.partitions.items() if metadata.leader == broker_id
        )
