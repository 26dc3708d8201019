"""What a cluster says of itself when asked through kafka-python. Nothing here changes it."""

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

from fleetgauge_core.kafka.admin import PartitionView, TopicSpec, TopicView

_READINGS = 3
#: Timestamps are whole milliseconds.
_TICK_US = 1000

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Unknown:
    """A fact that was not to be had, and why."""

    reason: str


@dataclass(frozen=True, slots=True)
class Rights:
    """Whether anything is forbidden to anybody, and what the client may do with the cluster.

    None is what the broker does not report.
    """

    secured: bool | None
    cluster: frozenset[str] | None


@dataclass(frozen=True, slots=True)
class Clock:
    """How far the clock of the cluster's controller is ahead of ours, give or take ``uncertainty_us``."""

    ahead_us: int
    uncertainty_us: int


@dataclass(frozen=True, slots=True)
class Refusal:
    """Kafka's name of an error and its words."""

    code: str
    message: str

    @property
    def denied(self) -> bool:
        """Whether a right is missing, rather than the request being wrong."""
        return self.code.endswith("AUTHORIZATION_FAILED")


@dataclass(frozen=True, slots=True)
class TopicSight:
    """A topic that Fleetgauge uses, as it would make it and as it is.

    ``view`` is None where it is ``absent`` or cannot be seen, ``operations`` where the broker does not
    report what we may do with it; ``settings`` are those that could be read. ``refusal`` is what
    looking at it met, or a dry run of making an absent one.
    """

    spec: TopicSpec
    operations: frozenset[str] | None
    view: TopicView | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    absent: bool = False
    refusal: Refusal | None = None

    @property
    def hidden(self) -> bool:
        """Whether it may be there, but not for us."""
        return not self.absent and self.refusal is not None and self.refusal.denied


def told(ask: Callable[[], T], tries: int = 1) -> T | Unknown:
    """The answer, or why there is none."""
    try:
        return ask()
    except (KafkaError, OSError) as error:
        if tries > 1 and getattr(error, "retriable", False):
            return told(ask, tries - 1)
        return Unknown(str(error))


def rights(admin: KafkaAdminClient, described: Mapping[str, Any]) -> Rights:
    return Rights(_secured(admin), _operations(described))


def _secured(admin: KafkaAdminClient) -> bool | None:
    """Only a broker that has an authorizer lists access rules, or refuses to."""
    anybody_reads = ACLFilter(
        principal=None,
        host=None,
        operation=ACLOperation.READ,
        permission_type=ACLPermissionType.ANY,
        resource_pattern=ResourcePatternFilter(
            ResourceType.TOPIC, "fleetgauge.probe", ACLResourcePatternType.LITERAL
        ),
    )
    try:
        admin.describe_acls(anybody_reads)
    except SecurityDisabledError:
        return False
    except AuthorizationError:
        return True
    except UnsupportedVersionError:
        return None
    return True


def clock(admin: KafkaAdminClient) -> Clock | Unknown:
    """The best of a few readings: the first pays for a connection."""
    readings = [_reading(admin) for _ in range(_READINGS)]
    known = [one for one in readings if one]
    return min(
        known, key=lambda one: one.uncertainty_us, default=Unknown("its controller keeps it to itself")
    )


def _reading(admin: KafkaAdminClient) -> Clock | None:
    """A KRaft leader puts its own present time where it would say when a follower last caught up."""
    asked_ns = time.time_ns()
    described = admin.describe_metadata_quorum()
    answered_ns = time.time_ns()
    middle_us = (asked_ns + answered_ns) // 2000
    uncertainty_us = (answered_ns - asked_ns) // 2000 + _TICK_US
    for quorum in (partition for topic in described["topics"] for partition in topic["partitions"]):
        for voter in quorum["current_voters"]:
            stamp_ms = voter["last_caught_up_timestamp"]
            if voter["replica_id"] == quorum["leader_id"] and stamp_ms > 0:
                return Clock(stamp_ms * 1000 - middle_us, uncertainty_us)
    return None


def topics(admin: KafkaAdminClient, specs: Sequence[TopicSpec]) -> tuple[TopicSight, ...]:
    """Each topic as it is; where it is not, what a dry run of making it meets."""
    described = {one["name"]: one for one in admin.describe_topics([spec.name for spec in specs])}
    return tuple(_sight(admin, spec, described[spec.name]) for spec in specs)


def _sight(admin: KafkaAdminClient, spec: TopicSpec, described: Mapping[str, Any]) -> TopicSight:
    operations = _operations(described)
    error = for_code(described["error_code"])
    if error is NoError:
        return TopicSight(spec, operations, _view(described), _settings(admin, spec))
    if error is UnknownTopicOrPartitionError:
        return TopicSight(spec, operations, absent=True, refusal=_dry_run(admin, spec))
    return TopicSight(spec, operations, refusal=Refusal(error.message, error.description))


def _view(described: Mapping[str, Any]) -> TopicView:
    return TopicView(
        str(described["topic_id"]),
        {one["partition_index"]: partition_view(one) for one in described["partitions"]},
    )


def partition_view(described: Mapping[str, Any]) -> PartitionView:
    """One of the partitions of what kafka-python's ``describe_topics`` says of a topic."""
    return PartitionView(
        leader=described["leader_id"] if described["leader_id"] >= 0 else None,
        replicas=tuple(described["replica_nodes"]),
        in_sync=frozenset(described["isr_nodes"]),
    )


def _settings(admin: KafkaAdminClient, spec: TopicSpec) -> dict[str, str]:
    """The present values of the settings that we would make it with; empty where they may not be read."""
    wanted = ConfigResource(ConfigResourceType.TOPIC, spec.name, list(spec.settings))
    found = admin.describe_configs([wanted], config_filter="all")["topic"][spec.name]
    return {key: str(one["value"]) for key, one in found.items()}


def _dry_run(admin: KafkaAdminClient, spec: TopicSpec) -> Refusal | None:
    placed = (
        {"assignments": dict(enumerate(map(list, spec.assignment)))}
        if spec.assignment
        else {"num_partitions": spec.partitions, "replication_factor": spec.replication_factor}
    )
    wanted = {spec.name: placed | {"configs": dict(spec.settings)}}
    (answer,) = admin.create_topics(wanted, validate_only=True, raise_errors=False)["topics"]
    error = for_code(answer["error_code"])
    return None if error is NoError else Refusal(error.message, answer["error_message"] or error.description)


def _operations(described: Mapping[str, Any]) -> frozenset[str] | None:
    operations = described["authorized_operations"]
    return None if operations is None else frozenset(operations)
