"""The probe topic: one partition per broker, that broker first in its replicas.

Motivation: a partition led by one broker is the only thing in Kafka that can
be slow or fail because of that broker alone.

Approach: compare what is with what should be and return the changes, in the
order in which they are to be made. A partition whose home is gone, or is somebody
else's second one, is given to a broker that has none before any is added; whoever
is a replica already stays one. A demoted broker keeps its partition and is not made
to lead it. Nothing here talks to a cluster.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from enum import Enum

TOPIC = "fleetgauge.probe"

_REPLICAS = 3
_SETTINGS = {"retention.ms": "3600000", "segment.ms": "600000", "cleanup.policy": "delete"}
#: Where the cluster places partitions by itself, so many a broker must be enough for each to lead one.
_MOST_PER_BROKER = 8


class Placement(Enum):
    """How much of where new replicas lie the cluster lets us say."""

    BY_HAND = "by hand"
    BY_COUNT = "by count"
    """It places them itself, as many as we ask for."""
    LEFT_TO_CLUSTER = "left to the cluster"
    """It decides how many as well, and on the topic's settings."""


@dataclass(frozen=True, slots=True)
class Latitude:
    """What the cluster lets us do, as far as we know: all, until it refuses something."""

    placement: Placement = Placement.BY_HAND
    moves: bool = True
    """Whether replicas may be moved that exist."""


ALL_LATITUDE = Latitude()


@dataclass(frozen=True, slots=True)
class Home:
    """A broker that should lead a probe partition, unless it is demoted."""

    broker_id: int
    rack: str | None
    demoted: bool = False


@dataclass(frozen=True, slots=True)
class Partition:
    """What the reconciler needs to know of one partition."""

    leader: int | None
    replicas: tuple[int, ...]
    in_sync: frozenset[int]


@dataclass(frozen=True, slots=True)
class Create:
    """Make the topic: replicas[p] are partition p's; without them the cluster places them.

    ``copies`` None leaves their number, and all settings, to the cluster.
    """

    partitions: int
    copies: int | None
    replicas: tuple[tuple[int, ...], ...] = ()

    @property
    def settings(self) -> dict[str, str]:
        """The topic's, as Kafka names them."""
        if self.copies is None:
            return {}
        return _SETTINGS | {"min.insync.replicas": str(_min_in_sync(self.copies))}

    def __str__(self) -> str:
        return f"make {TOPIC} with {self.partitions} partitions{_on(self.replicas)}"


@dataclass(frozen=True, slots=True)
class Widen:
    """Add partitions up to ``total``; without replicas the cluster places them."""

    total: int
    replicas: tuple[tuple[int, ...], ...] = ()

    def __str__(self) -> str:
        return f"add partitions up to {self.total}{_on(self.replicas)}"


@dataclass(frozen=True, slots=True)
class Reassign:
    """Let these be the replicas, by partition."""

    replicas: tuple[tuple[int, tuple[int, ...]], ...]

    def __str__(self) -> str:
        moves = (f"partition {number} to {_listed(brokers)}" for number, brokers in self.replicas)
        return f"move {', '.join(moves)}"


@dataclass(frozen=True, slots=True)
class Require:
    """Let so many replicas have a record before it is acknowledged (min.insync.replicas)."""

    min_in_sync: int

    def __str__(self) -> str:
        return f"set min.insync.replicas to {self.min_in_sync}"


@dataclass(frozen=True, slots=True)
class Elect:
    """Let these partitions' homes lead again."""

    partitions: tuple[int, ...]

    def __str__(self) -> str:
        return f"elect the first replicas of partitions {_listed(self.partitions)}"


Change = Create | Widen | Reassign | Require | Elect


@dataclass(frozen=True, slots=True)
class ProbeTopic:
    """The topic as it is. ``min_in_sync`` is None where it is not known."""

    partitions: Mapping[int, Partition]
    min_in_sync: int | None = None


def plan(
    homes: Sequence[Home],
    live: frozenset[int],
    topic: ProbeTopic | None,
    latitude: Latitude = ALL_LATITUDE,
) -> tuple[Change, ...]:
    """What to change now. ``homes`` are the registered brokers, ``live`` those that answer.

    A registered broker gets its partition even while it is down: whoever is in sync leads it until then.
    """
    brokers = sorted(homes, key=lambda home: home.broker_id)
    if not brokers:
        return ()
    if topic is None:
        return (_creation(brokers, latitude.placement),)
    moves = dict(_moves(brokers, live, topic.partitions)) if latitude.moves else {}
    after = _moved(topic.partitions, moves)
    return (
        *_additions(brokers, after, latitude.placement),
        *((Reassign(tuple(sorted(moves.items()))),) if moves else ()),
        *_requirement(topic, moves),
        *_elections(after, live - _demoted(brokers)),
    )


def narrowed(latitude: Latitude, refused: Change) -> Latitude:
    """What is left once the cluster has refused a change; the same where there is nothing less to ask for."""
    match refused, latitude.placement:
        case Reassign(), _:
            return replace(latitude, moves=False)
        case ((Create() | Widen()), Placement.BY_HAND):
            return replace(latitude, placement=Placement.BY_COUNT)
        case Create(), Placement.BY_COUNT:
            return replace(latitude, placement=Placement.LEFT_TO_CLUSTER)
        case _:
            return latitude


def home_partitions(partitions: Mapping[int, Partition], demoted: Set[int] = frozenset()) -> dict[int, int]:
    """Broker id to the lowest partition whose first replica it is.

    Who is demoted may be first nowhere, and has the lowest that its first replica can do without.
    """
    first = {
        number: partitions[number].replicas[0] for number in sorted(partitions) if partitions[number].replicas
    }
    times_first = Counter(first.values())
    homes: dict[int, int] = {}
    for broker in sorted(demoted - times_first.keys()):
        for number, other in first.items():
            if times_first[other] > 1 and broker in partitions[number].replicas:
                homes[broker] = number
                times_first[other] -= 1
                del first[number]
                break
    for number, broker in first.items():
        homes.setdefault(broker, number)
    return homes


def _creation(brokers: Sequence[Home], placement: Placement) -> Create:
    copies = min(_REPLICAS, len(brokers))
    match placement:
        case Placement.BY_HAND:
            return Create(len(brokers), copies, _new(brokers, brokers, copies))
        case Placement.BY_COUNT:
            return Create(len(brokers), copies)
        case Placement.LEFT_TO_CLUSTER:
            return Create(len(brokers), None)


def _additions(
    brokers: Sequence[Home], partitions: Mapping[int, Partition], placement: Placement
) -> Iterator[Widen]:
    """For brokers without a partition. New ones have as many replicas as the old: a topic cannot mix."""
    housed = home_partitions(partitions, _demoted(brokers))
    missing = [home for home in brokers if home.broker_id not in housed]
    total = len(partitions) + len(missing)
    if missing and placement is Placement.BY_HAND:
        wanted = max((len(one.replicas) for one in partitions.values()), default=_REPLICAS)
        copies = min(wanted, len(brokers))
        yield Widen(total, _new(missing, brokers, copies))
    elif missing and total <= _MOST_PER_BROKER * len(brokers):
        yield Widen(total)


def _new(homes: Sequence[Home], brokers: Sequence[Home], copies: int) -> tuple[tuple[int, ...], ...]:
    rack_of = {home.broker_id: home.rack for home in brokers}
    return tuple(_around(home.broker_id, (), list(rack_of), rack_of, copies) for home in homes)


def _moves(
    brokers: Sequence[Home], live: frozenset[int], partitions: Mapping[int, Partition]
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Partitions whose replicas should be others: without a home, with a broker that is gone, with too few.

    Only onto live brokers: a move onto another would not end.
    """
    rack_of = {home.broker_id: home.rack for home in brokers}
    lives = [home.broker_id for home in brokers if home.broker_id in live]
    demoted = _demoted(brokers)
    housed = {b: number for b, number in home_partitions(partitions, demoted).items() if b in rack_of}
    homes = frozenset(housed.values())
    left_as_they_stand = {number for broker, number in housed.items() if broker in demoted}
    spare = [number for number in sorted(partitions) if number not in homes]
    given = _given(spare, [b for b in lives if b not in housed], partitions)
    home_of = {number: broker for broker, number in housed.items()} | given
    for number in sorted(partitions):
        kept = [one for one in partitions[number].replicas if one in rack_of]
        first = next(iter([*kept, *lives]), None)
        if first is None:
            continue
        home = first if number in left_as_they_stand else home_of.get(number, first)
        copies = max(min(_REPLICAS, len(brokers)), len(kept))
        wanted = _around(home, kept, lives, rack_of, copies)
        if wanted != partitions[number].replicas:
            yield number, wanted


def _demoted(brokers: Sequence[Home]) -> frozenset[int]:
    return frozenset(home.broker_id for home in brokers if home.demoted)


def _given(
    spare: Sequence[int], homeless: Sequence[int], partitions: Mapping[int, Partition]
) -> dict[int, int]:
    """Spare partitions to brokers without one: first where the broker is a replica already."""
    left, given = list(homeless), {}
    for only_replicas in (True, False):
        for number in spare:
            fit = [one for one in left if not only_replicas or one in partitions[number].replicas]
            if fit and number not in given:
                given[number] = fit[0]
                left.remove(fit[0])
    return given


def _moved(
    partitions: Mapping[int, Partition], moves: Mapping[int, tuple[int, ...]]
) -> Mapping[int, Partition]:
    changed = {number: Partition(None, replicas, frozenset()) for number, replicas in moves.items()}
    return {**partitions, **changed}


def _requirement(topic: ProbeTopic, moves: Mapping[int, tuple[int, ...]]) -> Iterator[Require]:
    """Never more than the poorest partition bears, before its replicas change and after."""
    counts = [len(one.replicas) for one in topic.partitions.values()]
    counts += [len(replicas) for replicas in moves.values()]
    if topic.min_in_sync is not None and counts and topic.min_in_sync != _min_in_sync(min(counts)):
        yield Require(_min_in_sync(min(counts)))


def _elections(partitions: Mapping[int, Partition], live: frozenset[int]) -> Iterator[Elect]:
    astray = tuple(number for number in sorted(partitions) if _home_may_lead(partitions[number], live))
    if astray:
        yield Elect(astray)


def _home_may_lead(partition: Partition, live: frozenset[int]) -> bool:
    home = partition.replicas[0] if partition.replicas else None
    return home is not None and home != partition.leader and home in partition.in_sync and home in live


def _min_in_sync(copies: int) -> int:
    return max(1, copies - 1)


def _around(
    home: int, kept: Sequence[int], candidates: Sequence[int], rack_of: Mapping[int, str | None], copies: int
) -> tuple[int, ...]:
    """The home, those that are kept, then the next candidates around the ring, unused racks first."""
    chosen = [home, *(one for one in kept if one != home)]
    if len(chosen) >= copies:
        return tuple(chosen)
    ring = [one for one in candidates if one > home] + [one for one in candidates if one < home]
    for fresh_rack in (True, False):
        for broker in ring:
            if len(chosen) >= copies:
                return tuple(chosen)
            racks = {rack_of[one] for one in chosen}
            if broker not in chosen and (not fresh_rack or rack_of[broker] not in racks):
                chosen.append(broker)
    return tuple(chosen)


def _on(replicas: Sequence[Sequence[int]]) -> str:
    return f" on {'; '.join(map(_listed, replicas))}" if replicas else ""


def _listed(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))
