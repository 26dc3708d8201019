from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_probes.agent.topic_plan import Create, Elect, Home, Partition, Widen, home_partitions, plan

Topic = dict[int, Partition]


@dataclass(frozen=True)
class Situation:
    homes: tuple[Home, ...]
    live: frozenset[int]
    topic: Topic | None


@st.composite
def _homes(draw: st.DrawFn) -> tuple[Home, ...]:
    ids = draw(st.lists(st.integers(0, 12), unique=True, max_size=8))
    return tuple(Home(i, draw(st.sampled_from(["a", "b", "c", None]))) for i in ids)


@st.composite
def _situations(draw: st.DrawFn) -> Situation:
    homes = draw(_homes())
    ids = [home.broker_id for home in homes]
    live = frozenset(draw(st.lists(st.sampled_from(ids), unique=True)) if ids else ())
    topic = None
    if ids and draw(st.booleans()):
        topic = {number: draw(_partitions(ids)) for number in range(draw(st.integers(0, 6)))}
    return Situation(homes, live, topic)


@st.composite
def _partitions(draw: st.DrawFn, ids: list[int]) -> Partition:
    replicas = tuple(draw(st.lists(st.sampled_from(ids), unique=True, max_size=3)))
    in_sync = frozenset(draw(st.lists(st.sampled_from(replicas), unique=True)) if replicas else ())
    return Partition(draw(st.none() | st.sampled_from(ids)), replicas, in_sync)


def _made(replicas: tuple[int, ...], live: frozenset[int]) -> Partition:
    """A new partition is led by its first live replica."""
    in_sync = [broker for broker in replicas if broker in live]
    return Partition(in_sync[0] if in_sync else None, replicas, frozenset(in_sync))


def _apply(one: Situation) -> Topic | None:
    """What a cluster in which every change works would hold afterwards."""
    topic = None if one.topic is None else dict(one.topic)
    for change in plan(one.homes, one.live, one.topic):
        match change:
            case Create(replicas, _):
                assert topic is None
                topic = {n: _made(r, one.live) for n, r in enumerate(replicas)}
            case Widen(total, replicas):
                assert topic is not None
                for added in replicas:
                    topic[len(topic)] = _made(added, one.live)
                assert len(topic) == total
            case Elect(partitions):
                assert topic is not None
                for n in partitions:
                    topic[n] = Partition(topic[n].replicas[0], topic[n].replicas, topic[n].in_sync)
    return topic


def _added(one: Situation) -> list[tuple[int, ...]]:
    return [
        replicas
        for change in plan(one.homes, one.live, one.topic)
        if isinstance(change, Create | Widen)
        for replicas in change.replicas
    ]


def _all_live(homes: tuple[Home, ...], topic: Topic | None = None) -> Situation:
    return Situation(homes, frozenset(home.broker_id for home in homes), topic)


@given(_situations())
def test_every_registered_broker_has_a_home_partition_afterwards_dead_or_alive(one: Situation) -> None:
    assert set(home_partitions(_apply(one) or {})) >= {home.broker_id for home in one.homes}


@given(_situations())
def test_nobody_who_has_a_home_partition_gets_another(one: Situation) -> None:
    added = [replicas[0] for replicas in _added(one)]
    assert len(added) == len(set(added))
    assert not set(added) & set(home_partitions(one.topic or {}))


@given(_situations())
def test_a_second_plan_finds_nothing_to_do(one: Situation) -> None:
    assert plan(one.homes, one.live, _apply(one)) == ()


@given(_situations())
def test_new_partitions_have_distinct_registered_replicas(one: Situation) -> None:
    for replicas in _added(one):
        assert len(set(replicas)) == len(replicas)
        assert set(replicas) <= {home.broker_id for home in one.homes}


@given(_homes(), st.data())
def test_a_new_topic_has_three_replicas_where_there_are_three_brokers(
    homes: tuple[Home, ...], data: st.DataObject
) -> None:
    live = data.draw(st.sets(st.sampled_from([home.broker_id for home in homes]))) if homes else set()
    sizes = {len(replicas) for replicas in _added(Situation(homes, frozenset(live), None))}
    assert sizes == ({min(3, len(homes))} if homes else set())


@given(_situations())
def test_added_partitions_have_as_many_replicas_as_the_old_ones(one: Situation) -> None:
    if one.topic:
        old = max(len(partition.replicas) for partition in one.topic.values())
        assert all(len(replicas) == max(1, min(old, len(one.homes))) for replicas in _added(one))


@given(_situations())
def test_replicas_stand_in_as_many_racks_as_there_are(one: Situation) -> None:
    rack = {home.broker_id: home.rack for home in one.homes}
    for replicas in _added(one):
        assert len({rack[b] for b in replicas}) == min(len(replicas), len(set(rack.values())))


@given(_situations())
def test_what_exists_is_never_reassigned(one: Situation) -> None:
    after = _apply(one)
    for number, partition in (one.topic or {}).items():
        assert after is not None
        assert after[number].replicas == partition.replicas


@given(_situations())
def test_only_live_homes_in_sync_that_do_not_lead_are_elected(one: Situation) -> None:
    wanted = tuple(
        number
        for number, partition in sorted((one.topic or {}).items())
        if partition.replicas
        and partition.replicas[0] in one.live & partition.in_sync
        and partition.leader != partition.replicas[0]
    )
    elected = [
        change.partitions for change in plan(one.homes, one.live, one.topic) if isinstance(change, Elect)
    ]
    assert elected == ([wanted] if wanted else [])


@given(_situations(), st.randoms())
def test_the_plan_does_not_depend_on_the_order_of_brokers_and_partitions(
    one: Situation, random: object
) -> None:
    homes, topic = list(one.homes), list((one.topic or {}).items())
    random.shuffle(homes)  # type: ignore[attr-defined]
    random.shuffle(topic)  # type: ignore[attr-defined]
    shuffled = None if one.topic is None else dict(topic)
    assert plan(homes, one.live, shuffled) == plan(one.homes, one.live, one.topic)


@given(_homes())
def test_a_new_topic_bears_the_loss_of_one_replica(homes: tuple[Home, ...]) -> None:
    for change in plan(homes, frozenset(h.broker_id for h in homes), None):
        assert isinstance(change, Create)
        assert change.min_in_sync == max(1, min(3, len(homes)) - 1)


def test_three_brokers_in_three_racks() -> None:
    homes = (Home(1, "a"), Home(2, "b"), Home(3, "c"))
    assert plan(homes, frozenset({1, 2, 3}), None) == (Create(((1, 2, 3), (2, 3, 1), (3, 1, 2)), 2),)


def test_a_broker_in_an_unused_rack_goes_before_a_nearer_one() -> None:
    homes = (Home(1, "a"), Home(2, "a"), Home(3, "b"), Home(4, "c"))
    assert _added(_all_live(homes))[0] == (1, 3, 4)


def test_a_broker_that_joins_gets_a_partition_beside_those_that_exist() -> None:
    topic = {0: Partition(1, (1, 2), frozenset({1, 2})), 1: Partition(2, (2, 1), frozenset({1, 2}))}
    homes = (Home(1, "a"), Home(2, "b"), Home(3, "c"))
    assert plan(homes, frozenset({1, 2, 3}), topic) == (Widen(3, ((3, 1),)),)


def test_a_broker_that_is_down_when_the_topic_is_made_gets_its_partition_like_the_others() -> None:
    homes = (Home(1, "a"), Home(2, "b"), Home(3, "c"))
    assert plan(homes, frozenset({1}), None) == plan(homes, frozenset({1, 2, 3}), None)


def test_without_a_registered_broker_there_is_nothing_to_do() -> None:
    assert plan((), frozenset(), None) == ()
    assert plan((), frozenset(), {0: Partition(None, (1,), frozenset())}) == ()


def test_a_brokers_home_is_its_lowest_partition() -> None:
    one = Partition(1, (1, 2), frozenset({1, 2}))
    assert home_partitions({3: one, 1: one, 2: Partition(None, (), frozenset())}) == {1: 1}
