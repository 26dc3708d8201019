"""The configuration of one broker."""

import json
from collections.abc import Mapping
from pathlib import Path

from fleetgauge_local.layout import HOST, BrokerPlace, ClusterSpec, Layout

# Memory: the log cleaner alone would take half of the heap, and 50 partitions of each
# internal topic say nothing more than 4 do.
_SMALL = {
    "num.network.threads": "2",
    "num.io.threads": "4",
    "background.threads": "2",
    "num.recovery.threads.per.data.dir": "1",
    "log.cleaner.dedupe.buffer.size": str(4 << 20),
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.num.partitions": "4",
}

_BEHAVIOUR = {
    "broker.session.timeout.ms": "6000",
    "auto.create.topics.enable": "false",
    "auto.leader.rebalance.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
}


def server_properties(layout: Layout, cluster: ClusterSpec, place: BrokerPlace, data: Path) -> dict[str, str]:
    """All of server.properties."""
    return {
        "node.id": str(place.broker),
        "broker.rack": place.rack,
        "log.dirs": str(data),
        **_listeners(layout, cluster, place),
        **_replication(cluster.replicas),
        **_BEHAVIOUR,
        **_SMALL,
    }


def _listeners(layout: Layout, cluster: ClusterSpec, place: BrokerPlace) -> dict[str, str]:
    """Clients go through the proxy; brokers and controllers talk past it, so that a proxy's fault is
    the clients' alone.
    """
    controls = place.broker in cluster.controller_ids
    listening = {"CLIENT": place.client_port, "INTERNAL": place.internal_port}
    advertised = {"CLIENT": place.proxy_port, "INTERNAL": place.internal_port}
    voters = [peer for peer in layout.of(cluster.id) if peer.broker in cluster.controller_ids]
    return {
        "process.roles": "broker,controller" if controls else "broker",
        "listeners": _urls(listening | ({"CONTROLLER": place.controller_port} if controls else {})),
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
    """Java's format: one ``key=value`` a line, in ASCII with the escapes that it shares with JSON."""
    return "".join(f"{key}={json.dumps(value)[1:-1]}\n" for key, value in properties.items())
