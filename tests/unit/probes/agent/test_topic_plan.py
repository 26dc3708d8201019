"""Plans of the probe topic, tried on a cluster that does what it is told."""

from dataclasses import dataclass, replace
from random import Random

from hypothesis import assume, given
from hypothesis import strategies as st

from fleetgauge_probes.agent.topic_plan import (
    ALL_LATITUDE,
    Change,
    Create,
    Elect,
    Home,
    Latitude,
    Partition,
    Placement,
    ProbeTopic,
    Reassign,
    Require,
    Widen,
    home_partitions,
    narrowed,
    plan,
)

NO_MOVES = Latitude(moves=False)
BY_COUNT = Latitude(Placement.BY_COUNT, moves=False)
LATITUDES = st.builds(Latitude, st.sampled_from(Placement), st.booleans())


@dataclass(frozen=True)
class Situation:
    homes: tuple[Home, ...]
    live: frozenset[int]
    topic: ProbeTopic | None

    @property
    def ids(self) -> set[int]:
        return {home.broker_id for home in self.homes}

    @property
    def demoted(self) -> set[int]:
        return {home.broker_id for home in self.homes if home.demoted}

    def home_of(self) -> dict[int, int]:
        return home_partitions(self.partitions, self.demoted)

    @property
    def partitions(self) -> dict[int, Partition]:
        return {} if self.topic is None else dict(self.topic.partitions)


@st.composite
def _homes(draw: st.DrawFn) -> tuple[Home, ...]:
    ids = draw(st.lists(st.integers(0, 12), unique=True, max_size=8))
    demoted = draw(st.sets(st.sampled_from(ids), max_size=2)) if ids else set()
    return tuple(Home(i, draw(st.sampled_from(["a", "b", "c", None])), i in demoted) for i in ids)


@st.composite
def _situations(draw: st.DrawFn) -> Situation:
    """Brokers 13 and 14 are never registered: they are gone."""
    homes = draw(_homes())
    ids = [home.broker_id for home in homes]
    live = frozenset(draw(st.lists(st.sampled_from(ids), unique=True)) if ids else ())
    topic = None
    if ids and draw(st.booleans()):
        partitions = {number: draw(_partitions([*ids, 13, 14])) for number in range(draw(st.integers(0, 6)))}
        topic = ProbeTopic(partitions, draw(st.sampled_from([None, 1, 2, 3])))
    return Situation(homes, live, topic)


@st.composite
def _partitions(draw: st.DrawFn, ids: list[int]) -> Partition:
    replicas = tuple(draw(st.lists(st.sampled_from(ids), unique=True, max_size=4)))
    in_sync = frozenset(draw(st.lists(st.sampled_from(replicas), unique=True)) if replicas else ())
    return Partition(draw(st.none() | st.sampled_from(ids)), replicas, in_sync)


def _made(replicas: tuple[int, ...], live: frozenset[int]) -> Partition:
    """A new partition is led by its first live replica."""
    in_sync = [broker for broker in replicas if broker in live]
    return Partition(in_sync[0] if in_sync else None, replicas, frozenset(in_sync))


def _placed(number: int, copies: int, one: Situation) -> tuple[int, ...]:
    """As a cluster places partitions by itself: around the ring."""
    ids = sorted(one.ids)
    return tuple(ids[(number + turn) % len(ids)] for turn in range(min(copies, len(ids))))


def _apply(one: Situation, latitude: Latitude = ALL_LATITUDE) -> Situation:
    """What a cluster in which every change works would hold afterwards."""
    partitions = one.partitions
    min_in_sync = one.topic.min_in_sync if one.topic else 1
    for change in plan(one.homes, one.live, one.topic, latitude):
        match change:
            case Create(count, copies, replicas):
                assert one.topic is None
                placed = replicas or tuple(_placed(n, copies or 1, one) for n in range(count))
                partitions = {n: _made(r, one.live) for n, r in enumerate(placed)}
                min_in_sync = int(change.settings.get("min.insync.replicas", 1))
            case Widen(total, replicas):
                assert one.topic is not None
                for number in range(len(partitions), total):
                    added = replicas[number - total] if replicas else _placed(number, 3, one)
                    partitions[number] = _made(added, one.live)
            case Reassign(moves):
                for number, moved in moves:
                    partitions[number] = _made(moved, one.live)
            case Require(count):
                min_in_sync = count
            case Elect(elected):
                for number in elected:
                    before = partitions[number]
                    partitions[number] = Partition(before.replicas[0], before.replicas, before.in_sync)
    topic = None if one.topic is None and not partitions else ProbeTopic(partitions, min_in_sync)
    return Situation(one.homes, one.live, topic)


def _settled(one: Situation, latitude: Latitude = ALL_LATITUDE) -> Situation:
    """After the changes, and those that they call for."""
    for _ in range(4):
        one = _apply(one, latitude)
    return one


def _changes(one: Situation, latitude: Latitude = ALL_LATITUDE) -> tuple[Change, ...]:
    return plan(one.homes, one.live, one.topic, latitude)


def _moves(one: Situation) -> dict[int, tuple[int, ...]]:
    return {n: r for change in _changes(one) if isinstance(change, Reassign) for n, r in change.replicas}


def _new(one: Situation) -> list[tuple[int, ...]]:
    """Replicas of partitions that are made."""
    return [r for change in _changes(one) if isinstance(change, Create | Widen) for r in change.replicas]


def _all_live(homes: tuple[Home, ...], partitions: dict[int, Partition], min_in_sync: int = 1) -> Situation:
    live = frozenset(home.broker_id for home in homes)
    return Situation(homes, live, ProbeTopic(partitions, min_in_sync))


def _led(*replicas: int) -> Partition:
    return Partition(replicas[0], replicas, frozenset(replicas))


@given(_situations(), st.booleans())
def test_every_registered_broker_has_a_home_partition_afterwards_dead_or_alive(
    one: Situation, moves: bool
) -> None:
    assert set(_apply(one, Latitude(moves=moves)).home_of()) >= one.ids


@given(_situations(), LATITUDES)
def test_once_all_is_done_there_is_nothing_to_do(one: Situation, latitude: Latitude) -> None:
    assert _changes(_settled(one, latitude), latitude) == ()


@given(_situations())
def test_no_more_partitions_are_made_than_brokers_lack_one(one: Situation) -> None:
    made = [replicas[0] for replicas in _new(one)]
    assert len(made) == len(set(made))
    assert not set(made) & set(home_partitions({**one.partitions, **_moved_views(one)}, one.demoted))


def _moved_views(one: Situation) -> dict[int, Partition]:
    return {number: _made(replicas, one.live) for number, replicas in _moves(one).items()}


@given(_situations())
def test_a_partition_is_only_made_where_no_spare_one_is_left_for_a_live_broker(some: Situation) -> None:
    assume(some.topic is not None)
    one = replace(some, homes=tuple(Home(home.broker_id, home.rack) for home in some.homes))
    homes = {b for b in one.home_of() if b in one.ids}
    spare = len(one.partitions) - len(homes)
    live_and_homeless = [b for b in one.ids & one.live if b not in homes]
    assert sum(replicas[0] in one.live for replicas in _new(one)) == max(0, len(live_and_homeless) - spare)


@given(_situations())
def test_replicas_are_distinct_and_registered(one: Situation) -> None:
    for replicas in (*_new(one), *_moves(one).values()):
        assert len(set(replicas)) == len(replicas)
        assert set(replicas) <= one.ids


@given(_situations())
def test_a_move_keeps_every_replica_that_is_registered_and_adds_live_ones_alone(one: Situation) -> None:
    for number, replicas in _moves(one).items():
        before = set(one.partitions[number].replicas)
        assert set(replicas) >= before & one.ids
        assert set(replicas) - before <= one.live
        assert len(set(replicas) - before) <= max(3 - len(before & one.ids), 1)


@given(_situations())
def test_a_home_is_never_taken_from_a_registered_broker(one: Situation) -> None:
    after = _apply(one).partitions
    for broker, number in one.home_of().items():
        if broker in one.ids - one.demoted:
            assert after[number].replicas[0] == broker


@given(_situations())
def test_who_is_demoted_is_elected_nowhere_and_put_first_only_where_nothing_else_is_left(
    one: Situation,
) -> None:
    after = _apply(one).partitions
    for change in _changes(one):
        if isinstance(change, Elect):
            assert not {after[number].replicas[0] for number in change.partitions} & one.demoted
    homes = one.home_of()
    for broker in one.demoted & homes.keys():
        before = [b for b in one.partitions[homes[broker]].replicas if b in one.ids]
        assert after[homes[broker]].replicas[0] == before[0]


@given(st.integers(2, 9), st.data())
def test_a_broker_that_is_demoted_everywhere_keeps_its_partition_and_leads_it_again_afterwards(
    brokers: int, data: st.DataObject
) -> None:
    ids = list(range(brokers))
    homes = tuple(Home(one, None) for one in ids)
    usual = _settled(Situation(homes, frozenset(ids), None))
    sick = data.draw(st.sampled_from(ids))
    last = {
        number: _led(*sorted(one.replicas, key=lambda broker: broker == sick))
        for number, one in usual.partitions.items()
    }
    marked = tuple(Home(one, None, one == sick) for one in ids)
    demoted = _all_live(marked, last, max(1, min(3, brokers) - 1))
    assert _changes(demoted) == ()
    assert set(demoted.home_of()) == set(ids)
    assert len(set(demoted.home_of().values())) == brokers
    again = _settled(_all_live(homes, last))
    assert {one.leader for one in again.partitions.values()} == set(ids)
    assert len(again.partitions) == brokers


@given(_situations())
def test_with_all_brokers_alive_nobody_who_is_gone_holds_a_replica_and_all_have_three(one: Situation) -> None:
    everybody = Situation(one.homes, frozenset(one.ids), one.topic)
    after = _settled(everybody)
    for number, partition in after.partitions.items():
        assert set(partition.replicas) <= one.ids
        if number in one.partitions:
            assert len(partition.replicas) >= min(3, len(one.ids))


@given(_situations())
def test_what_is_required_is_what_the_poorest_partition_bears_with_one_lost(one: Situation) -> None:
    assume(one.topic is not None and one.topic.min_in_sync is not None)
    after = _settled(one)
    assert after.topic is not None
    if after.partitions and one.ids:
        poorest = min(len(partition.replicas) for partition in after.partitions.values())
        assert after.topic.min_in_sync == max(1, poorest - 1)


@given(_situations())
def test_no_more_is_required_than_every_partition_has_before_and_after(one: Situation) -> None:
    counts = [len(p.replicas) for p in (*one.partitions.values(), *_apply(one).partitions.values())]
    for change in _changes(one):
        if isinstance(change, Require):
            assert change.min_in_sync <= max(1, min(counts) - 1)


@given(_homes(), st.data())
def test_a_new_topic_has_three_replicas_where_there_are_three_brokers(
    homes: tuple[Home, ...], data: st.DataObject
) -> None:
    live = data.draw(st.sets(st.sampled_from([home.broker_id for home in homes]))) if homes else set()
    sizes = {len(replicas) for replicas in _new(Situation(homes, frozenset(live), None))}
    assert sizes == ({min(3, len(homes))} if homes else set())


@given(_situations())
def test_replicas_stand_in_as_many_racks_as_there_are(one: Situation) -> None:
    rack = {home.broker_id: home.rack for home in one.homes}
    for replicas in _new(one):
        assert len({rack[b] for b in replicas}) == min(len(replicas), len(set(rack.values())))


@given(_situations())
def test_who_may_not_move_replicas_moves_none(one: Situation) -> None:
    assert not any(isinstance(change, Reassign) for change in _changes(one, NO_MOVES))


@given(_situations())
def test_only_live_homes_in_sync_that_do_not_lead_are_elected(one: Situation) -> None:
    wanted = tuple(
        number
        for number, partition in sorted(one.partitions.items())
        if partition.replicas
        and partition.replicas[0] in (one.live & partition.in_sync) - one.demoted
        and partition.leader != partition.replicas[0]
    )
    elected = [change.partitions for change in _changes(one, NO_MOVES) if isinstance(change, Elect)]
    assert elected == ([wanted] if wanted else [])
    moved = _moves(one)
    elected = [change.partitions for change in _changes(one) if isinstance(change, Elect)]
    assert sum(elected, ()) == tuple(number for number in wanted if number not in moved)


@given(_situations(), st.randoms())
def test_the_plan_does_not_depend_on_the_order_of_brokers_and_partitions(
    one: Situation, random: Random
) -> None:
    homes, partitions = list(one.homes), list(one.partitions.items())
    random.shuffle(homes)
    random.shuffle(partitions)
    shuffled = None if one.topic is None else ProbeTopic(dict(partitions), one.topic.min_in_sync)
    assert plan(homes, one.live, shuffled) == _changes(one)


@given(_homes())
def test_a_new_topic_bears_the_loss_of_one_replica(homes: tuple[Home, ...]) -> None:
    for change in plan(homes, frozenset(h.broker_id for h in homes), None):
        assert isinstance(change, Create)
        assert change.settings["min.insync.replicas"] == str(max(1, min(3, len(homes)) - 1))


@given(_homes(), st.integers(0, 5))
def test_where_the_cluster_places_them_partitions_are_added_until_each_broker_leads_one(
    homes: tuple[Home, ...], first: int
) -> None:
    assume(homes)
    start = Situation(homes, frozenset(h.broker_id for h in homes), None)
    partitions = {n: _made(_placed(first, 1, start), start.live) for n in range(first)}
    one = Situation(homes, start.live, ProbeTopic(partitions) if first else None)
    assert set(_settled(one, BY_COUNT).home_of()) == one.ids


def test_where_partitions_never_fall_to_a_broker_an_end_is_made() -> None:
    homes = (Home(1, None), Home(2, None))
    topic = ProbeTopic({number: _led(1) for number in range(16)})
    assert plan(homes, frozenset({1, 2}), topic, BY_COUNT) == ()


def test_what_is_refused_is_not_asked_for_again() -> None:
    by_count, left = Placement.BY_COUNT, Placement.LEFT_TO_CLUSTER
    made = Create(1, 1, ((1,),))
    assert narrowed(ALL_LATITUDE, Reassign(())) == NO_MOVES
    assert narrowed(ALL_LATITUDE, made).placement is narrowed(ALL_LATITUDE, Widen(2)).placement is by_count
    assert narrowed(Latitude(by_count), made).placement is left
    assert narrowed(Latitude(left), made) == Latitude(left)
    assert narrowed(Latitude(by_count), Widen(2)) == Latitude(by_count)
    assert narrowed(ALL_LATITUDE, Elect((1,))) == narrowed(ALL_LATITUDE, Require(1)) == ALL_LATITUDE


def test_what_is_left_to_the_cluster_carries_no_settings() -> None:
    (change,) = plan(
        (Home(1, None), Home(2, None)), frozenset({1}), None, Latitude(Placement.LEFT_TO_CLUSTER)
    )
    assert change == Create(2, None)
    assert change.settings == {}


def test_three_brokers_in_three_racks() -> None:
    homes = (Home(1, "a"), Home(2, "b"), Home(3, "c"))
    made = Create(3, 3, ((1, 2, 3), (2, 3, 1), (3, 1, 2)))
    assert plan(homes, frozenset({1, 2, 3}), None) == (made,)
    assert str(made) == "make fleetgauge.probe with 3 partitions on 1,2,3; 2,3,1; 3,1,2"


def test_a_broker_in_an_unused_rack_goes_before_a_nearer_one() -> None:
    homes = (Home(1, "a"), Home(2, "a"), Home(3, "b"), Home(4, "c"))
    assert _new(Situation(homes, frozenset(), None))[0] == (1, 3, 4)


def test_a_broker_that_joins_gets_a_partition_and_those_that_exist_a_third_replica() -> None:
    homes = (Home(1, "a"), Home(2, "b"), Home(3, "c"))
    one = _all_live(homes, {0: _led(1, 2), 1: _led(2, 1)})
    assert _changes(one) == (Widen(3, ((3, 1, 2),)), Reassign(((0, (1, 2, 3)), (1, (2, 1, 3)))))
    assert _changes(_apply(one)) == (Require(2),)


def test_a_broker_that_is_replaced_leaves_its_partition_to_its_successor() -> None:
    homes = (Home(1, None), Home(2, None), Home(4, None))
    one = _all_live(
        homes, {0: _led(1, 2, 3), 1: _led(2, 3, 1), 2: Partition(1, (3, 1, 2), frozenset({1, 2}))}, 2
    )
    assert _changes(one) == (Reassign(((0, (1, 2, 4)), (1, (2, 1, 4)), (2, (4, 1, 2)))),)


def test_a_broker_that_has_gone_for_good_leaves_no_partition_short_of_a_replica() -> None:
    homes = (Home(1, None), Home(2, None), Home(3, None))
    topic = {
        0: _led(1, 2, 3),
        1: _led(2, 3, 4),
        2: _led(3, 4, 1),
        3: Partition(1, (4, 1, 2), frozenset({1, 2})),
    }
    one = _all_live(homes, topic, 2)
    assert _moves(one) == {1: (2, 3, 1), 2: (3, 1, 2), 3: (1, 2, 3)}


def test_a_partition_that_somebody_moved_to_another_home_is_moved_back() -> None:
    homes = (Home(1, None), Home(2, None), Home(3, None))
    one = _all_live(homes, {0: _led(2, 3, 1), 1: _led(2, 3, 1), 2: _led(3, 1, 2)}, 2)
    assert _changes(one) == (Reassign(((1, (1, 2, 3)),)),)
    assert str(_changes(one)[0]) == "move partition 1 to 1,2,3"


def test_a_broker_that_is_down_when_the_topic_is_made_gets_its_partition_like_the_others() -> None:
    homes = (Home(1, "a"), Home(2, "b"), Home(3, "c"))
    assert plan(homes, frozenset({1}), None) == plan(homes, frozenset({1, 2, 3}), None)


def test_without_a_registered_broker_there_is_nothing_to_do() -> None:
    assert plan((), frozenset(), None) == ()
    assert plan((), frozenset(), ProbeTopic({0: Partition(None, (1,), frozenset())})) == ()


def test_a_brokers_home_is_its_lowest_partition() -> None:
    one = Partition(1, (1, 2), frozenset({1, 2}))
    assert home_partitions({3: one, 1: one, 2: Partition(None, (), frozenset())}) == {1: 1}
