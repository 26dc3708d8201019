from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_core.metadata import ClusterMetadata, PartitionMetadata, TopicPartition
from fleetgauge_operations.mitigation.case import ReplicaOrder
from fleetgauge_operations.mitigation.demotion import plan_demotion, plan_restoration
from tests.unit.operations.mitigation.simulated_cluster import broker, cluster_metadata, partition

BROKERS = range(1, 6)


@st.composite
def random_metadata(draw: st.DrawFn) -> ClusterMetadata:
    """Of up to eight partitions, each with one to five replicas of which any may be in sync."""
    partitions: dict[TopicPartition, PartitionMetadata] = {}
    for number in range(draw(st.integers(0, 8))):
        replicas = tuple(draw(st.permutations(BROKERS))[: draw(st.integers(1, 5))])
        in_sync = draw(st.frozensets(st.sampled_from(replicas), min_size=1))
        leader = draw(st.sampled_from(sorted(in_sync)))
        partitions[TopicPartition("t", number)] = PartitionMetadata(leader, replicas, in_sync)
    return cluster_metadata(map(broker, BROKERS), partitions)


def test_it_is_moved_last_wherever_it_is_a_replica() -> None:
    before = cluster_metadata(
        partitions={TopicPartition("t", 0): partition(2, 3, 1), TopicPartition("t", 1): partition(1, 2, 3)}
    )
    assert plan_demotion(before, 2) == {
        TopicPartition("t", 0): ReplicaOrder((2, 3, 1), (3, 1, 2)),
        TopicPartition("t", 1): ReplicaOrder((1, 2, 3), (1, 3, 2)),
    }


def test_who_could_not_be_elected_goes_behind_who_can() -> None:
    before = cluster_metadata(partitions={TopicPartition("t", 0): partition(2, 3, 1, out=(3,))})
    assert plan_demotion(before, 2)[TopicPartition("t", 0)].after == (1, 3, 2)


def test_what_it_is_last_in_already_is_left_alone() -> None:
    assert plan_demotion(cluster_metadata(partitions={TopicPartition("t", 0): partition(3, 1, 2)}), 2) == {}


@given(random_metadata(), st.sampled_from(BROKERS))
def test_no_replica_is_added_or_taken_and_the_first_can_lead(before: ClusterMetadata, broker_id: int) -> None:
    for place, order in plan_demotion(before, broker_id).items():
        one = before.partitions[place]
        assert order.before == one.replicas
        assert sorted(order.after) == sorted(one.replicas)
        assert order.after[-1] == broker_id
        if one.in_sync - {broker_id}:
            assert order.after[0] in one.in_sync - {broker_id}


@given(random_metadata(), st.sampled_from(BROKERS))
def test_it_comes_back_exactly(before: ClusterMetadata, broker_id: int) -> None:
    orders = plan_demotion(before, broker_id)
    after = {place: PartitionMetadata(None, order.after, frozenset()) for place, order in orders.items()}
    back = plan_restoration(cluster_metadata(partitions=after), orders)
    assert back.orders == {place: before.partitions[place].replicas for place in orders}
    assert not back.kept
    assert back.led_by(broker_id) == sorted(
        place for place in orders if before.partitions[place].replicas[0] == broker_id
    )


@given(random_metadata(), st.sampled_from(BROKERS), st.integers(1, 4))
def test_lots_are_all_of_it_once_and_none_has_more_to_lead(
    before: ClusterMetadata, broker_id: int, most: int
) -> None:
    back = plan_restoration(before, plan_demotion(before, broker_id))
    lots = back.split_into_batches(broker_id, most)
    assert [place for lot in lots for place in lot.led_by(broker_id)] == back.led_by(broker_id)
    assert sorted(place for lot in lots for place in lot.orders) == sorted(back.orders)
    assert all(lot.orders[place] == back.orders[place] for lot in lots for place in lot.orders)
    assert all(len(lot.led_by(broker_id)) <= most for lot in lots)
    assert len(lots) == max(1, -(-len(back.led_by(broker_id)) // most))


def test_what_somebody_changed_since_or_removed_stays_as_it_is() -> None:
    orders = {TopicPartition("t", number): ReplicaOrder((2, 3, 1), (3, 1, 2)) for number in range(3)}
    now = cluster_metadata(
        partitions={TopicPartition("t", 0): partition(3, 1, 2), TopicPartition("t", 1): partition(1, 3, 2)}
    )
    back = plan_restoration(now, orders)
    assert back.orders == {TopicPartition("t", 0): (2, 3, 1)}
    assert back.kept == {
        TopicPartition("t", 1): "not restored, because its replicas were changed to 1, 3, 2",
        TopicPartition("t", 2): "not restored, because it was deleted",
    }


def test_what_was_never_moved_needs_no_more_than_its_lead() -> None:
    """A demotion that broke off before it had changed anything."""
    place = TopicPartition("t", 0)
    back = plan_restoration(
        cluster_metadata(partitions={place: partition(2, 3, 1)}), {place: ReplicaOrder((2, 3, 1), (3, 1, 2))}
    )
    assert back.orders == {place: (2, 3, 1)}
