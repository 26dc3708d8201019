"""Topic inspections as the inspection of a cluster returns them."""

from collections.abc import Mapping

from fleetgauge_core.kafka import RequestRejection, TopicInspection, TopicMetadata, TopicSpec
from fleetgauge_core.metadata import PartitionMetadata

ALL_OPERATIONS = frozenset(
    {"CREATE", "DESCRIBE", "WRITE", "READ", "ALTER", "DESCRIBE_CONFIGS", "ALTER_CONFIGS", "DELETE"}
)
SETTINGS = {"retention.ms": "3600000", "cleanup.policy": "delete", "segment.ms": "600000"}
SPEC = TopicSpec("fleetgauge.probe", SETTINGS, assignment=((1, 2, 3), (2, 3, 1), (3, 1, 2)))
UNAUTHORIZED = RequestRejection("TOPIC_AUTHORIZATION_FAILED", "no")


def absent_topic(
    operations: frozenset[str] | None = ALL_OPERATIONS, rejection: RequestRejection | None = None
) -> TopicInspection:
    return TopicInspection(SPEC, operations, is_absent=True, rejection=rejection)


def existing_topic(
    operations: frozenset[str] | None = ALL_OPERATIONS,
    settings: Mapping[str, str] = SETTINGS,
    replicas: int = 3,
) -> TopicInspection:
    partition = PartitionMetadata(1, tuple(range(1, replicas + 1)), frozenset({1}))
    return TopicInspection(SPEC, operations, TopicMetadata("id", {0: partition, 1: partition}), settings)


def hidden_topic() -> TopicInspection:
    return TopicInspection(SPEC, None, rejection=UNAUTHORIZED)
