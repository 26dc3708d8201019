"""The requests of an observer, and their responses as values. Nothing here sends anything.

Every parser returns a QueryFailure for a response with an error.
"""

import sys
from base64 import urlsafe_b64encode
from collections.abc import Collection, Iterable, Mapping
from typing import Any
from uuid import UUID

from kafka.errors import for_code
from kafka.protocol.admin import (
    DescribeAclsRequest,
    DescribeClientQuotasRequest,
    DescribeClusterRequest,
    DescribeConfigsRequest,
    DescribeLogDirsRequest,
    DescribeQuorumRequest,
    ListPartitionReassignmentsRequest,
)
from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest

from fleetgauge_core import __version__
from fleetgauge_core.kafka.cluster_queries import QueryFailure
from fleetgauge_core.metadata import TopicPartition
from fleetgauge_core.metadata.observation import (
    ObservedBroker,
    ObservedLogDir,
    ObservedPartition,
    ObservedQuorum,
    ObservedSetting,
    ObservedSettings,
    ObservedTopic,
    ReplicaMove,
    SettingOrigin,
    SettingOwner,
    SettingScope,
)

_UNKNOWN_TOPIC = 3
_STORAGE_ERROR = 56
_SECURITY_DISABLED = 54
_TOPIC, _BROKER = 2, 4
#: ConfigSource of DescribeConfigs: of the topic, of one broker, of all brokers, of the broker's file.
_TOPIC_SOURCE, _BROKER_SOURCE, _ALL_BROKERS_SOURCE, _FILE_SOURCE = 1, 2, 3, 4
_METADATA_TOPIC = "__cluster_metadata"
_REQUEST_TIMEOUT_MS = 4000
_ANY = 1

#: A topic inherits from its brokers, each of which may have another file.
_ORIGINS = {
    SettingScope.TOPIC: {_TOPIC_SOURCE: SettingOrigin.OWN},
    SettingScope.BROKER: {
        _BROKER_SOURCE: SettingOrigin.OWN,
        _FILE_SOURCE: SettingOrigin.FILE,
        _ALL_BROKERS_SOURCE: SettingOrigin.ALL_BROKERS,
    },
    SettingScope.ALL_BROKERS: {_ALL_BROKERS_SOURCE: SettingOrigin.OWN},
}


def request_versions() -> Any:
    """Ask for the metadata offset and the feature levels."""
    return ApiVersionsRequest(client_software_name="fleetgauge", client_software_version=__version__)


def request_brokers() -> Any:
    """Ask for the registered brokers, fenced ones included (KIP-1073)."""
    return DescribeClusterRequest(include_cluster_authorized_operations=False, include_fenced_brokers=True)


def request_topics(names: Collection[str] | None) -> Any:
    """Ask for these topics, or for all that this client may describe."""
    topic = MetadataRequest.MetadataRequestTopic
    return MetadataRequest(
        topics=None if names is None else [topic(name=name) for name in sorted(names)],
        allow_auto_topic_creation=False,
    )


def request_moves() -> Any:
    """Ask for all partitions that are being reassigned (KIP-455)."""
    return ListPartitionReassignmentsRequest(timeout_ms=_REQUEST_TIMEOUT_MS, topics=None)


def request_quorum() -> Any:
    """Ask for the metadata quorum (KIP-595)."""
    topic = DescribeQuorumRequest.TopicData
    return DescribeQuorumRequest(
        topics=[topic(topic_name=_METADATA_TOPIC, partitions=[topic.PartitionData(partition_index=0)])]
    )


def request_settings(owners: Iterable[SettingOwner]) -> Any:
    """Ask for all settings of these owners; those of a broker can be asked of that broker only."""
    resources = [
        (_TOPIC if owner.scope is SettingScope.TOPIC else _BROKER, owner.name, None) for owner in owners
    ]
    return DescribeConfigsRequest(resources=resources, include_synonyms=False, min_version=1)


def request_quotas() -> Any:
    """Ask for all client quotas (KIP-546)."""
    return DescribeClientQuotasRequest(components=[], strict=False)


def request_acls() -> Any:
    """Ask for all ACL bindings."""
    return DescribeAclsRequest(
        resource_type_filter=_ANY,
        resource_name_filter=None,
        pattern_type_filter=_ANY,
        principal_filter=None,
        host_filter=None,
        operation=_ANY,
        permission_type=_ANY,
    )


def request_log_dirs() -> Any:
    """Ask a broker for its log directories, without what they hold."""
    return DescribeLogDirsRequest(topics=[])


def request_sizes(partitions: Iterable[TopicPartition] | None) -> Any:
    """Ask a broker for the sizes of its replicas of these partitions, or of all."""
    if partitions is None:
        return DescribeLogDirsRequest(topics=None)
    numbers: dict[str, list[int]] = {}
    for partition in partitions:
        numbers.setdefault(partition.topic, []).append(partition.partition)
    topic = DescribeLogDirsRequest.DescribableLogDirTopic
    return DescribeLogDirsRequest(
        topics=[topic(topic=name, partitions=listed) for name, listed in sorted(numbers.items())]
    )


def parse_metadata_offset(response: Any) -> int:
    """Return how far a broker has followed the metadata log; -1 if it does not say."""
    return int(getattr(response, "finalized_features_epoch", -1))


def parse_feature_levels(response: Any) -> dict[str, int]:
    """Return the finalized level of each feature (KIP-584)."""
    return {feature.name: int(feature.max_version_level) for feature in response.finalized_features or ()}


def parse_brokers(response: Any) -> dict[int, ObservedBroker] | QueryFailure:
    """Return the registered brokers by ID."""
    if response.error_code:
        return _failure(response.error_code)
    return {
        int(broker.broker_id): ObservedBroker(
            broker.host, int(broker.port), broker.rack, bool(getattr(broker, "is_fenced", False))
        )
        for broker in response.brokers
    }


def lists_fenced_brokers(response: Any) -> bool:
    """Return whether a list of brokers has the fenced ones too."""
    return bool(response.API_VERSION >= 2)


def parse_topics(response: Any) -> dict[str, ObservedTopic]:
    """Return the topics without an error."""
    return {
        sys.intern(topic.name): ObservedTopic(
            _format_uuid(topic.topic_id),
            {partition.partition_index: _parse_partition(partition) for partition in topic.partitions},
        )
        for topic in response.topics
        if not topic.error_code
    }


def parse_hidden_topics(response: Any) -> frozenset[str]:
    """Return the topics with another error than that they do not exist."""
    return frozenset(topic.name for topic in response.topics if topic.error_code not in (0, _UNKNOWN_TOPIC))


def _parse_partition(partition: Any) -> ObservedPartition:
    leader = partition.leader_id
    return ObservedPartition(
        leader if leader >= 0 else None,
        partition.leader_epoch,
        tuple(partition.replica_nodes),
        tuple(sorted(partition.isr_nodes)),
    )


def parse_moves(response: Any) -> dict[TopicPartition, ReplicaMove] | QueryFailure:
    """Return the partitions that are being reassigned."""
    if response.error_code:
        return _failure(response.error_code)
    return {
        TopicPartition(topic.name, partition.partition_index): ReplicaMove(
            frozenset(partition.adding_replicas), frozenset(partition.removing_replicas)
        )
        for topic in response.topics
        for partition in topic.partitions
    }


def parse_quorum(response: Any) -> ObservedQuorum | QueryFailure:
    """Return the metadata quorum."""
    if response.error_code:
        return _failure(response.error_code)
    partition = response.topics[0].partitions[0]
    if partition.error_code:
        return _failure(partition.error_code)
    # A node that was replaced may be listed with both directories for a while.
    nodes = sorted(
        (*partition.current_voters, *partition.observers),
        key=lambda node: getattr(node, "last_fetch_timestamp", -1),
    )
    return ObservedQuorum(
        leader=int(partition.leader_id),
        leader_epoch=int(partition.leader_epoch),
        voters=frozenset(int(voter.replica_id) for voter in partition.current_voters),
        directory_ids={
            int(node.replica_id): _format_uuid(node.replica_directory_id)
            for node in nodes
            if getattr(node, "replica_directory_id", None) and node.replica_directory_id.int
        },
    )


def parse_settings(response: Any, owners: Collection[SettingOwner]) -> dict[SettingOwner, ObservedSettings]:
    """Return the settings of those owners for which there is no error."""
    by_resource = {
        (_TOPIC if owner.scope is SettingScope.TOPIC else _BROKER, owner.name): owner for owner in owners
    }
    return {
        owner: _parse_owner_settings(result.configs, _ORIGINS[owner.scope])
        for result in response.results
        if not result.error_code and (owner := by_resource.get((result.resource_type, result.resource_name)))
    }


def parse_settings_failures(response: Any) -> str | None:
    """Return the first error of an owner whose settings may not be read; a deleted topic is none."""
    codes = (result.error_code for result in response.results)
    return next((for_code(code).message for code in codes if code not in (0, _UNKNOWN_TOPIC)), None)


def _parse_owner_settings(configs: Iterable[Any], origins: Mapping[int, SettingOrigin]) -> ObservedSettings:
    inherited = SettingOrigin.INHERITED
    return {
        sys.intern(config.name): ObservedSetting(
            config.value, origins.get(config.config_source, inherited), config.is_sensitive
        )
        for config in configs
    }


def parse_quotas(response: Any) -> dict[str, dict[str, float]] | QueryFailure:
    """Return the quotas by entity, for instance ``user=alice, client-id=<default>``."""
    if response.error_code:
        return _failure(response.error_code)
    return {
        ", ".join(
            f"{part.entity_type}={'<default>' if part.entity_name is None else part.entity_name}"
            for part in sorted(entry.entity, key=lambda part: str(part.entity_type), reverse=True)
        ): {value.key: float(value.value) for value in entry.values}
        for entry in response.entries
    }


def parse_acls(response: Any) -> frozenset[str] | QueryFailure:
    """Return the bindings as text; a cluster without an authorizer has none."""
    if response.error_code == _SECURITY_DISABLED:
        return frozenset()
    if response.error_code:
        return _failure(response.error_code)
    return frozenset(
        f"{acl.permission_type} {acl.operation} on {resource.resource_type} {resource.pattern_type}"
        f" {resource.resource_name} to {acl.principal} from {acl.host}"
        for resource in response.resources
        for acl in resource.acls
    )


def parse_log_dirs(response: Any) -> dict[str, ObservedLogDir] | QueryFailure:
    """Return a broker's log directories by path."""
    if getattr(response, "error_code", 0):
        return _failure(response.error_code)
    return {
        directory.log_dir: ObservedLogDir(
            directory.error_code == _STORAGE_ERROR, bool(getattr(directory, "is_cordoned", False))
        )
        for directory in response.results
    }


def parse_sizes(response: Any) -> dict[TopicPartition, int] | QueryFailure:
    """Return the sizes of a broker's replicas in bytes."""
    if getattr(response, "error_code", 0):
        return _failure(response.error_code)
    return {
        TopicPartition(topic.name, partition.partition_index): int(partition.partition_size)
        for directory in response.results
        for topic in directory.topics
        for partition in topic.partitions
    }


def group_moves_by_destination(
    moves: Mapping[TopicPartition, ReplicaMove],
) -> dict[int, list[TopicPartition]]:
    """Return the partitions that each broker gets a replica of."""
    by_broker: dict[int, list[TopicPartition]] = {}
    for partition, move in moves.items():
        for broker_id in move.adding:
            by_broker.setdefault(broker_id, []).append(partition)
    return by_broker


def _format_uuid(uuid: UUID) -> str:
    """Return an ID as Kafka's tools and other clients write it."""
    return urlsafe_b64encode(uuid.bytes).decode().rstrip("=")


def _failure(code: int) -> QueryFailure:
    return QueryFailure(for_code(code).message)
