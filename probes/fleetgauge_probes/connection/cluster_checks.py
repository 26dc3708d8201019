"""Connects to every cluster of a fleet, and to the telemetry cluster, and checks each of them."""

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from datetime import datetime

from fleetgauge_core.fleet import Cluster, Fleet, Telemetry
from fleetgauge_core.kafka import (
    BrokerRegistry,
    ClusterInspection,
    ConnectionFailure,
    InspectionTarget,
    TopicSpec,
    build_telemetry_topic_specs,
    inspect_clusters,
)
from fleetgauge_probes.agent.topic_plan import TOPIC, HomeBroker, TopicCreation, plan_probe_topic
from fleetgauge_probes.connection.certificates import check_certificates
from fleetgauge_probes.connection.check import ConnectionCheck
from fleetgauge_probes.connection.clock import check_clock
from fleetgauge_probes.connection.permissions import (
    PROBING,
    TELEMETRY,
    RequiredOperations,
    check_permissions,
)
from fleetgauge_probes.connection.reachability import check_bootstrap, check_brokers, check_version
from fleetgauge_probes.connection.topics import check_topics

_NO_TELEMETRY = ConnectionCheck(
    "reachable",
    False,
    "the fleet file names no telemetry cluster",
    "set telemetry.bootstrap to the cluster that receives the records",
)


@dataclass(frozen=True, slots=True)
class ClusterChecks:
    """The checks of one cluster; ``cluster`` is its id, or ``telemetry``."""

    cluster: str
    bootstrap: str | None
    checks: tuple[ConnectionCheck, ...]


@dataclass(frozen=True, slots=True)
class _CheckedCluster:
    cluster: str
    target: InspectionTarget
    required: RequiredOperations
    retired: frozenset[int] = frozenset()


def check_connections(
    fleet: Fleet, report_progress: Callable[[int], None], now: datetime
) -> tuple[ClusterChecks, ...]:
    """Return the checks of each cluster in the fleet file's order, the telemetry cluster's last.

    ``report_progress`` is called with the number of clusters checked so far.
    """
    checked = [_describe_probed(cluster) for cluster in fleet.clusters]
    if fleet.telemetry:
        checked.append(_describe_telemetry(fleet.telemetry))
    inspections = inspect_clusters([cluster.target for cluster in checked], report_progress)
    results = [
        ClusterChecks(
            cluster.cluster,
            cluster.target.access.bootstrap,
            evaluate_inspection(inspection, cluster.required, now, cluster.retired),
        )
        for cluster, inspection in zip(checked, inspections, strict=True)
    ]
    if not fleet.telemetry:
        results.append(ClusterChecks("telemetry", None, (_NO_TELEMETRY,)))
    return tuple(results)


def _describe_probed(cluster: Cluster) -> _CheckedCluster:
    retired = frozenset(cluster.retired)
    target = InspectionTarget(cluster.access, lambda registry: specify_probe_topic(registry, retired))
    return _CheckedCluster(cluster.id, target, PROBING, retired)


def _describe_telemetry(telemetry: Telemetry) -> _CheckedCluster:
    target = InspectionTarget(telemetry.access, lambda registry: specify_record_topics(registry, telemetry))
    return _CheckedCluster("telemetry", target, TELEMETRY)


def evaluate_inspection(
    inspection: ClusterInspection,
    required: RequiredOperations,
    now: datetime,
    retired: Set[int] = frozenset(),
) -> tuple[ConnectionCheck, ...]:
    """Return every check of an inspected cluster.

    There is a single check if the credentials cannot be read or no bootstrap address responds.
    """
    if inspection.credentials_error:
        remedy = "correct `security`, or provide the files and variables that it names"
        return (ConnectionCheck("security", False, inspection.credentials_error, remedy),)
    bootstrap = check_bootstrap(inspection.bootstrap_endpoints)
    results = inspection.bootstrap_endpoints.values()
    if all(isinstance(result, ConnectionFailure) for result in results):
        return (bootstrap,)
    certificates = check_certificates(inspection.brokers, now)
    return (
        bootstrap,
        *((certificates,) if certificates else ()),
        check_brokers(inspection.brokers, inspection.registry, retired),
        check_version(inspection.brokers),
        check_permissions(required, inspection.authorization, inspection.topics),
        check_clock(inspection.clock_offset),
        check_topics(inspection.topics),
    )


def specify_probe_topic(registry: BrokerRegistry, retired: Set[int]) -> Sequence[TopicSpec]:
    """Return the probe topic as the agent would create it now; empty if no broker is registered."""
    homes = [
        HomeBroker(broker_id, broker.rack)
        for broker_id, broker in registry.brokers.items()
        if broker_id not in retired
    ]
    return [
        TopicSpec(TOPIC, action.settings, assignment=action.replicas)
        for action in plan_probe_topic(homes, frozenset(), None)
        if isinstance(action, TopicCreation)
    ]


def specify_record_topics(registry: BrokerRegistry, telemetry: Telemetry) -> Sequence[TopicSpec]:
    """Return the telemetry topics as the first process to start would create them now."""
    return build_telemetry_topic_specs(telemetry, len(registry.brokers))
