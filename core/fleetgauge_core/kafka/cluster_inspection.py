"""A read-only inspection of clusters, as seen from this machine with this client's credentials.

Approach: probe the bootstrap addresses, let one that responds advertise the brokers, probe those, then
query the registry, the authorization, the controller's clock and the topics. Each fact is stored as soon
as it is read, so that the inspection of a cluster that stops responding keeps what was read before.
"""

import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

from kafka import KafkaAdminClient
from kafka.errors import KafkaError
from kafka.net.compat import KafkaNetClient

from fleetgauge_core.fleet import ClusterAccess
from fleetgauge_core.kafka.authentication_check import find_authentication_error
from fleetgauge_core.kafka.broker_registry import BrokerRegistry, parse_broker_registry
from fleetgauge_core.kafka.cluster_admin import TopicSpec
from fleetgauge_core.kafka.cluster_queries import (
    ClockOffset,
    ClusterAuthorization,
    QueryFailure,
    TopicInspection,
    inspect_topics,
    measure_clock_offset,
    query,
    read_cluster_authorization,
)
from fleetgauge_core.kafka.connection_failure import ConnectionFailure
from fleetgauge_core.kafka.credentials import create_tls_context, ensure_credentials_readable
from fleetgauge_core.kafka.endpoint_probe import (
    EndpointProbeResult,
    ProbeTimeouts,
    parse_bootstrap,
    probe_endpoints,
)
from fleetgauge_core.kafka.errors import KafkaUnavailableError
from fleetgauge_core.kafka.kafka_python_admin import connected_admin_client
from fleetgauge_core.runtime.deadline import run_until_deadline

INSPECTION_TIMEOUT_S = 15.0
_CONCURRENT_CLUSTERS = 16
#: Longer than for a probe that precedes a request: the result may tell someone to restart the broker, and the
#: first handshake of a busy broker that is well takes more than a second.
_PROBE_TIMEOUTS = ProbeTimeouts(total_s=6.5, step_s=3.0)
_REQUEST_TIMEOUT_MS = 2000
_BOOTSTRAP_TIMEOUT_MS = 3000
_NOT_YET_READ = QueryFailure(f"no answer within {INSPECTION_TIMEOUT_S:g} s")

#: The fields of a ClusterInspection that have been read so far.
_Facts = dict[str, Any]


@dataclass(frozen=True, slots=True)
class AdvertisedBroker:
    """A broker at its advertised address, and the result of a probe of that address."""

    address: str
    rack: str | None
    probe_result: EndpointProbeResult


@dataclass(frozen=True, slots=True)
class ClusterInspection:
    """All facts of one inspection; a fact that could not be read is a QueryFailure.

    ``brokers`` are the live brokers by ID. ``credentials_error`` is set, and nothing else was requested, if a
    secret or a certificate file cannot be read.
    """

    bootstrap_endpoints: Mapping[str, EndpointProbeResult]
    credentials_error: str | None = None
    brokers: Mapping[int, AdvertisedBroker] | QueryFailure = _NOT_YET_READ
    registry: BrokerRegistry | QueryFailure = _NOT_YET_READ
    authorization: ClusterAuthorization | QueryFailure = _NOT_YET_READ
    clock_offset: ClockOffset | QueryFailure = _NOT_YET_READ
    topics: tuple[TopicInspection, ...] | QueryFailure = _NOT_YET_READ


@dataclass(frozen=True, slots=True)
class InspectionTarget:
    """A cluster to inspect, and a function from its registry to the topics that Fleetgauge would create."""

    access: ClusterAccess
    topics: Callable[[BrokerRegistry], Sequence[TopicSpec]]


def inspect_clusters(
    targets: Sequence[InspectionTarget], report_progress: Callable[[int], None]
) -> tuple[ClusterInspection, ...]:
    """Inspect clusters in batches of 16, each batch for at most 15 s; return inspections in the same order.

    ``report_progress`` is called with the number of clusters inspected, after each batch.
    """
    inspections: list[ClusterInspection] = []
    for start in range(0, len(targets), _CONCURRENT_CLUSTERS):
        batch = [(target, _initial_facts(target)) for target in targets[start : start + _CONCURRENT_CLUSTERS]]
        run_until_deadline(
            [partial(_inspect, target, facts) for target, facts in batch], INSPECTION_TIMEOUT_S
        )
        inspections += [ClusterInspection(**dict(facts)) for _, facts in batch]
        report_progress(len(inspections))
    return tuple(inspections)


def _initial_facts(target: InspectionTarget) -> _Facts:
    addresses = parse_bootstrap(target.access.bootstrap)
    return {"bootstrap_endpoints": dict.fromkeys(addresses, ConnectionFailure.CONNECTION_TIMED_OUT)}


def _inspect(target: InspectionTarget, facts: _Facts) -> None:
    try:
        ensure_credentials_readable(target.access)
        tls = create_tls_context(target.access)
    except KafkaUnavailableError as error:
        facts["credentials_error"] = str(error)
        return
    endpoints = probe_endpoints(parse_bootstrap(target.access.bootstrap), tls, _PROBE_TIMEOUTS)
    facts["bootstrap_endpoints"] = endpoints
    reachable = [
        address for address, result in endpoints.items() if not isinstance(result, ConnectionFailure)
    ]
    if not reachable:
        return
    access = replace(target.access, bootstrap=",".join(reachable))
    try:
        with connected_admin_client(
            access, "fleetgauge-look", _REQUEST_TIMEOUT_MS, _BOOTSTRAP_TIMEOUT_MS
        ) as (admin, network):
            brokers = facts["brokers"] = _probe_advertised_brokers(network, tls, endpoints)
            if all(isinstance(broker.probe_result, ConnectionFailure) for broker in brokers.values()):
                _mark_unread(facts, "no broker answers where it is advertised")
            else:
                _query_cluster(admin, target, facts)
    except (KafkaError, OSError) as error:
        _mark_unread(facts, find_authentication_error(access) or str(error))


def _query_cluster(admin: KafkaAdminClient, target: InspectionTarget, facts: _Facts) -> None:
    """Read the remaining facts, if DescribeCluster succeeds.

    DescribeCluster is retried: once a broker answered it, the client is connected to that broker and
    sends it the other requests too.
    """
    described = query(admin.describe_cluster, attempts=3)
    if isinstance(described, QueryFailure):
        _mark_unread(facts, described.reason)
        return
    registry = facts["registry"] = parse_broker_registry(described)
    facts["authorization"] = query(partial(read_cluster_authorization, admin, described))
    facts["clock_offset"] = query(partial(measure_clock_offset, admin))
    facts["topics"] = query(partial(inspect_topics, admin, target.topics(registry)))


def _mark_unread(facts: _Facts, reason: str) -> None:
    """Give all facts that have not been read the reason why."""
    for field in fields(ClusterInspection):
        if field.default is _NOT_YET_READ:
            facts.setdefault(field.name, QueryFailure(reason))


def _probe_advertised_brokers(
    network: KafkaNetClient, tls: ssl.SSLContext | None, probed: Mapping[str, EndpointProbeResult]
) -> dict[int, AdvertisedBroker]:
    """Return the brokers; one that is advertised at a bootstrap address has been probed already."""
    nodes = {node.node_id: node for node in network.cluster.brokers()}
    addresses = {node_id: _address(node.host, node.port) for node_id, node in nodes.items()}
    results = {**probed, **probe_endpoints(set(addresses.values()) - probed.keys(), tls, _PROBE_TIMEOUTS)}
    return {
        node_id: AdvertisedBroker(address, nodes[node_id].rack, results[address])
        for node_id, address in addresses.items()
    }


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
