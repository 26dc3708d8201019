"""Check of the operations that this client is authorized for against those that Fleetgauge requires."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from fleetgauge_core.kafka import ClusterAuthorization, QueryFailure, TopicInspection
from fleetgauge_probes.connection.check import ConnectionCheck, build_check, build_unknown_check

_TOPIC_OPERATION_NAMES = {
    "CREATE": "create",
    "DESCRIBE": "describe",
    "WRITE": "write",
    "READ": "read",
    "ALTER": "add partitions",
    "DESCRIBE_CONFIGS": "read settings",
    "ALTER_CONFIGS": "change settings",
}
_CLUSTER_OPERATION_NAMES = {
    "DESCRIBE": "list partition reassignments",
    "ALTER": "elect leaders and reassign partitions",
}


@dataclass(frozen=True, slots=True)
class RequiredOperations:
    """Kafka ACL operations that Fleetgauge needs on its topics and on the cluster resource."""

    topic: tuple[str, ...]
    cluster: tuple[str, ...] = ()


#: The agent, in a cluster that it probes.
PROBING = RequiredOperations(
    ("DESCRIBE", "WRITE", "READ", "ALTER", "DESCRIBE_CONFIGS", "ALTER_CONFIGS"), ("DESCRIBE", "ALTER")
)
#: Agent, stream and watch, in the telemetry cluster.
TELEMETRY = RequiredOperations(("DESCRIBE", "WRITE", "READ"))
#: The agent alone, in the telemetry cluster.
REPORTING = RequiredOperations(("DESCRIBE", "WRITE"))


@dataclass(frozen=True, slots=True)
class _Permission:
    """An operation on a topic, or on the cluster resource if ``topic`` is None.

    ``is_granted`` is None if the cluster does not report it.
    """

    operation: str
    topic: str | None
    is_granted: bool | None

    @property
    def name(self) -> str:
        return (_TOPIC_OPERATION_NAMES if self.topic else _CLUSTER_OPERATION_NAMES)[self.operation]

    @property
    def option(self) -> str:
        """The options of kafka-acls.sh that grant it."""
        resource = f"--topic {self.topic}" if self.topic else "--cluster"
        return f"--operation {format_operation(self.operation)} {resource}"


def format_operation(operation: str) -> str:
    """Return an operation as kafka-acls.sh spells it: ALTER_CONFIGS becomes AlterConfigs."""
    return "".join(part.capitalize() for part in operation.split("_"))


def check_permissions(
    required: RequiredOperations,
    authorization: ClusterAuthorization | QueryFailure,
    topics: Sequence[TopicInspection] | QueryFailure,
) -> ConnectionCheck:
    """Return a check that fails if a required operation is not authorized."""
    if isinstance(authorization, QueryFailure):
        return build_unknown_check("rights", authorization.reason)
    if authorization.has_authorizer is False:
        return build_check("rights", ["no authorizer: every client may do everything"], ())
    if isinstance(topics, QueryFailure):
        return build_unknown_check("rights", topics.reason)
    permissions = [
        *_list_cluster_permissions(required, authorization),
        *_list_topic_permissions(required, topics),
    ]
    denied = [permission for permission in permissions if permission.is_granted is False]
    if denied:
        missing = ", ".join(f"{permission.name} ({permission.topic or 'cluster'})" for permission in denied)
        options = " and ".join(permission.option for permission in denied)
        return build_check(
            "rights",
            [f"not authorized to {missing}"],
            [f"kafka-acls.sh --add --allow-principal ... {options}"],
        )
    if any(permission.is_granted is None for permission in permissions):
        unreported = _join_names(permissions, None)
        return build_unknown_check("rights", f"the cluster does not report whether it allows to {unreported}")
    return build_check("rights", [f"authorized to {_join_names(permissions, True)}"], ())


def _list_cluster_permissions(
    required: RequiredOperations, authorization: ClusterAuthorization
) -> Iterator[_Permission]:
    allowed = authorization.cluster_operations
    for operation in required.cluster:
        yield _Permission(operation, None, None if allowed is None else operation in allowed)


def _list_topic_permissions(
    required: RequiredOperations, topics: Sequence[TopicInspection]
) -> Iterator[_Permission]:
    """Yield the permissions on topics; for an absent topic, a dry run has shown whether it may be created.

    The dry run covers both ways to be allowed: by an ACL on the cluster or on the topic.
    """
    for topic in topics:
        if topic.is_absent:
            may_create = not (topic.rejection and topic.rejection.is_unauthorized)
            yield _Permission("CREATE", topic.spec.name, may_create)
        for operation in required.topic:
            yield _Permission(operation, topic.spec.name, _is_granted(operation, topic))


def _is_granted(operation: str, topic: TopicInspection) -> bool | None:
    """Return whether an operation is granted; a hidden topic grants none, as any would reveal it."""
    if topic.authorized_operations is not None:
        return operation in topic.authorized_operations
    return False if topic.is_hidden else None


def _join_names(permissions: Iterable[_Permission], is_granted: bool | None) -> str:
    return ", ".join(
        dict.fromkeys(permission.name for permission in permissions if permission.is_granted is is_granted)
    )
