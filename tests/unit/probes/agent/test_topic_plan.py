"""Plans of the probe topic, applied to a simulated cluster in which every action succeeds."""

from dataclasses import dataclass, replace
from random import Random

from hypothesis import assume, given
from hypothesis import strategies as st

from fleetgauge_core.metadata import MIN_IN_SYNC, PartitionMetadata, build_log_settings
from fleetgauge_probes.agent.topic_plan import (
    ALL_CAPABILITIES,
    HomeBroker,
    PartitionAddition,
    PreferredLeaderElection,
    ProbeTopicState,
    ReplicaPlacement,
    ReplicaReassignment,
    SettingUpdate,
    TopicAction,
    TopicCapabilities,
    TopicCreation,
    map_home_partitions,
    narrow_capabilities,
    plan_probe_topic,
)

SPECIFIED = build_log_settings(3_600_000, 2)
#: The settings of a topic that somebody else created.
FOREIGN = dict.fromkeys(SPECIFIED, "1") | {"cleanup.policy": "compact", "compression.type": "zstd"}
NO_REASSIGNMENT = TopicCapabilities(can_reassign=False)
BY_REPLICATION_FACTOR = TopicCapabilities(ReplicaPlacement.REPLICATION_FACTOR, can_reassign=False)
CAPABILITIES = st.builds(TopicCapabilities, st.sampled_from(ReplicaPlacement), st.booleans())


@dataclass(frozen=True)
class Situation:
    """Registered brokers, those that respond, and the probe topic."""

    homes: tuple[HomeBroker, ...]
    responding: frozenset[int]
    topic: ProbeTopicState | None

    @property
    def ids(self) -> set[int]:
        return {home.broker_id for home in self.homes}

    @property
    def demoted(self) -> set[int]:
        return {home.broker_id for home in self.homes if home.demoted}

    def home_partitions(self) -> dict[int, int]:
        return map_home_partitions(self.partitions, self.demoted)

    @property
    def partitions(self) -> dict[int, PartitionMetadata]:
        return {} if self.topic is None else dict(self.topic.partitions)


@st.composite
def draw_homes(draw: st.DrawFn) -> tuple[HomeBroker, ...]:
    ids = draw(st.lists(st.integers(0, 12), unique=True, max_size=8))
    demoted = draw(st.sets(st.sampled_from(ids), max_size=2)) if ids else set()
    return tuple(
        HomeBroker(broker, draw(st.sampled_from(["a", "b", "c", None])), broker in demoted) for broker in ids
    )


@st.composite
def draw_situations(draw: st.DrawFn) -> Situation:
    """Draw a situation in which brokers 13 and 14 may be replicas but are not registered."""
    homes = draw(draw_homes())
    ids = [home.broker_id for home in homes]
    responding = frozenset(draw(st.lists(st.sampled_from(ids), unique=True)) if ids else ())
    topic = None
    if ids and draw(st.booleans()):
        partitions = {
            number: draw(draw_partition([*ids, 13, 14])) for number in range(draw(st.integers(0, 6)))
        }
        topic = ProbeTopicState(partitions, draw(st.sampled_from([{}, FOREIGN, SPECIFIED])))
    return Situation(homes, responding, topic)


@st.composite
def draw_partition(draw: st.DrawFn, ids: list[int]) -> PartitionMetadata:
    replicas = tuple(draw(st.lists(st.sampled_from(ids), unique=True, max_size=4)))
    in_sync = frozenset(draw(st.lists(st.sampled_from(replicas), unique=True)) if replicas else ())
    return PartitionMetadata(draw(st.none() | st.sampled_from(ids)), replicas, in_sync)


def new_partition(replicas: tuple[int, ...], responding: frozenset[int]) -> PartitionMetadata:
    """Return a new partition, which is led by its first responding replica."""
    in_sync = [broker for broker in replicas if broker in responding]
    return PartitionMetadata(in_sync[0] if in_sync else None, replicas, frozenset(in_sync))


def assign_by_cluster(number: int, replication_factor: int, situation: Situation) -> tuple[int, ...]:
    """Return the replicas that a cluster assigns by itself: consecutive brokers."""
    ids = sorted(situation.ids)
    return tuple(ids[(number + step) % len(ids)] for step in range(min(replication_factor, len(ids))))


def apply_plan(situation: Situation, capabilities: TopicCapabilities = ALL_CAPABILITIES) -> Situation:
    """Return the situation after the planned actions."""
    partitions = situation.partitions
    settings = dict(situation.topic.settings) if situation.topic else {}
    for action in plan_probe_topic(situation.homes, situation.responding, situation.topic, capabilities):
        match action:
            case TopicCreation(count, replication_factor, replicas):
                assert situation.topic is None
                assignment = replicas or tuple(
                    assign_by_cluster(n, replication_factor or 1, situation) for n in range(count)
                )
                partitions = {n: new_partition(r, situation.responding) for n, r in enumerate(assignment)}
                settings = FOREIGN | action.settings
            case PartitionAddition(total, replicas):
                assert situation.topic is not None
                for number in range(len(partitions), total):
                    added = replicas[number - total] if replicas else assign_by_cluster(number, 3, situation)
                    partitions[number] = new_partition(added, situation.responding)
            case ReplicaReassignment(moves):
                for number, moved in moves:
                    partitions[number] = new_partition(moved, situation.responding)
            case SettingUpdate(key, value):
                settings[key] = value
            case PreferredLeaderElection(elected):
                for number in elected:
                    before = partitions[number]
                    partitions[number] = PartitionMetadata(
                        before.replicas[0], before.replicas, before.in_sync
                    )
    topic = None if situation.topic is None and not partitions else ProbeTopicState(partitions, settings)
    return Situation(situation.homes, situation.responding, topic)


def apply_repeatedly(situation: Situation, capabilities: TopicCapabilities = ALL_CAPABILITIES) -> Situation:
    """Return the situation after the planned actions and those that follow from them.

    Where the cluster assigns replicas, each round may add a single partition, led by the next broker.
    """
    for _ in range(4 + 2 * len(situation.homes)):
        situation = apply_plan(situation, capabilities)
    return situation


def plan_actions(
    situation: Situation, capabilities: TopicCapabilities = ALL_CAPABILITIES
) -> tuple[TopicAction, ...]:
    return plan_probe_topic(situation.homes, situation.responding, situation.topic, capabilities)


def planned_moves(situation: Situation) -> dict[int, tuple[int, ...]]:
    return {
        n: r
        for action in plan_actions(situation)
        if isinstance(action, ReplicaReassignment)
        for n, r in action.replicas
    }


def planned_replicas(situation: Situation) -> list[tuple[int, ...]]:
    """Return the replicas of partitions that are planned to be created or added."""
    return [
        r
        for action in plan_actions(situation)
        if isinstance(action, TopicCreation | PartitionAddition)
        for r in action.replicas
    ]


def all_responding(
    homes: tuple[HomeBroker, ...], partitions: dict[int, PartitionMetadata], min_in_sync: int = 1
) -> Situation:
    responding = frozenset(home.broker_id for home in homes)
    settings = SPECIFIED | {MIN_IN_SYNC: str(min_in_sync)}
    return Situation(homes, responding, ProbeTopicState(partitions, settings))


def in_sync_partition(*replicas: int) -> PartitionMetadata:
    return PartitionMetadata(replicas[0], replicas, frozenset(replicas))


@given(draw_situations(), st.booleans())
def test_every_registered_broker_gets_a_home_partition_even_while_down(
    situation: Situation, can_reassign: bool
) -> None:
    assert (
        set(apply_plan(situation, TopicCapabilities(can_reassign=can_reassign)).home_partitions())
        >= situation.ids
    )


@given(draw_situations(), CAPABILITIES)
def test_a_topic_that_follows_its_plan_needs_no_further_actions(
    situation: Situation, capabilities: TopicCapabilities
) -> None:
    assert plan_actions(apply_repeatedly(situation, capabilities), capabilities) == ()


@given(draw_situations())
def test_partitions_are_added_only_for_brokers_without_one(situation: Situation) -> None:
    created = [replicas[0] for replicas in planned_replicas(situation)]
    assert len(created) == len(set(created))
    assert not set(created) & set(
        map_home_partitions({**situation.partitions, **moved_partitions(situation)}, situation.demoted)
    )


def moved_partitions(situation: Situation) -> dict[int, PartitionMetadata]:
    return {
        number: new_partition(replicas, situation.responding)
        for number, replicas in planned_moves(situation).items()
    }


@given(draw_situations())
def test_a_partition_is_added_only_if_no_spare_partition_is_left(drawn: Situation) -> None:
    assume(drawn.topic is not None)
    situation = replace(drawn, homes=tuple(HomeBroker(home.broker_id, home.rack) for home in drawn.homes))
    homes = {broker for broker in situation.home_partitions() if broker in situation.ids}
    spare = len(situation.partitions) - len(homes)
    without_home = [broker for broker in situation.ids & situation.responding if broker not in homes]
    assert sum(replicas[0] in situation.responding for replicas in planned_replicas(situation)) == max(
        0, len(without_home) - spare
    )


@given(draw_situations())
def test_replicas_are_distinct_and_registered(situation: Situation) -> None:
    for replicas in (*planned_replicas(situation), *planned_moves(situation).values()):
        assert len(set(replicas)) == len(replicas)
        assert set(replicas) <= situation.ids


@given(draw_situations())
def test_a_reassignment_keeps_registered_replicas_and_adds_responding_brokers_only(
    situation: Situation,
) -> None:
    for number, replicas in planned_moves(situation).items():
        before = set(situation.partitions[number].replicas)
        assert set(replicas) >= before & situation.ids
        assert set(replicas) - before <= situation.responding
        assert len(set(replicas) - before) <= max(3 - len(before & situation.ids), 1)


@given(draw_situations())
def test_a_home_is_never_taken_from_a_registered_broker(situation: Situation) -> None:
    after = apply_plan(situation).partitions
    for broker, number in situation.home_partitions().items():
        if broker in situation.ids - situation.demoted:
            assert after[number].replicas[0] == broker


@given(draw_situations())
def test_a_demoted_broker_is_never_elected_and_its_partition_keeps_its_first_replica(
    situation: Situation,
) -> None:
    after = apply_plan(situation).partitions
    for action in plan_actions(situation):
        if isinstance(action, PreferredLeaderElection):
            assert not {after[number].replicas[0] for number in action.partitions} & situation.demoted
    homes = situation.home_partitions()
    for broker in situation.demoted & homes.keys():
        before = [
            replica for replica in situation.partitions[homes[broker]].replicas if replica in situation.ids
        ]
        assert after[homes[broker]].replicas[0] == before[0]


@given(st.integers(2, 9), st.data())
def test_a_demoted_broker_keeps_its_partition_and_leads_it_again_after_the_demotion(
    brokers: int, data: st.DataObject
) -> None:
    ids = list(range(brokers))
    homes = tuple(HomeBroker(broker, None) for broker in ids)
    without_demotion = apply_repeatedly(Situation(homes, frozenset(ids), None))
    demoted_broker = data.draw(st.sampled_from(ids))
    last = {
        number: in_sync_partition(*sorted(partition.replicas, key=lambda broker: broker == demoted_broker))
        for number, partition in without_demotion.partitions.items()
    }
    marked = tuple(HomeBroker(broker, None, broker == demoted_broker) for broker in ids)
    demoted = all_responding(marked, last, max(1, min(3, brokers) - 1))
    assert plan_actions(demoted) == ()
    assert set(demoted.home_partitions()) == set(ids)
    assert len(set(demoted.home_partitions().values())) == brokers
    again = apply_repeatedly(all_responding(homes, last))
    assert {partition.leader for partition in again.partitions.values()} == set(ids)
    assert len(again.partitions) == brokers


@given(draw_situations())
def test_with_all_brokers_responding_every_partition_has_three_registered_replicas(
    situation: Situation,
) -> None:
    fully_responding = Situation(situation.homes, frozenset(situation.ids), situation.topic)
    after = apply_repeatedly(fully_responding)
    for number, partition in after.partitions.items():
        assert set(partition.replicas) <= situation.ids
        if number in situation.partitions:
            assert len(partition.replicas) >= min(3, len(situation.ids))


@given(draw_situations())
def test_min_in_sync_replicas_permits_the_loss_of_one_replica_of_any_partition(situation: Situation) -> None:
    assume(situation.topic is not None and situation.topic.settings)
    after = apply_repeatedly(situation)
    assert after.topic is not None
    if after.partitions and situation.ids:
        min_replicas = min(len(partition.replicas) for partition in after.partitions.values())
        assert after.topic.settings[MIN_IN_SYNC] == str(max(1, min_replicas - 1))


@given(draw_situations())
def test_a_topic_of_somebody_else_gets_our_settings_and_keeps_all_others(situation: Situation) -> None:
    assume(situation.topic is not None and situation.topic.settings)
    after = apply_repeatedly(situation)
    assert situation.topic is not None
    assert after.topic is not None
    if after.partitions and situation.ids:
        ours = SPECIFIED | {MIN_IN_SYNC: after.topic.settings[MIN_IN_SYNC]}
        assert after.topic.settings == {**situation.topic.settings, **ours}


@given(draw_situations())
def test_min_in_sync_replicas_is_met_before_and_after_reassignments(situation: Situation) -> None:
    counts = [
        len(p.replicas) for p in (*situation.partitions.values(), *apply_plan(situation).partitions.values())
    ]
    for action in plan_actions(situation):
        if isinstance(action, SettingUpdate) and action.key == MIN_IN_SYNC:
            assert int(action.value) <= max(1, min(counts) - 1)


@given(draw_homes(), st.data())
def test_a_new_topic_has_three_replicas_where_there_are_three_brokers(
    homes: tuple[HomeBroker, ...], data: st.DataObject
) -> None:
    responding = data.draw(st.sets(st.sampled_from([home.broker_id for home in homes]))) if homes else set()
    sizes = {len(replicas) for replicas in planned_replicas(Situation(homes, frozenset(responding), None))}
    assert sizes == ({min(3, len(homes))} if homes else set())


@given(draw_situations())
def test_replicas_are_spread_over_as_many_racks_as_possible(situation: Situation) -> None:
    rack = {home.broker_id: home.rack for home in situation.homes}
    for replicas in planned_replicas(situation):
        assert len({rack[broker] for broker in replicas}) == min(len(replicas), len(set(rack.values())))


@given(draw_situations())
def test_without_the_reassignment_capability_nothing_is_reassigned(situation: Situation) -> None:
    assert not any(
        isinstance(action, ReplicaReassignment) for action in plan_actions(situation, NO_REASSIGNMENT)
    )


@given(draw_situations())
def test_only_responding_homes_in_sync_that_do_not_lead_are_elected(situation: Situation) -> None:
    wanted = tuple(
        number
        for number, partition in sorted(situation.partitions.items())
        if partition.replicas
        and partition.replicas[0] in (situation.responding & partition.in_sync) - situation.demoted
        and partition.leader != partition.replicas[0]
    )
    elected = [
        action.partitions
        for action in plan_actions(situation, NO_REASSIGNMENT)
        if isinstance(action, PreferredLeaderElection)
    ]
    assert elected == ([wanted] if wanted else [])
    moved = planned_moves(situation)
    elected = [
        action.partitions for action in plan_actions(situation) if isinstance(action, PreferredLeaderElection)
    ]
    assert sum(elected, ()) == tuple(number for number in wanted if number not in moved)


@given(draw_situations(), st.randoms())
def test_the_plan_does_not_depend_on_the_order_of_brokers_and_partitions(
    situation: Situation, random: Random
) -> None:
    homes, partitions = list(situation.homes), list(situation.partitions.items())
    random.shuffle(homes)
    random.shuffle(partitions)
    shuffled = (
        None if situation.topic is None else ProbeTopicState(dict(partitions), situation.topic.settings)
    )
    assert plan_probe_topic(homes, situation.responding, shuffled) == plan_actions(situation)


@given(draw_homes())
def test_a_new_topic_tolerates_the_loss_of_one_replica(homes: tuple[HomeBroker, ...]) -> None:
    for action in plan_probe_topic(homes, frozenset(home.broker_id for home in homes), None):
        assert isinstance(action, TopicCreation)
        assert action.settings["min.insync.replicas"] == str(max(1, min(3, len(homes)) - 1))


@given(draw_homes(), st.integers(0, 5))
def test_if_the_cluster_assigns_replicas_partitions_are_added_until_each_broker_leads_one(
    homes: tuple[HomeBroker, ...], first: int
) -> None:
    assume(homes)
    start = Situation(homes, frozenset(home.broker_id for home in homes), None)
    partitions = {
        n: new_partition(assign_by_cluster(first, 1, start), start.responding) for n in range(first)
    }
    situation = Situation(homes, start.responding, ProbeTopicState(partitions) if first else None)
    assert set(apply_repeatedly(situation, BY_REPLICATION_FACTOR).home_partitions()) == situation.ids


def test_partitions_stop_being_added_at_eight_for_each_broker() -> None:
    homes = (HomeBroker(1, None), HomeBroker(2, None))
    topic = ProbeTopicState({number: in_sync_partition(1) for number in range(16)})
    assert plan_probe_topic(homes, frozenset({1, 2}), topic, BY_REPLICATION_FACTOR) == ()


def test_a_rejected_action_narrows_the_capabilities() -> None:
    by_count, cluster_default = ReplicaPlacement.REPLICATION_FACTOR, ReplicaPlacement.CLUSTER_DEFAULT
    created = TopicCreation(1, 1, ((1,),))
    assert narrow_capabilities(ALL_CAPABILITIES, ReplicaReassignment(())) == NO_REASSIGNMENT
    assert (
        narrow_capabilities(ALL_CAPABILITIES, created).placement
        is narrow_capabilities(ALL_CAPABILITIES, PartitionAddition(2)).placement
        is by_count
    )
    assert narrow_capabilities(TopicCapabilities(by_count), created).placement is cluster_default
    assert narrow_capabilities(TopicCapabilities(cluster_default), created) == TopicCapabilities(
        cluster_default
    )
    assert narrow_capabilities(TopicCapabilities(by_count), PartitionAddition(2)) == TopicCapabilities(
        by_count
    )
    assert (
        narrow_capabilities(ALL_CAPABILITIES, PreferredLeaderElection((1,)))
        == narrow_capabilities(ALL_CAPABILITIES, SettingUpdate(MIN_IN_SYNC, "1"))
        == ALL_CAPABILITIES
    )


def test_a_topic_with_cluster_defaults_has_no_settings() -> None:
    (action,) = plan_probe_topic(
        (HomeBroker(1, None), HomeBroker(2, None)),
        frozenset({1}),
        None,
        TopicCapabilities(ReplicaPlacement.CLUSTER_DEFAULT),
    )
    assert action == TopicCreation(2, None)
    assert action.settings == {}


def test_a_new_topic_on_three_brokers_in_three_racks() -> None:
    homes = (HomeBroker(1, "a"), HomeBroker(2, "b"), HomeBroker(3, "c"))
    created = TopicCreation(3, 3, ((1, 2, 3), (2, 3, 1), (3, 1, 2)))
    assert plan_probe_topic(homes, frozenset({1, 2, 3}), None) == (created,)
    assert str(created) == "create fleetgauge.probe with 3 partitions on 1,2,3; 2,3,1; 3,1,2"


def test_a_broker_in_an_unused_rack_is_preferred_to_the_next_id() -> None:
    homes = (HomeBroker(1, "a"), HomeBroker(2, "a"), HomeBroker(3, "b"), HomeBroker(4, "c"))
    assert planned_replicas(Situation(homes, frozenset(), None))[0] == (1, 3, 4)


def test_a_new_broker_gets_a_partition_and_becomes_the_third_replica_of_the_others() -> None:
    homes = (HomeBroker(1, "a"), HomeBroker(2, "b"), HomeBroker(3, "c"))
    situation = all_responding(homes, {0: in_sync_partition(1, 2), 1: in_sync_partition(2, 1)})
    assert plan_actions(situation) == (
        PartitionAddition(3, ((3, 1, 2),)),
        ReplicaReassignment(((0, (1, 2, 3)), (1, (2, 1, 3)))),
    )
    assert plan_actions(apply_plan(situation)) == (SettingUpdate(MIN_IN_SYNC, "2"),)


def test_the_partition_of_a_replaced_broker_becomes_its_successors_home() -> None:
    homes = (HomeBroker(1, None), HomeBroker(2, None), HomeBroker(4, None))
    situation = all_responding(
        homes,
        {
            0: in_sync_partition(1, 2, 3),
            1: in_sync_partition(2, 3, 1),
            2: PartitionMetadata(1, (3, 1, 2), frozenset({1, 2})),
        },
        2,
    )
    assert plan_actions(situation) == (ReplicaReassignment(((0, (1, 2, 4)), (1, (2, 1, 4)), (2, (4, 1, 2)))),)


def test_replicas_on_an_unregistered_broker_are_replaced() -> None:
    homes = (HomeBroker(1, None), HomeBroker(2, None), HomeBroker(3, None))
    topic = {
        0: in_sync_partition(1, 2, 3),
        1: in_sync_partition(2, 3, 4),
        2: in_sync_partition(3, 4, 1),
        3: PartitionMetadata(1, (4, 1, 2), frozenset({1, 2})),
    }
    situation = all_responding(homes, topic, 2)
    assert planned_moves(situation) == {1: (2, 3, 1), 2: (3, 1, 2), 3: (1, 2, 3)}


def test_a_partition_reassigned_by_an_administrator_is_reassigned_back() -> None:
    homes = (HomeBroker(1, None), HomeBroker(2, None), HomeBroker(3, None))
    situation = all_responding(
        homes,
        {0: in_sync_partition(2, 3, 1), 1: in_sync_partition(2, 3, 1), 2: in_sync_partition(3, 1, 2)},
        2,
    )
    assert plan_actions(situation) == (ReplicaReassignment(((1, (1, 2, 3)),)),)
    assert str(plan_actions(situation)[0]) == "reassign partition 1 to 1,2,3"


def test_a_broker_that_is_down_when_the_topic_is_created_gets_its_partition() -> None:
    homes = (HomeBroker(1, "a"), HomeBroker(2, "b"), HomeBroker(3, "c"))
    assert plan_probe_topic(homes, frozenset({1}), None) == plan_probe_topic(
        homes, frozenset({1, 2, 3}), None
    )


def test_without_registered_brokers_there_are_no_actions() -> None:
    assert plan_probe_topic((), frozenset(), None) == ()
    assert (
        plan_probe_topic((), frozenset(), ProbeTopicState({0: PartitionMetadata(None, (1,), frozenset())}))
        == ()
    )


def test_the_home_of_a_broker_is_its_lowest_partition() -> None:
    partition = PartitionMetadata(1, (1, 2), frozenset({1, 2}))
    assert map_home_partitions({3: partition, 1: partition, 2: PartitionMetadata(None, (), frozenset())}) == {
        1: 1
    }
