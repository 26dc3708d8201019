"""Topics as a look shows them."""

from collections.abc import Mapping

from fleetgauge_core.kafka import (
    PartitionView,
    Refusal,
    TopicSight,
    TopicSpec,
    TopicView,
)

ALL = frozenset(
    {"CREATE", "DESCRIBE", "WRITE", "READ", "ALTER", "DESCRIBE_CONFIGS", "ALTER_CONFIGS", "DELETE"}
)
SETTINGS = {"retention.ms": "3600000", "cleanup.policy": "delete", "segment.ms": "600000"}
SPEC = TopicSpec("fleetgauge.probe", SETTINGS, assignment=((1, 2, 3), (2, 3, 1), (3, 1, 2)))
DENIED = Refusal("TOPIC_AUTHORIZATION_FAILED", "no")


def absent(operations: frozenset[str] | None = ALL, refusal: Refusal | None = None) -> TopicSight:
    return TopicSight(SPEC, operations, absent=True, refusal=refusal)


def present(
    operations: frozenset[str] | None = ALL, settings: Mapping[str, str] = SETTINGS, replicas: int = 3
) -> TopicSight:
    partition = PartitionView(1, tuple(range(1, replicas + 1)), frozenset({1}))
    return TopicSight(SPEC, operations, TopicView("id", {0: partition, 1: partition}), settings)


def hidden() -> TopicSight:
    return TopicSight(SPEC, None, refusal=DENIED)
