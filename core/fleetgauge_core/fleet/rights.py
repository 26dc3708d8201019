"""The least permissions of the processes beside the agent, as Kafka ACL operations on their resources.

They follow from the requests that these processes send. READ, WRITE and ALTER include DESCRIBE, and
ALTER_CONFIGS includes DESCRIBE_CONFIGS. A fleet file selects topics and groups by regular expressions, which
an ACL cannot express: those permissions are on all of them.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from fleetgauge_core.fleet.model import Fleet
from fleetgauge_core.fleet.security import ClusterAccess
from fleetgauge_core.fleet.telemetry import Telemetry

#: The groups that elect the leaders of actions are named with this prefix and the cluster.
ACTION_GROUP = "fleetgauge-mitigate"
#: The group that elects the leader of the observers of a shard is named with this prefix and the shard.
OBSERVE_GROUP = "fleetgauge-observe"
_ALL = "*"


class AclResource(NamedTuple):
    """A topic or a consumer group (``*``: all of them); the cluster itself without either."""

    topic: str | None = None
    group: str | None = None
    is_prefix: bool = False


@dataclass(frozen=True, slots=True)
class RequiredRights:
    """ACL operations on a resource of a cluster; ``cluster`` is its id, or ``telemetry``."""

    cluster: str
    access: ClusterAccess
    resource: AclResource
    operations: tuple[str, ...]


def list_watch_rights(fleet: Fleet) -> Iterator[RequiredRights]:
    """Yield what `fleetgauge watch` needs: it reads minutes and pulses, and writes findings and its state.

    Where systems may report changes, it writes these, too.
    """
    if fleet.telemetry:
        topics = fleet.telemetry.topics
        yield from _telemetry_rights(
            fleet.telemetry,
            (AclResource(topics.probe_minutes.name), ("CREATE", "READ")),
            (AclResource(topics.probe_pulse.name), ("CREATE", "READ")),
            (AclResource(topics.health_events.name), ("CREATE", "READ", "WRITE")),
            # Only the watch keeps its state topic's settings; the agent keeps those of the other topics.
            (AclResource(topics.watch_state.name), ("CREATE", "READ", "WRITE", "ALTER_CONFIGS")),
            (AclResource(group=topics.watch_state.name), ("READ",)),
        )
        if fleet.change_sources:
            yield from _telemetry_rights(
                fleet.telemetry, (AclResource(topics.changes.name), ("CREATE", "WRITE"))
            )


def list_stream_rights(fleet: Fleet) -> Iterator[RequiredRights]:
    """Yield what `fleetgauge stream` needs: it reads minutes, findings and changes.

    Spark uses no consumer group.
    """
    if fleet.telemetry:
        topics = fleet.telemetry.topics
        yield from _telemetry_rights(
            fleet.telemetry,
            (AclResource(topics.probe_minutes.name), ("CREATE", "READ")),
            (AclResource(topics.probe_pulse.name), ("CREATE", "DESCRIBE")),
            (AclResource(topics.health_events.name), ("CREATE", "READ")),
            (AclResource(topics.changes.name), ("CREATE", "READ")),
        )


def list_observe_rights(fleet: Fleet) -> Iterator[RequiredRights]:
    """Yield what `fleetgauge observe` needs: it describes clusters, and writes what has changed."""
    for cluster in fleet.clusters:
        for resource, operations in (
            (AclResource(_ALL), ("DESCRIBE", "DESCRIBE_CONFIGS")),
            (AclResource(), ("DESCRIBE", "DESCRIBE_CONFIGS")),
        ):
            yield RequiredRights(cluster.id, cluster.access, resource, operations)
    if fleet.telemetry:
        topics = fleet.telemetry.topics
        yield from _telemetry_rights(
            fleet.telemetry,
            (AclResource(topics.changes.name), ("CREATE", "READ", "WRITE", "ALTER_CONFIGS")),
            (AclResource(group=OBSERVE_GROUP, is_prefix=True), ("READ",)),
        )


def list_mitigation_rights(fleet: Fleet) -> Iterator[RequiredRights]:
    """Yield what `fleetgauge mitigate` needs to observe and to change every cluster."""
    for cluster in fleet.clusters:
        for resource, operations in (
            (AclResource(_ALL), ("DESCRIBE", "ALTER_CONFIGS")),
            (AclResource(), ("ALTER", "ALTER_CONFIGS")),
        ):
            yield RequiredRights(cluster.id, cluster.access, resource, operations)
    if fleet.telemetry:
        topics = fleet.telemetry.topics
        yield from _telemetry_rights(
            fleet.telemetry,
            (AclResource(topics.health_events.name), ("READ",)),
            (AclResource(topics.watch_state.name), ("CREATE", "READ")),
            (AclResource(topics.demotions.name), ("CREATE", "WRITE")),
            (AclResource(group=ACTION_GROUP, is_prefix=True), ("READ",)),
            (AclResource(group=topics.watch_state.name), ("DESCRIBE",)),
        )


def list_recovery_rights(fleet: Fleet) -> Iterator[RequiredRights]:
    """Yield what `fleetgauge recover` needs in the clusters of mirrors, groups, tracers and leases."""
    recovery = fleet.recovery
    operations: dict[tuple[str, AclResource], set[str]] = defaultdict(set)

    def add(cluster_id: str, resource: AclResource, *names: str) -> None:
        operations[cluster_id, resource].update(names)

    for mirror in recovery.mirrors:
        # The failback compares records, and asks which topics of the source are compacted.
        add(mirror.source, AclResource(_ALL), "READ", "DESCRIBE_CONFIGS")
        add(mirror.destination, AclResource(_ALL), "READ")
        if recovery.tracers and mirror.replicates(recovery.tracers.topic):
            add(mirror.source, AclResource(recovery.tracers.topic), "CREATE", "WRITE")
    for groups in recovery.groups:
        # A drill compares what the group has consumed with what it would read.
        add(groups.active, AclResource(_ALL), "READ")
        add(groups.active, AclResource(group=_ALL), "DESCRIBE")
        add(groups.passive, AclResource(_ALL), "READ")
        add(groups.passive, AclResource(group=_ALL), "READ")
    if recovery.primaries and recovery.primaries.topic and recovery.primaries.cluster:
        add(recovery.primaries.cluster, AclResource(recovery.primaries.topic), "READ")
    for (cluster_id, resource), names in operations.items():
        access = fleet.cluster(cluster_id).access
        yield RequiredRights(cluster_id, access, resource, tuple(sorted(_without_implied(names))))


def _without_implied(operations: set[str]) -> set[str]:
    """Return the operations without DESCRIBE, if another one includes it."""
    return operations - {"DESCRIBE"} if "READ" in operations else operations


def _telemetry_rights(
    telemetry: Telemetry, *rights: tuple[AclResource, tuple[str, ...]]
) -> Iterable[RequiredRights]:
    return (
        RequiredRights("telemetry", telemetry.access, resource, operations) for resource, operations in rights
    )
