"""The metadata of a Kafka cluster as values: plans and rules use them without a Kafka client."""

from fleetgauge_core.metadata.cluster_metadata import (
    BrokerRegistration,
    ClusterMetadata,
    PartitionMetadata,
    TopicPartition,
)

__all__ = ["BrokerRegistration", "ClusterMetadata", "PartitionMetadata", "TopicPartition"]
