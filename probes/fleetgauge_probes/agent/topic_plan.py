"""The probe topic: one partition per broker, that broker first in its replicas.

Motivation: a partition led by one broker is the only thing in Kafka that can
be slow or fail because of that broker alone.

Approach: compare what is with what should be and return the changes, in the
order in which they are to be made. Nothing here talks to a cluster.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

TOPIC = "fleetgauge.probe"

_REPLICAS = 3
_SETTINGS = {"retention.ms": "3600000", "segment.ms": "600000", "cleanup.policy": "delete"}


@dataclass(frozen=True, slots=True)
class Home:
    """A broker that should lead a probe partition."""

    broker_id: int
    rack: str | None


@dataclass(frozen=True, slots=True)
class Partition:
    """What the reconciler needs to know of one partition."""

    leader: int | None
    replicas: tuple[int, ...]
    in_sync: frozenset[int]


@dataclass(frozen=True, slots=True)
class Create:
    """Make the topic; replicas[p] are partition p's."""

    replicas: tuple[tuple[int, ...], ...]
    min_in_sync: int

    @property
    def settings(self) -> dict[str, str]:
        """The topic's, as Kafka names them."""
        return _SETTINGS | {"min.insync.replicas": str(self.min_in_sync)}


@dataclass(frozen=True, slots=True)
class Widen:
    """Add partitions up to ``total``."""

    total: int
    replicas: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Elect:
    """Let these partitions' homes lead again."""

    partitions: tuple[int, ...]


Change = Create | Widen | Elect


def plan(
    homes: Sequence[Home], live: frozenset[int], topic: Mapping[int, Partition] | None
) -> tuple[Change, ...]:
    """What to change now. ``homes`` are the registered brokers, ``live`` those that answer.

    A registered broker gets its partition even while it is down: whoever is in
    sync leads it until then. New partitions have as many replicas as the old ones,
    for a topic cannot mix them.
    """
    brokers = sorted(homes, key=lambda home: home.broker_id)
    if topic is None:
        if not brokers:
            return ()
        replicas = tuple(_replicas(home, brokers, min(_REPLICAS, len(brokers))) for home in brokers)
        return (Create(replicas, max(1, len(replicas[0]) - 1)),)
    housed = set(home_partitions(topic))
    missing = [home for home in brokers if home.broker_id not in housed]
    changes: list[Change] = []
    if missing:
        wanted = max((len(partition.replicas) for partition in topic.values()), default=_REPLICAS)
        added = tuple(_replicas(home, brokers, min(wanted, len(brokers))) for home in missing)
        changes.append(Widen(len(topic) + len(added), added))
    astray = tuple(sorted(number for number, one in topic.items() if _home_may_lead(one, live)))
    if astray:
        changes.append(Elect(astray))
    return tuple(changes)


def home_partitions(topic: Mapping[int, Partition]) -> dict[int, int]:
    """Broker id to the lowest partition whose first replica it is."""
    homes: dict[int, int] = {}
    for number in sorted(topic):
        if topic[number].replicas:
            homes.setdefault(topic[number].replicas[0], number)
    return homes


def _home_may_lead(partition: Partition, live: frozenset[int]) -> bool:
    home = partition.replicas[0] if partition.replicas else None
    return home is not None and home != partition.leader and home in partition.in_sync and home in live


def _replicas(home: Home, brokers: Sequence[Home], wanted: int) -> tuple[int, ...]:
    """The home, then the next brokers around the ring, those in unused racks first."""
    at = next(i for i, broker in enumerate(brokers) if broker.broker_id == home.broker_id)
    ring = [*brokers[at + 1 :], *brokers[:at]]
    chosen, racks = [home.broker_id], {home.rack}
    for fresh_rack in (True, False):
        for broker in ring:
            if (
                len(chosen) < wanted
                and broker.broker_id not in chosen
                and (not fresh_rack or broker.rack not in racks)
            ):
                chosen.append(broker.broker_id)
                racks.add(broker.rack)
    return tuple(chosen)
