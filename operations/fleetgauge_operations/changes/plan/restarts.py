"""Restarts of brokers, which no API of Kafka reports.

A restart shows by two signs that come together. The process that ended has closed the connection that was
held to it; a connection alone also ends for reasons of the network or a load balancer. And the cluster has
noticed: the controller has fenced the broker; it has left the in-sync replicas of a partition; another broker
leads in its place, although nobody balanced leaders; or it leads a partition, as before, with a higher epoch.
A broker whose network to the controllers is cut shows such a sign too, but keeps its connections.

A broker that is told to stop is fenced by the controller just before it closes its connections. One that
crashes is fenced when its session has timed out, some seconds after they have ended.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from fleetgauge_core.metadata import (
    ConnectionEvent,
    ConnectionEventKind,
    ObservedPartition,
    TopicPartition,
)
from fleetgauge_core.tables import ChangeKind
from fleetgauge_operations.changes.plan.known_parts import KnownParts, Reading
from fleetgauge_operations.changes.plan.leadership_moves import is_balance
from fleetgauge_operations.changes.plan.observed_change import ObservedChange

#: How long after a broker's return the second sign may be missing: it shows at the next look.
CONFIRM_WITHIN = timedelta(seconds=60)
#: No broker starts faster: a connection that is open again by then was closed by somebody else.
_SHORTEST_RESTART = timedelta(seconds=1)
#: The asked broker has heard of a fencing by the controller after this long,
_HEARD_WITHIN = timedelta(seconds=1)
#: and no session times out within this; ``broker.session.timeout.ms`` is 9 s by default.
_SHORTEST_SESSION = timedelta(seconds=3.5)
#: A replaced broker has less than this share of what it held before.
_EMPTY_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class BrokerHoldings:
    """What a broker holds: its replicas, by topic ID as well, its log directories, and their size.

    ``partitions`` are None if they are not known.
    """

    partitions: Mapping[tuple[TopicPartition, str], ObservedPartition] | None
    directory_id: str | None
    log_dirs: tuple[str, ...]
    has_offline_dir: bool
    size: Reading[int] | None


@dataclass(frozen=True, slots=True)
class Outage:
    """A broker whose connection ended; ``signs`` are those of a restart beside that.

    ``before`` is what it held at the last look before. ``opened_at`` is when a connection was opened again,
    and ``back_at`` when the broker was first seen unfenced after that.
    """

    ended_at: datetime
    before: BrokerHoldings
    signs: frozenset[str] = frozenset()
    opened_at: datetime | None = None
    back_at: datetime | None = None
    is_orderly: bool | None = None
    """Whether the broker was told to stop; None if it is not known, or not yet."""
    is_order_looked_up: bool = False

    def is_dismissed_at(self, now: datetime) -> bool:
        """Return whether only the connection has ended: there is no other sign a while after the return."""
        return not self.signs and self.back_at is not None and now - self.back_at > CONFIRM_WITHIN


@dataclass(frozen=True, slots=True)
class Connections:
    """The brokers that may be restarting, and each broker's last version of Kafka.

    A version has the time at which it was seen last: when its connection was opened, or when it ended.
    """

    outages: Mapping[int, Outage] = field(default_factory=dict)
    versions: Mapping[int, tuple[datetime, tuple[int, ...]]] = field(default_factory=dict)

    def expects_change_at(self, now: datetime) -> bool:
        """Return whether a broker is down or has just come back, so that the next look should be soon."""
        return any(
            (outage.opened_at or outage.ended_at) + CONFIRM_WITHIN > now for outage in self.outages.values()
        )


def follow_connections(
    connections: Connections, events: Collection[ConnectionEvent], before: KnownParts, after: KnownParts
) -> tuple[Connections, tuple[ObservedChange, ...]]:
    """Return what is known by now, and the restarts, replacements and upgrades that it shows.

    ``events`` are those since the look ``before``; ``after`` is the present one.
    """
    outages, versions = dict(connections.outages), dict(connections.versions)
    changes: list[ObservedChange] = []
    for event in events:
        if event.kind is ConnectionEventKind.ENDED:
            changes += _begin_outage(outages, event, before, after)
            if event.broker_id in versions:
                versions[event.broker_id] = event.at, versions[event.broker_id][1]
        elif event.version is not None:
            _note_return(outages, event)
            changes += _compare_versions(versions.get(event.broker_id), event)
            versions[event.broker_id] = event.at, event.version
    for broker_id, outage in tuple(outages.items()):
        if after.brokers and outage.is_dismissed_at(after.brokers.at):
            del outages[broker_id]
            continue
        outages[broker_id] = updated = _update(broker_id, outage, after)
        # A whole look at what the broker holds now tells whether it was replaced.
        if updated.back_at and updated.signs and after.has_looked_since(updated.back_at):
            changes += _describe_restart(broker_id, updated, after)
            del outages[broker_id]
    registered = after.brokers.value if after.brokers else {}
    return (
        Connections(
            {broker_id: outage for broker_id, outage in outages.items() if broker_id in registered},
            {broker_id: version for broker_id, version in versions.items() if broker_id in registered},
        ),
        tuple(changes),
    )


def _begin_outage(
    outages: dict[int, Outage], event: ConnectionEvent, before: KnownParts, after: KnownParts
) -> list[ObservedChange]:
    """Note that a connection has ended; return the restart that was going on before, if it was one."""
    broker_id, earlier = event.broker_id, outages.get(event.broker_id)
    was_fenced = _is_fenced(before, broker_id)
    outages[broker_id] = Outage(
        event.at,
        find_holdings(broker_id, before),
        frozenset({"fenced"} if was_fenced else ()),
        # It may have hung for a while before somebody ended it.
        is_order_looked_up=was_fenced,
    )
    if earlier and earlier.opened_at and earlier.signs:
        return _describe_restart(broker_id, earlier, after)
    return []


def _note_return(outages: dict[int, Outage], event: ConnectionEvent) -> None:
    outage = outages.get(event.broker_id)
    if outage is None:
        return
    if event.at - outage.ended_at < _SHORTEST_RESTART:
        del outages[event.broker_id]
    else:
        outages[event.broker_id] = replace(outage, opened_at=event.at)


def find_holdings(broker_id: int, parts: KnownParts) -> BrokerHoldings:
    """Return what a broker is known to hold."""
    directories = parts.log_dirs[broker_id].value if broker_id in parts.log_dirs else {}
    return BrokerHoldings(
        {
            (TopicPartition(name, number), topic.topic_id): partition
            for name, topic in parts.topics.value.items()
            for number, partition in topic.partitions.items()
            if broker_id in partition.replicas
        }
        if parts.topics
        else None,
        parts.quorum.value.directory_ids.get(broker_id) if parts.quorum else None,
        tuple(sorted(directories)),
        any(directory.is_offline for directory in directories.values()),
        parts.stored_bytes.get(broker_id),
    )


def _is_fenced(parts: KnownParts, broker_id: int) -> bool:
    broker = parts.brokers.value.get(broker_id) if parts.brokers else None
    return broker is not None and broker.is_fenced


def _update(broker_id: int, outage: Outage, after: KnownParts) -> Outage:
    """Return the outage with the signs that are seen by now, and with the broker's return."""
    outage = replace(outage, signs=outage.signs | _find_signs(broker_id, outage, after))
    outage = _look_up_order(broker_id, outage, after)
    if outage.back_at or not outage.opened_at or not after.brokers or _is_fenced(after, broker_id):
        return outage
    read_at = after.brokers.began_at
    return replace(outage, back_at=read_at) if read_at >= outage.opened_at else outage


def _look_up_order(broker_id: int, outage: Outage, after: KnownParts) -> Outage:
    """Return the outage with what the first reading of the registrations after its begin tells of it."""
    if outage.is_order_looked_up or not after.brokers or after.brokers.began_at < outage.ended_at:
        return outage
    if _is_fenced(after, broker_id):
        is_orderly = True if after.brokers.at - outage.ended_at < _SHORTEST_SESSION else None
        return replace(outage, is_orderly=is_orderly, is_order_looked_up=True)
    if after.brokers.began_at - outage.ended_at < _HEARD_WITHIN:
        return outage
    return replace(outage, is_orderly=False, is_order_looked_up=True)


def _find_signs(broker_id: int, outage: Outage, after: KnownParts) -> set[str]:
    signs: set[str] = set()
    if after.brokers and after.brokers.at >= outage.ended_at and _is_fenced(after, broker_id):
        signs.add("fenced")
    if outage.before.partitions and after.topics and after.topics.at >= outage.ended_at:
        for (partition, topic_id), earlier in outage.before.partitions.items():
            topic = after.topics.value.get(partition.topic)
            if topic is None or topic.topic_id != topic_id:
                continue
            later = topic.partitions.get(partition.partition)
            if later is not None and later != earlier:
                signs |= _compare_partition(broker_id, earlier, later)
    return signs


def _compare_partition(broker_id: int, before: ObservedPartition, after: ObservedPartition) -> set[str]:
    signs: set[str] = set()
    if broker_id in after.replicas and broker_id in before.in_sync and broker_id not in after.in_sync:
        signs.add("left_in_sync_replicas")
    if before.leader == broker_id:
        if after.leader == broker_id and after.leader_epoch > before.leader_epoch:
            signs.add("leader_epoch")
        elif after.leader != broker_id and broker_id in after.replicas and not is_balance(before, after):
            signs.add("leadership_failed_over")
    return signs


def _describe_restart(broker_id: int, outage: Outage, after: KnownParts) -> list[ObservedChange]:
    opened_at = outage.opened_at or outage.ended_at
    restart = ObservedChange(
        ChangeKind.BROKER_RESTARTED,
        outage.ended_at,
        opened_at,
        broker_id,
        before={"process": "ended"},
        after={"process": "started"},
        evidence={
            "signs": sorted({"connection_ended", *outage.signs}),
            "down_s": round((opened_at - outage.ended_at).total_seconds(), 1),
            "orderly": outage.is_orderly,
        },
    )
    replacement = _find_replacement(outage.before, find_holdings(broker_id, after))
    if replacement is None:
        return [restart]
    before, current = replacement
    return [restart, replace(restart, kind=ChangeKind.BROKER_REPLACED, before=before, after=current)]


def _find_replacement(
    before: BrokerHoldings, after: BrokerHoldings
) -> tuple[dict[str, object], dict[str, object]] | None:
    """Return how the directories differ from those before, if they are others or empty."""
    if before.directory_id and after.directory_id and before.directory_id != after.directory_id:
        return {"directory_id": before.directory_id}, {"directory_id": after.directory_id}
    if before.log_dirs and after.log_dirs and not set(before.log_dirs) & set(after.log_dirs):
        return {"log_dirs": list(before.log_dirs)}, {"log_dirs": list(after.log_dirs)}
    sizes = before.size, after.size
    # A broker may also hold less because its replicas were moved or deleted, or a directory has failed.
    is_comparable = (
        before.partitions is not None
        and after.partitions is not None
        and before.partitions.keys() == after.partitions.keys()
        and not after.has_offline_dir
    )
    if is_comparable and sizes[0] and sizes[1] and sizes[0].at < sizes[1].at:
        bytes_before, bytes_after = sizes[0].value, sizes[1].value
        if bytes_after < _EMPTY_SHARE * bytes_before:
            return {"stored_bytes": bytes_before}, {"stored_bytes": bytes_after}
    return None


def _compare_versions(
    earlier: tuple[datetime, tuple[int, ...]] | None, event: ConnectionEvent
) -> list[ObservedChange]:
    if earlier is None or event.version is None or earlier[1] == event.version:
        return []
    return [
        ObservedChange(
            ChangeKind.BROKER_VERSION,
            earlier[0],
            event.at,
            event.broker_id,
            before={"version": format_version(earlier[1])},
            after={"version": format_version(event.version)},
        )
    ]


def format_version(version: tuple[int, ...]) -> str:
    """Return a version as text; it is the release whose requests a broker supports, without a patch level."""
    return ".".join(map(str, version))
