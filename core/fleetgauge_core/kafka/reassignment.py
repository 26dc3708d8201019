"""Partition reassignment (KIP-455) through kafka-python, because librdkafka does not offer it."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from kafka import TopicPartition as ClientTopicPartition

from fleetgauge_core.fleet import ClusterAccess
from fleetgauge_core.kafka.broker_registry import select_reachable_bootstrap
from fleetgauge_core.kafka.cluster_queries import parse_partition_metadata
from fleetgauge_core.kafka.errors import (
    KafkaUnavailableError,
    translate_kafka_python_errors,
    translate_request_error,
)
from fleetgauge_core.kafka.kafka_python_admin import (
    connected_admin_client,
    retry_with_longer_timeouts,
    wait_for_connection,
)
from fleetgauge_core.metadata import TopicPartition

_ExpectedReplicas = Mapping[TopicPartition, Collection[tuple[int, ...]]]


def reassign_topic(access: ClusterAccess, topic: str, replicas: Mapping[int, Sequence[int]]) -> bool:
    """Start a reassignment to these replicas, in this order, by partition number.

    Returns: False, without a change, while any partition of the topic is being reassigned.
    Raises: KafkaUnavailableError, KafkaRequestRejectedError.
    """
    reachable = select_reachable_bootstrap(access)
    replicas_by_partition = {
        TopicPartition(topic, number): broker_ids for number, broker_ids in replicas.items()
    }
    return retry_with_longer_timeouts(
        lambda timeout_ms: _reassign(reachable, replicas_by_partition, timeout_ms)
    )


def reorder_replicas(
    access: ClusterAccess,
    replicas: Mapping[TopicPartition, Sequence[int]],
    expected: Mapping[TopicPartition, Collection[tuple[int, ...]]],
) -> bool:
    """Change the order of partitions' replicas, if their present order is one of the expected orders.

    Returns: False, without a change, while any partition of these topics is being reassigned.
    Raises: KafkaUnavailableError, without a change, if a partition has other replicas or another order than
    expected, because a reassignment by another operator would be undone or data would move;
    KafkaRequestRejectedError.
    """
    reachable = select_reachable_bootstrap(access)
    return retry_with_longer_timeouts(lambda timeout_ms: _reassign(reachable, replicas, timeout_ms, expected))


def _reassign(
    access: ClusterAccess,
    replicas: Mapping[TopicPartition, Sequence[int]],
    timeout_ms: int,
    expected: _ExpectedReplicas | None = None,
) -> bool:
    reassignments = {
        ClientTopicPartition(*partition): list(broker_ids) for partition, broker_ids in replicas.items()
    }
    topics = {partition.topic for partition in replicas}
    with (
        translate_kafka_python_errors(access.bootstrap),
        connected_admin_client(access, "fleetgauge-reassign", timeout_ms, timeout_ms) as (admin, network),
    ):
        wait_for_connection(network)
        in_progress = admin.list_partition_reassignments(timeout_ms=timeout_ms)
        if any(partition.topic in topics for partition in in_progress):
            return False
        if expected is not None:
            _check_expected_replicas(expected, replicas, admin.describe_topics(sorted(topics)))
        errors = admin.alter_partition_reassignments(reassignments, timeout_ms=timeout_ms)
    for partition, error in errors.items():
        if error is not None:
            raise translate_request_error(
                error.message, f"partition {partition.partition}: {error.description}"
            )
    return True


def _check_expected_replicas(
    expected: _ExpectedReplicas,
    partitions: Iterable[TopicPartition],
    described_topics: Iterable[Mapping[str, Any]],
) -> None:
    present = {
        TopicPartition(topic["name"], described["partition_index"]): tuple(
            parse_partition_metadata(described).replicas
        )
        for topic in described_topics
        for described in topic["partitions"]
    }
    for partition in partitions:
        if present.get(partition) not in expected[partition]:
            raise KafkaUnavailableError(
                f"{partition.topic}-{partition.partition}: its replicas or their order were changed in the"
                " meantime"
            )
