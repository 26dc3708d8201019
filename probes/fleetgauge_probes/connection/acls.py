"""The least permissions that an agent needs, as ACLs for an administrator to grant."""

from collections.abc import Iterator
from dataclasses import dataclass

from fleetgauge_core.fleet import NO_SECURITY, ClusterAccess, Fleet
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
    """Kafka ACL operations on a topic, or on the cluster resource if ``topic`` is None.

    ``secured`` is whether the administrator has to authenticate in order to grant them.
    """

    cluster: str
    bootstrap: str
    secured: bool
    topic: str | None
    operations: tuple[str, ...]

    def format_command(self, principal: str) -> str:
        """Return the kafka-acls.sh command line that grants the operations to a principal."""
        operations = " ".join(f"--operation {format_operation(operation)}" for operation in self.operations)
        resource = f"--topic {self.topic}" if self.topic else "--cluster"
        credentials = " --command-config admin.properties" if self.secured else ""
        return (
            f"kafka-acls.sh --bootstrap-server {self.bootstrap}{credentials} --add "
            f"--allow-principal {principal} {operations} {resource}"
        )


def list_grants(fleet: Fleet) -> Iterator[AclGrant]:
    """Yield what the agent needs in every cluster of the fleet and in the telemetry cluster."""
    for cluster in fleet.clusters:
        yield from _list_cluster_grants(cluster.id, cluster.access, (TOPIC,), PROBING)
    if fleet.telemetry:
        topics, access = fleet.telemetry.topics, fleet.telemetry.access
        names = (topics.probe_minutes.name, topics.probe_pulse.name, topics.health_events.name)
        yield from _list_cluster_grants("telemetry", access, names, REPORTING)
        for name in names:
            yield _build_grant("telemetry", access, name, _KEPT)
        yield _build_grant("telemetry", access, topics.demotions.name, _READ_ONLY)


def _list_cluster_grants(
    cluster: str, access: ClusterAccess, topics: tuple[str, ...], required: RequiredOperations
) -> Iterator[AclGrant]:
    for topic in topics:
        yield _build_grant(cluster, access, topic, ("CREATE", *required.topic))
    if required.cluster:
        yield _build_grant(cluster, access, None, required.cluster)


def _build_grant(
    cluster: str, access: ClusterAccess, topic: str | None, operations: tuple[str, ...]
) -> AclGrant:
    return AclGrant(cluster, access.bootstrap, access.security != NO_SECURITY, topic, operations)
