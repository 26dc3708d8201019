"""Queries of a cluster's state through kafka-python. All are read-only."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from kafka import KafkaAdminClient
from kafka.admin import (
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ConfigResource,
    ConfigResourceType,
    ResourcePatternFilter,
    ResourceType,
)
from kafka.errors import (
    AuthorizationError,
    KafkaError,
    NoError,
    SecurityDisabledError,
    UnknownTopicOrPartitionError,
    UnsupportedVersionError,
    for_code,
)

from fleetgauge_core.kafka.cluster_admin import TopicMetadata, TopicSpec
from fleetgauge_core.metadata import PartitionMetadata

_CLOCK_READINGS = 3
#: Kafka's timestamps are whole milliseconds.
_TIMESTAMP_RESOLUTION_US = 1000

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class QueryFailure:
    """The reason why a fact about a cluster could not be read."""

    reason: str


@dataclass(frozen=True, slots=True)
class ClusterAuthorization:
    """Whether the cluster has an authorizer, and which cluster operations it allows this client.

    A field is None if the broker does not report it.
    """

    has_authorizer: bool | None
    cluster_operations: frozenset[str] | None


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """How far the controller's clock is ahead of this machine's; the error is at most ``uncertainty_us``."""

    ahead_us: int
    uncertainty_us: int


@dataclass(frozen=True, slots=True)
class RequestRejection:
    """A broker's rejection of a request: the name of the Kafka error and its message."""

    error_name: str
    message: str

    @property
    def is_unauthorized(self) -> bool:
        """Whether the client lacks a permission, rather than the request being invalid."""
        return self.error_name.endswith("AUTHORIZATION_FAILED")


@dataclass(frozen=True, slots=True)
class TopicInspection:
    """A topic that Fleetgauge uses: its specification, and its state in the cluster.

    ``metadata`` is None if the topic is absent or hidden; ``authorized_operations`` is None if the broker
    does not report them. ``settings`` holds those that could be read. ``rejection`` is the error of
    describing the topic, or of a dry run of creating an absent one.
    """

    spec: TopicSpec
    authorized_operations: frozenset[str] | None
    metadata: TopicMetadata | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    is_absent: bool = False
    rejection: RequestRejection | None = None

    @property
    def is_hidden(self) -> bool:
        """Whether the topic may exist, but this client is not authorized to describe it."""
        return not self.is_absent and self.rejection is not None and self.rejection.is_unauthorized


def query(ask: Callable[[], T], attempts: int = 1) -> T | QueryFailure:
    """Return the result of ``ask``, or why it failed after so many attempts at a retriable error."""
    try:
        return ask()
    except (KafkaError, OSError) as error:
        if attempts > 1 and getattr(error, "retriable", False):
            return query(ask, attempts - 1)
        return QueryFailure(str(error))


def read_cluster_authorization(admin: KafkaAdminClient, described: Mapping[str, Any]) -> ClusterAuthorization:
    """Return the authorization; ``described`` is kafka-python's ``describe_cluster`` result."""
    return ClusterAuthorization(_has_authorizer(admin), _authorized_operations(described))


def _has_authorizer(admin: KafkaAdminClient) -> bool | None:
    """Describe some ACLs: only a broker with an authorizer lists them, or denies the request."""
    any_reader_of_probe_topic = ACLFilter(
        principal=None,
        host=None,
        operation=ACLOperation.READ,
        permission_type=ACLPermissionType.ANY,
        resource_pattern=ResourcePatternFilter(
            ResourceType.TOPIC, "fleetgauge.probe", ACLResourcePatternType.LITERAL
        ),
    )
    try:
        admin.describe_acls(any_reader_of_probe_topic)
    except SecurityDisabledError:
        return False
    except AuthorizationError:
        return True
    except UnsupportedVersionError:
        return None
    return True


def measure_clock_offset(admin: KafkaAdminClient) -> ClockOffset | QueryFailure:
    """Return the most precise of three readings; the first includes opening a connection."""
    readings = [_read_clock_offset(admin) for _ in range(_CLOCK_READINGS)]
    offsets = [offset for offset in readings if offset]
    return min(
        offsets,
        key=lambda offset: offset.uncertainty_us,
        default=QueryFailure("its controller does not report its time"),
    )


def _read_clock_offset(admin: KafkaAdminClient) -> ClockOffset | None:
    """Compare this machine's clock with the controller's, or return None if it is not reported.

    A KRaft leader reports its own current time as its own last caught-up timestamp.
    """
    sent_ns = time.time_ns()
    described = admin.describe_metadata_quorum()
    received_ns = time.time_ns()
    midpoint_us = (sent_ns + received_ns) // 2000
    uncertainty_us = (received_ns - sent_ns) // 2000 + _TIMESTAMP_RESOLUTION_US
    for quorum in (partition for topic in described["topics"] for partition in topic["partitions"]):
        for voter in quorum["current_voters"]:
            timestamp_ms = voter["last_caught_up_timestamp"]
            if voter["replica_id"] == quorum["leader_id"] and timestamp_ms > 0:
                return ClockOffset(timestamp_ms * 1000 - midpoint_us, uncertainty_us)
    return None


def inspect_topics(admin: KafkaAdminClient, specs: Sequence[TopicSpec]) -> tuple[TopicInspection, ...]:
    """Describe each topic; for an absent topic, validate its creation without creating it."""
    described_by_name = {
        described["name"]: described for described in admin.describe_topics([spec.name for spec in specs])
    }
    return tuple(_inspect_topic(admin, spec, described_by_name[spec.name]) for spec in specs)


def _inspect_topic(admin: KafkaAdminClient, spec: TopicSpec, described: Mapping[str, Any]) -> TopicInspection:
    operations = _authorized_operations(described)
    error = for_code(described["error_code"])
    if error is NoError:
        return TopicInspection(
            spec, operations, _parse_topic_metadata(described), _read_settings(admin, spec)
        )
    if error is UnknownTopicOrPartitionError:
        return TopicInspection(spec, operations, is_absent=True, rejection=_validate_creation(admin, spec))
    return TopicInspection(spec, operations, rejection=RequestRejection(error.message, error.description))


def _parse_topic_metadata(described: Mapping[str, Any]) -> TopicMetadata:
    return TopicMetadata(
        str(described["topic_id"]),
        {
            partition["partition_index"]: parse_partition_metadata(partition)
            for partition in described["partitions"]
        },
    )


def parse_partition_metadata(described: Mapping[str, Any]) -> PartitionMetadata:
    """Convert one entry of ``partitions`` in kafka-python's ``describe_topics`` result."""
    return PartitionMetadata(
        leader=described["leader_id"] if described["leader_id"] >= 0 else None,
        replicas=tuple(described["replica_nodes"]),
        in_sync=frozenset(described["isr_nodes"]),
    )


def _read_settings(admin: KafkaAdminClient, spec: TopicSpec) -> dict[str, str]:
    """Return the topic's values of the settings in ``spec``; empty if DescribeConfigs is denied."""
    resource = ConfigResource(ConfigResourceType.TOPIC, spec.name, list(spec.settings))
    described = admin.describe_configs([resource], config_filter="all")["topic"][spec.name]
    return {key: str(config["value"]) for key, config in described.items()}


def _validate_creation(admin: KafkaAdminClient, spec: TopicSpec) -> RequestRejection | None:
    placement = (
        {"assignments": dict(enumerate(map(list, spec.assignment)))}
        if spec.assignment
        else {"num_partitions": spec.partitions, "replication_factor": spec.replication_factor}
    )
    new_topics = {spec.name: placement | {"configs": dict(spec.settings)}}
    (response,) = admin.create_topics(new_topics, validate_only=True, raise_errors=False)["topics"]
    error = for_code(response["error_code"])
    if error is NoError:
        return None
    return RequestRejection(error.message, response["error_message"] or error.description)


def _authorized_operations(described: Mapping[str, Any]) -> frozenset[str] | None:
    operations = described["authorized_operations"]
    return None if operations is None else frozenset(operations)
