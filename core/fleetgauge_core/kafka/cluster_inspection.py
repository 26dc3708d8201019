"""A look at a cluster as this machine and this client see it. Nothing in it is changed.

Approach: knock at the bootstrap addresses, let one that answers name the brokers, knock at
those, then ask whatever else there is to know. Each fact is noted as it comes, so that a
cluster which falls silent in the middle still shows what it said before.
"""

import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

from kafka import KafkaAdminClient
from kafka.errors import KafkaError
from kafka.net.compat import KafkaNetClient

from fleetgauge_core.fleet import Access
from fleetgauge_core.kafka.admin import TopicSpec
from fleetgauge_core.kafka.authentication import identity_refusal
from fleetgauge_core.kafka.broker_registry import Registry, registry
from fleetgauge_core.kafka.cluster_queries import (
    Clock,
    Rights,
    TopicSight,
    Unknown,
    clock,
    rights,
    told,
    topics,
)
from fleetgauge_core.kafka.connection_failure import Silence
from fleetgauge_core.kafka.credentials import ensure_usable, tls_context
from fleetgauge_core.kafka.endpoint_probe import Knock, addresses, knock_at
from fleetgauge_core.kafka.errors import KafkaUnavailableError
from fleetgauge_core.kafka.kafka_python_admin import asking
from fleetgauge_core.runtime.deadline import in_time

LOOK_S = 10.0
_AT_ONCE = 16
_REQUEST_MS = 2000
_BOOTSTRAP_MS = 3000
_LATE = Unknown(f"no answer within {LOOK_S:g} s")

Notes = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Sight:
    """A broker as the cluster advertises it, and what a knock there brought."""

    address: str
    rack: str | None
    knock: Knock


@dataclass(frozen=True, slots=True)
class Look:
    """All that one look showed. ``doors`` are the bootstrap addresses; brokers are those that serve now.

    ``unusable`` says why it was not tried: a secret or a certificate that cannot be read.
    """

    doors: Mapping[str, Knock]
    unusable: str | None = None
    brokers: Mapping[int, Sight] | Unknown = _LATE
    registry: Registry | Unknown = _LATE
    rights: Rights | Unknown = _LATE
    clock: Clock | Unknown = _LATE
    topics: tuple[TopicSight, ...] | Unknown = _LATE


@dataclass(frozen=True, slots=True)
class Target:
    """A cluster to look at, and the topics that Fleetgauge would make in it."""

    access: Access
    topics: Callable[[Registry], Sequence[TopicSpec]]


def look_at(targets: Sequence[Target], looked: Callable[[int], None]) -> tuple[Look, ...]:
    """Look at each, 16 at a time, each group within 10 s. ``looked`` is told how many are done."""
    looks: list[Look] = []
    for first in range(0, len(targets), _AT_ONCE):
        group = [(target, _untried(target)) for target in targets[first : first + _AT_ONCE]]
        in_time([partial(_look, target, notes) for target, notes in group], LOOK_S)
        looks += [Look(**dict(notes)) for _, notes in group]
        looked(len(looks))
    return tuple(looks)


def _untried(target: Target) -> Notes:
    return {"doors": dict.fromkeys(addresses(target.access.bootstrap), Silence.TIMED_OUT)}


def _look(target: Target, notes: Notes) -> None:
    try:
        ensure_usable(target.access)
        tls = tls_context(target.access)
    except KafkaUnavailableError as error:
        notes["unusable"] = str(error)
        return
    doors = notes["doors"] = knock_at(addresses(target.access.bootstrap), tls)
    opened = [address for address, knock in doors.items() if not isinstance(knock, Silence)]
    if not opened:
        return
    access = replace(target.access, bootstrap=",".join(opened))
    try:
        with asking(access, "fleetgauge-look", _REQUEST_MS, _BOOTSTRAP_MS) as (admin, network):
            brokers = notes["brokers"] = _sights(network, tls)
            if all(isinstance(broker.knock, Silence) for broker in brokers.values()):
                _give_up(notes, "no broker answers where it is advertised")
            else:
                _inquire(admin, target, notes)
    except (KafkaError, OSError) as error:
        _give_up(notes, identity_refusal(access) or str(error))


def _inquire(admin: KafkaAdminClient, target: Target, notes: Notes) -> None:
    """The first answer is asked for again: what answers it is connected, and answers the rest as well."""
    described = told(admin.describe_cluster, tries=3)
    if isinstance(described, Unknown):
        _give_up(notes, described.reason)
        return
    found = notes["registry"] = registry(described)
    notes["rights"] = told(partial(rights, admin, described))
    notes["clock"] = told(partial(clock, admin))
    notes["topics"] = told(partial(topics, admin, target.topics(found)))


def _give_up(notes: Notes, reason: str) -> None:
    """What is not known by now will not be."""
    for fact in fields(Look):
        if fact.default is _LATE:
            notes.setdefault(fact.name, Unknown(reason))


def _sights(network: KafkaNetClient, tls: ssl.SSLContext | None) -> dict[int, Sight]:
    known = {one.node_id: (_address(one.host, one.port), one.rack) for one in network.cluster.brokers()}
    knocks = knock_at({address for address, _ in known.values()}, tls)
    return {broker: Sight(address, rack, knocks[address]) for broker, (address, rack) in known.items()}


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
