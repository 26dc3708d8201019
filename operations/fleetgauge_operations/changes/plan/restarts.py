"""Restarts of brokers, which no API of Kafka reports.

A restart shows by two signs that come together. The process that ended has closed the connection that was
held to it; a connection alone also ends for reasons of the network or a load balancer. And the controller has
fenced the broker, or its followers and leaders have noticed: it has left the in-sync replicas of a partition,
or leads a partition, as before, with a higher epoch. A broker whose network is cut from the controller's
shows that sign too, but keeps its connections.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from fleetgauge_core.metadata import ConnectionEvent, ConnectionEventKind, ObservedTopic
from fleetgauge_core.tables import ChangeKind
from fleetgauge_operations.changes.plan.known_parts import KnownParts
from fleetgauge_operations.changes.plan.observed_change import ObservedChange

#: How long after a broker's return the second sign may be missing: it shows at the next look.
CONFIRM_WITHIN = timedelta(seconds=60)
#: A replaced broker has less than this share of what it held before.
_EMPTY_SHARE = 0.1
_FENCED, _LEFT_SYNC, _EPOCH = "fenced", "left_in_sync_replicas", "leader_epoch"


@dataclass(frozen=True, slots=True)
class Outage:
    """A broker whose connection ended; ``signs`` are those of a restart beside that.

    ``before`` is what was known of the cluster when the connection ended, to compare with.
    """

    ended_at: datetime
    before: KnownParts
    signs: frozenset[str] = frozenset()
    opened_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Connections:
    """The brokers that may be restarting, and each broker's last version of Kafka, with its time."""

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
        broker_id = event.broker_id
        if event.kind is ConnectionEventKind.ENDED:
            earlier = outages.get(broker_id)
            if earlier and earlier.opened_at and earlier.signs:
                changes += _describe_restart(broker_id, earlier, after)
            signs = frozenset({_FENCED} if _is_fenced(before, broker_id) else ())
            outages[broker_id] = Outage(event.at, before, signs)
        elif event.version is not None:
            if broker_id in outages:
                outages[broker_id] = replace(outages[broker_id], opened_at=event.at)
            changes += _compare_versions(broker_id, versions.get(broker_id), event)
            versions[broker_id] = event.at, event.version
    now = after.brokers.at if after.brokers else None
    for broker_id, outage in tuple(outages.items()):
        signs = outage.signs | _find_signs(broker_id, outage, after)
        outages[broker_id] = outage = replace(outage, signs=signs)
        if outage.opened_at is None or now is None or not after.has_looked_since(outage.opened_at):
            continue
        if signs and not _is_fenced(after, broker_id):
            changes += _describe_restart(broker_id, outage, after)
            del outages[broker_id]
        elif not signs and now - outage.opened_at > CONFIRM_WITHIN:
            del outages[broker_id]
    registered = after.brokers.value if after.brokers else {}
    return (
        Connections(
            {broker_id: outage for broker_id, outage in outages.items() if broker_id in registered},
            {broker_id: version for broker_id, version in versions.items() if broker_id in registered},
        ),
        tuple(changes),
    )


def _is_fenced(parts: KnownParts, broker_id: int) -> bool:
    broker = parts.brokers.value.get(broker_id) if parts.brokers else None
    return broker is not None and broker.is_fenced


def _find_signs(broker_id: int, outage: Outage, after: KnownParts) -> set[str]:
    signs: set[str] = set()
    if after.brokers and after.brokers.at >= outage.ended_at and _is_fenced(after, broker_id):
        signs.add(_FENCED)
    if outage.before.topics and after.topics and after.topics.at >= outage.ended_at:
        signs |= _compare_partitions(broker_id, outage.before.topics.value, after.topics.value)
    return signs


def _compare_partitions(
    broker_id: int, before: Mapping[str, ObservedTopic], after: Mapping[str, ObservedTopic]
) -> set[str]:
    signs: set[str] = set()
    for name, topic in after.items():
        earlier = before.get(name)
        if earlier is None or earlier.topic_id != topic.topic_id or earlier.partitions == topic.partitions:
            continue
        for number, partition in topic.partitions.items():
            previous = earlier.partitions.get(number)
            if previous is None or broker_id not in partition.replicas:
                continue
            if broker_id in previous.in_sync and broker_id not in partition.in_sync:
                signs.add(_LEFT_SYNC)
            if (
                previous.leader == partition.leader == broker_id
                and partition.leader_epoch > previous.leader_epoch
            ):
                signs.add(_EPOCH)
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
        },
    )
    replacement = _find_replacement(broker_id, outage.before, after)
    if replacement is None:
        return [restart]
    before, current = replacement
    return [
        restart,
        ObservedChange(
            ChangeKind.BROKER_REPLACED,
            outage.ended_at,
            opened_at,
            broker_id,
            before=before,
            after=current,
        ),
    ]


def _find_replacement(
    broker_id: int, before: KnownParts, after: KnownParts
) -> tuple[dict[str, object], dict[str, object]] | None:
    """Return how the directories differ from those before, if they are others or empty."""
    if before.quorum and after.quorum:
        ids = [parts.value.directory_ids.get(broker_id) for parts in (before.quorum, after.quorum)]
        if None not in ids and ids[0] != ids[1]:
            return {"directory_id": ids[0]}, {"directory_id": ids[1]}
    directories = [
        sorted(parts.log_dirs[broker_id].value) if broker_id in parts.log_dirs else None
        for parts in (before, after)
    ]
    if directories[0] and directories[1] and not set(directories[0]) & set(directories[1]):
        return {"log_dirs": directories[0]}, {"log_dirs": directories[1]}
    sizes = [
        parts.stored_bytes[broker_id].value if broker_id in parts.stored_bytes else None
        for parts in (before, after)
    ]
    if sizes[0] and sizes[1] is not None and sizes[1] < _EMPTY_SHARE * sizes[0]:
        return {"stored_bytes": sizes[0]}, {"stored_bytes": sizes[1]}
    return None


def _compare_versions(
    broker_id: int, earlier: tuple[datetime, tuple[int, ...]] | None, event: ConnectionEvent
) -> list[ObservedChange]:
    if earlier is None or event.version is None or earlier[1] == event.version:
        return []
    return [
        ObservedChange(
            ChangeKind.BROKER_VERSION,
            earlier[0],
            event.at,
            broker_id,
            before={"version": format_version(earlier[1])},
            after={"version": format_version(event.version)},
        )
    ]


def format_version(version: tuple[int, ...]) -> str:
    """Return a version as text; it is the release whose requests a broker supports, without a patch level."""
    return ".".join(map(str, version))
