"""Plans of a demotion and of its undo, for random metadata too."""

from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_core.metadata import ClusterMetadata, PartitionMetadata, TopicPartition
from fleetgauge_operations.mitigation.plan.demotion import ReplicaOrder, plan_demotion, plan_restoration
from tests.unit.operations.mitigation.simulated_cluster import build_broker, build_metadata, build_partition

BROKER_IDS = range(1, 6)
FIRST = TopicPartition("t", 0)
SECOND = TopicPartition("t", 1)
THIRD = TopicPartition("t", 2)


@st.composite
def random_metadata(draw: st.DrawFn) -> ClusterMetadata:
    """Return up to eight partitions with one to five replicas each, of which any may be in sync."""
    partitions: dict[TopicPartition, PartitionMetadata] = {}
    for number in range(draw(st.integers(0, 8))):
        replicas = tuple(draw(st.permutations(BROKER_IDS))[: draw(st.integers(1, 5))])
        in_sync = draw(st.frozensets(st.sampled_from(replicas), min_size=1))
        leader = draw(st.sampled_from(sorted(in_sync)))
        partitions[TopicPartition("t", number)] = PartitionMetadata(leader, replicas, in_sync)
    return build_metadata(map(build_broker, BROKER_IDS), partitions)


def test_a_demoted_broker_becomes_the_last_replica_of_all_its_partitions() -> None:
    metadata = build_metadata(partitions={FIRST: build_partition(2, 3, 1), SECOND: build_partition(1, 2, 3)})
    assert plan_demotion(metadata, 2) == {
        FIRST: ReplicaOrder((2, 3, 1), (3, 1, 2)),
        SECOND: ReplicaOrder((1, 2, 3), (1, 3, 2)),
    }


def test_in_sync_replicas_come_before_replicas_that_cannot_be_elected() -> None:
    metadata = build_metadata(partitions={FIRST: build_partition(2, 3, 1, out_of_sync=(3,))})
    assert plan_demotion(metadata, 2)[FIRST].after == (1, 3, 2)


def test_a_partition_whose_last_replica_is_the_broker_is_not_reordered() -> None:
    metadata = build_metadata(partitions={FIRST: build_partition(3, 1, 2)})
    assert plan_demotion(metadata, 2) == {}


@given(random_metadata(), st.sampled_from(BROKER_IDS))
def test_a_demotion_keeps_the_set_of_replicas_and_the_first_one_can_lead(
    before: ClusterMetadata, broker_id: int
) -> None:
    for partition, order in plan_demotion(before, broker_id).items():
        metadata = before.partitions[partition]
        assert order.before == metadata.replicas
        assert sorted(order.after) == sorted(metadata.replicas)
        assert order.after[-1] == broker_id
        if metadata.in_sync - {broker_id}:
            assert order.after[0] in metadata.in_sync - {broker_id}


@given(random_metadata(), st.sampled_from(BROKER_IDS))
def test_a_restoration_restores_every_order_exactly(before: ClusterMetadata, broker_id: int) -> None:
    orders = plan_demotion(before, broker_id)
    demoted = {
        partition: PartitionMetadata(None, order.after, frozenset()) for partition, order in orders.items()
    }
    restoration = plan_restoration(build_metadata(map(build_broker, BROKER_IDS), demoted), orders)
    assert restoration.orders == {partition: before.partitions[partition].replicas for partition in orders}
    assert not restoration.kept
    assert restoration.led_by(broker_id) == sorted(
        partition for partition in orders if before.partitions[partition].replicas[0] == broker_id
    )


@given(random_metadata(), st.sampled_from(BROKER_IDS), st.integers(1, 4))
def test_batches_cover_every_partition_once_and_none_exceeds_its_maximum_of_leaderships(
    before: ClusterMetadata, broker_id: int, max_led: int
) -> None:
    restoration = plan_restoration(before, plan_demotion(before, broker_id))
    to_lead = restoration.led_by(broker_id)
    batches = restoration.split_into_batches(broker_id, max_led)
    assert [partition for batch in batches for partition in batch.led_by(broker_id)] == to_lead
    assert sorted(partition for batch in batches for partition in batch.orders) == sorted(restoration.orders)
    assert all(
        batch.orders[partition] == restoration.orders[partition]
        for batch in batches
        for partition in batch.orders
    )
    assert all(len(batch.led_by(broker_id)) <= max_led for batch in batches)
    assert len(batches) == max(1, -(-len(to_lead) // max_led))


def test_a_restoration_leaves_reassigned_and_deleted_partitions_unchanged() -> None:
    orders = {partition: ReplicaOrder((2, 3, 1), (3, 1, 2)) for partition in (FIRST, SECOND, THIRD)}
    metadata = build_metadata(partitions={FIRST: build_partition(3, 1, 2), SECOND: build_partition(1, 3, 2)})
    restoration = plan_restoration(metadata, orders)
    assert restoration.orders == {FIRST: (2, 3, 1)}
    assert restoration.kept == {
        SECOND: "not restored, because its replicas were changed to 1, 3, 2",
        THIRD: "not restored, because it was deleted",
    }


def test_a_partition_that_was_not_reordered_yet_is_restored_as_well() -> None:
    """A demotion that was interrupted before it changed anything is undone by an election alone."""
    metadata = build_metadata(partitions={FIRST: build_partition(2, 3, 1)})
    restoration = plan_restoration(metadata, {FIRST: ReplicaOrder((2, 3, 1), (3, 1, 2))})
    assert restoration.orders == {FIRST: (2, 3, 1)}
