"""The metadata of a Kafka cluster as values: plans and rules use them without a Kafka client."""

from fleetgauge_core.metadata.cluster_metadata import (
    BrokerRegistration,
    ClusterMetadata,
    PartitionMetadata,
    TopicPartition,
)
from fleetgauge_core.metadata.topic_changes import (
    ConfirmedTopicId,
    LogBounds,
    OffsetGap,
    PresentTopic,
    TopicChange,
    TopicChangeKind,
    TopicSnapshot,
    describe_change,
    find_topic_changes,
)
from fleetgauge_core.metadata.topic_settings import (
    MIN_IN_SYNC,
    SettingDifference,
    build_log_settings,
    build_state_settings,
    compute_min_in_sync,
    find_differences,
)

__all__ = [
    "MIN_IN_SYNC",
    "BrokerRegistration",
    "ClusterMetadata",
    "ConfirmedTopicId",
    "LogBounds",
    "OffsetGap",
    "PartitionMetadata",
    "PresentTopic",
    "SettingDifference",
    "TopicChange",
    "TopicChangeKind",
    "TopicPartition",
    "TopicSnapshot",
    "build_log_settings",
    "build_state_settings",
    "compute_min_in_sync",
    "describe_change",
    "find_differences",
    "find_topic_changes",
]
