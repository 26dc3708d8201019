"""Reading of a cluster's metadata through kafka-python."""

from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType

from fleetgauge_core.fleet import ClusterAccess
from fleetgauge_core.kafka.broker_registry import (
    parse_broker_registry,
    select_reachable_bootstrap,
)
from fleetgauge_core.kafka.cluster_queries import parse_partition_metadata
from fleetgauge_core.kafka.errors import KafkaUnavailableError, translate_kafka_python_errors
from fleetgauge_core.kafka.kafka_python_admin import (
    connected_admin_client,
    retry_with_longer_timeouts,
    wait_for_connection,
)
from fleetgauge_core.metadata import ClusterMetadata, TopicPartition

_MIN_IN_SYNC = "min.insync.replicas"
#: The topic setting that lists throttled followers, and the broker setting of their rate in bytes/s (KIP-73).
FOLLOWER_THROTTLED_REPLICAS = "follower.replication.throttled.replicas"
FOLLOWER_THROTTLED_RATE = "follower.replication.throttled.rate"


def read_cluster_metadata(access: ClusterAccess) -> ClusterMetadata:
    """Read the metadata, internal topics included.

    Raises: KafkaUnavailableError if no broker answers; KafkaRequestRejectedError if a permission is missing.
    """
    reachable = select_reachable_bootstrap(access)
    return retry_with_longer_timeouts(lambda timeout_ms: _read(reachable, timeout_ms))


def _read(access: ClusterAccess, timeout_ms: int) -> ClusterMetadata:
    with (
        translate_kafka_python_errors(access.bootstrap),
        connected_admin_client(access, "fleetgauge-layout", timeout_ms, timeout_ms) as (admin, network),
    ):
        wait_for_connection(network)
        topics = admin.describe_topics()
        settings_by_topic = _read_settings(admin, [topic["name"] for topic in topics])
        return ClusterMetadata(
            brokers=parse_broker_registry(admin.describe_cluster()).brokers,
            partitions={
                TopicPartition(topic["name"], partition["partition_index"]): parse_partition_metadata(
                    partition
                )
                for topic in topics
                for partition in topic["partitions"]
            },
            min_in_sync={name: int(settings[_MIN_IN_SYNC]) for name, settings in settings_by_topic.items()},
            reassigning=frozenset(
                TopicPartition(partition.topic, partition.partition)
                for partition in admin.list_partition_reassignments(timeout_ms=timeout_ms)
            ),
            throttled_topics=frozenset(
                name for name, settings in settings_by_topic.items() if settings[FOLLOWER_THROTTLED_REPLICAS]
            ),
        )


def _read_settings(admin: KafkaAdminClient, topics: list[str]) -> dict[str, dict[str, str]]:
    keys = [_MIN_IN_SYNC, FOLLOWER_THROTTLED_REPLICAS]
    resources = [ConfigResource(ConfigResourceType.TOPIC, name, keys) for name in topics]
    described = admin.describe_configs(resources, config_filter="all").get("topic", {})
    # The response omits a topic that was deleted since it was listed, and one without DescribeConfigs.
    missing = [name for name in topics if not set(keys) <= described.get(name, {}).keys()]
    if missing:
        raise KafkaUnavailableError(
            f"topic {missing[0]}: its settings were not returned, because it was just deleted or the"
            " client lacks DescribeConfigs"
        )
    return {name: {key: described[name][key]["value"] for key in keys} for name in topics}
