"""Build the server.properties of a broker."""

import json
from collections.abc import Mapping
from pathlib import Path

from fleetgauge_local.layout import HOST, BrokerPlacement, ClusterSpec, FleetLayout

# Saves memory: the log cleaner's default buffer would take half of the heap. Internal topics have
# 4 partitions instead of the default 50.
_RESOURCE_LIMITS = {
    "num.network.threads": "2",
    "num.io.threads": "4",
    "background.threads": "2",
    "num.recovery.threads.per.data.dir": "1",
    "log.cleaner.dedupe.buffer.size": str(4 << 20),
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.num.partitions": "4",
}

_BEHAVIOR = {
    "broker.session.timeout.ms": "6000",
    "auto.create.topics.enable": "false",
    "auto.leader.rebalance.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
}


def build_server_properties(
    layout: FleetLayout, cluster: ClusterSpec, placement: BrokerPlacement, data: Path
) -> dict[str, str]:
    """Return all properties of one broker; ``data`` is its log directory."""
    return {
        "node.id": str(placement.broker),
        "broker.rack": placement.rack,
        "log.dirs": str(data),
        **_listeners(layout, cluster, placement),
        **_replication(cluster.replicas),
        **_BEHAVIOR,
        **_RESOURCE_LIMITS,
    }


def _listeners(layout: FleetLayout, cluster: ClusterSpec, placement: BrokerPlacement) -> dict[str, str]:
    """Return the listeners. Clients connect through the proxy; brokers and controllers bypass it, so that
    faults of the proxy affect clients only.
    """
    is_controller = placement.broker in cluster.controller_ids
    listeners = {"CLIENT": placement.client_port, "INTERNAL": placement.internal_port}
    advertised = {"CLIENT": placement.proxy_port, "INTERNAL": placement.internal_port}
    voters = [peer for peer in layout.list_placements(cluster.id) if peer.broker in cluster.controller_ids]
    return {
        "process.roles": "broker,controller" if is_controller else "broker",
        "listeners": _urls(listeners | ({"CONTROLLER": placement.controller_port} if is_controller else {})),
        "advertised.listeners": _urls(advertised),
        "inter.broker.listener.name": "INTERNAL",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CLIENT:PLAINTEXT,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "controller.quorum.voters": ",".join(
            f"{peer.broker}@{HOST}:{peer.controller_port}" for peer in voters
        ),
    }


def _urls(ports: Mapping[str, int]) -> str:
    return ",".join(f"{name}://{HOST}:{port}" for name, port in ports.items())


def _replication(replicas: int) -> dict[str, str]:
    in_sync = str(max(1, replicas - 1))
    return {
        "default.replication.factor": str(replicas),
        "offsets.topic.replication.factor": str(replicas),
        "transaction.state.log.replication.factor": str(replicas),
        "transaction.state.log.min.isr": in_sync,
        "share.coordinator.state.topic.replication.factor": str(replicas),
        "share.coordinator.state.topic.min.isr": in_sync,
    }


def render(properties: Mapping[str, str]) -> str:
    """Return the text of a Java properties file: ASCII, with the escapes that the format shares with JSON."""
    return "".join(f"{key}={json.dumps(value)[1:-1]}\n" for key, value in properties.items())
