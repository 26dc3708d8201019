"""The least permissions that each process needs, as ACLs for an administrator to grant."""

import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from fleetgauge_core.fleet import NO_SECURITY, ClusterAccess, Fleet
from fleetgauge_core.fleet.rights import (
    AclResource,
    RequiredRights,
    list_mitigation_rights,
    list_observe_rights,
    list_recovery_rights,
    list_stream_rights,
    list_watch_rights,
)
from fleetgauge_probes.agent.topic_plan import TOPIC
from fleetgauge_probes.connection.permissions import (
    PROBING,
    REPORTING,
    RequiredOperations,
    format_operation,
)

#: On the topic of demotion marks, which the agent only reads.
_READ_ONLY = ("DESCRIBE", "READ")
#: On the topics that the agent keeps as specified; without them it sends records all the same.
_KEPT = ("DESCRIBE_CONFIGS", "ALTER_CONFIGS")


@dataclass(frozen=True, slots=True)
class AclGrant:
    """Kafka ACL operations on a topic or a consumer group, or on the cluster resource without either.

    ``secured`` is whether the administrator has to authenticate in order to grant them. The name is a prefix
    of the resources' names if ``pattern`` is ``prefixed``, and ``*`` stands for all of them.
    """

    cluster: str
    bootstrap: str
    secured: bool
    topic: str | None
    operations: tuple[str, ...]
    group: str | None = None
    pattern: str = "literal"

    def format_command(self, principal: str) -> str:
        """Return the kafka-acls.sh command line that grants the operations to a principal."""
        operations = " ".join(f"--operation {format_operation(operation)}" for operation in self.operations)
        pattern = "" if self.pattern == "literal" else f" --resource-pattern-type {self.pattern}"
        credentials = " --command-config admin.properties" if self.secured else ""
        return (
            f"kafka-acls.sh --bootstrap-server {self.bootstrap}{credentials} --add "
            f"--allow-principal {principal} {operations}{pattern} {self._format_resource()}"
        )

    def _format_resource(self) -> str:
        if self.group:
            return f"--group {shlex.quote(self.group)}"
        return f"--topic {shlex.quote(self.topic)}" if self.topic else "--cluster"


def list_grants(fleet: Fleet, role: str = "agent") -> Iterator[AclGrant]:
    """Yield what a process needs in the clusters of the fleet; ``role`` is a key of ROLES."""
    for rights in ROLES[role](fleet):
        resource = rights.resource
        yield AclGrant(
            rights.cluster,
            rights.access.bootstrap,
            rights.access.security != NO_SECURITY,
            resource.topic,
            rights.operations,
            resource.group,
            "prefixed" if resource.is_prefix else "literal",
        )


def _list_agent_rights(fleet: Fleet) -> Iterator[RequiredRights]:
    """Yield what the agent needs in every cluster of the fleet and in the telemetry cluster."""
    for cluster in fleet.clusters:
        yield from _list_cluster_rights(cluster.id, cluster.access, (TOPIC,), PROBING)
    if fleet.telemetry:
        topics, access = fleet.telemetry.topics, fleet.telemetry.access
        names = (topics.probe_minutes.name, topics.probe_pulse.name, topics.health_events.name)
        yield from _list_cluster_rights("telemetry", access, names, REPORTING)
        for name in names:
            yield RequiredRights("telemetry", access, AclResource(name), _KEPT)
        yield RequiredRights("telemetry", access, AclResource(topics.demotions.name), _READ_ONLY)


def _list_cluster_rights(
    cluster: str, access: ClusterAccess, topics: tuple[str, ...], required: RequiredOperations
) -> Iterator[RequiredRights]:
    for topic in topics:
        yield RequiredRights(cluster, access, AclResource(topic), ("CREATE", *required.topic))
    if required.cluster:
        yield RequiredRights(cluster, access, AclResource(), required.cluster)


#: The rights of each process, by the name that `fleetgauge probe acls --for` takes.
ROLES: Mapping[str, Callable[[Fleet], Iterator[RequiredRights]]] = {
    "agent": _list_agent_rights,
    "watch": list_watch_rights,
    "stream": list_stream_rights,
    "observe": list_observe_rights,
    "recover": list_recovery_rights,
    "mitigate": list_mitigation_rights,
}
