"""Plans of a demotion and of its undo: the new order of each partition's replicas.

Motivation: a leader election alone does not last, because the controller returns each partition to its
preferred leader, the first replica, within five minutes (leader.imbalance.check.interval.seconds).

Approach: the broker becomes the last replica of every partition that it replicates. The set of replicas
does not change, so no data is moved and the reassignment completes at once. The previous order is stored,
and is restored exactly unless an operator has changed it since. A partition of which no other replica is in
sync stays as it is: the broker remains in sync, so that its partitions are no worse off than before.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from fleetgauge_core.metadata import ClusterMetadata, PartitionMetadata, TopicPartition


class ReplicaOrder(NamedTuple):
    """The replicas of a partition before and after a demotion; the first one is the preferred leader."""

    before: tuple[int, ...]
    after: tuple[int, ...]


def encode_orders(orders: Mapping[TopicPartition, ReplicaOrder]) -> dict[str, Any]:
    """Return the plan of a demotion as it is stored with its case."""
    return {"orders": [[*partition, [*before], [*after]] for partition, (before, after) in orders.items()]}


def decode_orders(plan: Mapping[str, Any]) -> dict[TopicPartition, ReplicaOrder]:
    """Return the replica orders of a stored plan; none for another kind of action."""
    return {
        TopicPartition(topic, number): ReplicaOrder(tuple(before), tuple(after))
        for topic, number, before, after in plan.get("orders", ())
    }


def plan_demotion(metadata: ClusterMetadata, broker_id: int) -> dict[TopicPartition, ReplicaOrder]:
    """Return the orders with the broker as last replica, of all partitions in which it is not the last yet.

    The other replicas keep their order, except that those in sync come first. Partitions that no other
    replica could lead are left out.
    """
    orders = {
        partition: ReplicaOrder(replicated.replicas, _move_last(replicated, broker_id))
        for partition, replicated in metadata.replicated_on(broker_id).items()
        if _has_other_in_sync(replicated, broker_id)
    }
    return {partition: order for partition, order in orders.items() if order.before != order.after}


def find_led_by_need(metadata: ClusterMetadata, broker_id: int) -> Sequence[TopicPartition]:
    """Return the partitions that the broker leads and no other replica could lead, sorted."""
    led = metadata.led_by(broker_id)
    return sorted(
        partition for partition in led if not _has_other_in_sync(metadata.partitions[partition], broker_id)
    )


def find_electable(metadata: ClusterMetadata, broker_id: int) -> Sequence[TopicPartition]:
    """Return the partitions that the broker leads although another one is first, and could lead, sorted."""
    return sorted(
        partition
        for partition in metadata.led_by(broker_id).difference(find_led_by_need(metadata, broker_id))
        if metadata.partitions[partition].replicas[0] != broker_id
    )


def _has_other_in_sync(partition: PartitionMetadata, broker_id: int) -> bool:
    return bool(partition.in_sync - {broker_id})


def _move_last(partition: PartitionMetadata, broker_id: int) -> tuple[int, ...]:
    # A preferred leader that is not in sync is not elected, and the broker would remain the leader.
    remaining = sorted(
        (replica for replica in partition.replicas if replica != broker_id),
        key=lambda replica: replica not in partition.in_sync,
    )
    return (*remaining, broker_id)


@dataclass(frozen=True, slots=True)
class Restoration:
    """The undo of a demotion.

    ``orders`` are the replica lists to restore; ``kept`` is, by partition that is left unchanged, why.
    """

    orders: Mapping[TopicPartition, tuple[int, ...]]
    kept: Mapping[TopicPartition, str]

    def led_by(self, broker_id: int) -> Sequence[TopicPartition]:
        """Return the partitions whose preferred leader the broker becomes, sorted."""
        return sorted(partition for partition, replicas in self.orders.items() if replicas[0] == broker_id)

    def split_into_batches(self, broker_id: int, max_led: int) -> Sequence["Restoration"]:
        """Return batches, at least one, in each of which the broker is to lead at most so many partitions.

        The first batch includes all partitions that other brokers are to lead.
        """
        to_lead = self.led_by(broker_id)
        batches = [set(to_lead[start : start + max_led]) for start in range(0, len(to_lead), max_led)]
        batches = batches or [set()]
        batches[0] |= self.orders.keys() - set(to_lead)
        return [
            Restoration({partition: self.orders[partition] for partition in sorted(batch)}, {})
            for batch in batches
        ]


def plan_restoration(metadata: ClusterMetadata, orders: Mapping[TopicPartition, ReplicaOrder]) -> Restoration:
    """Return the undo of a demotion; partitions that were changed after it are left unchanged."""
    restored: dict[TopicPartition, tuple[int, ...]] = {}
    kept: dict[TopicPartition, str] = {}
    for partition, order in orders.items():
        present = metadata.partitions.get(partition)
        if present is None:
            kept[partition] = "not restored, because it was deleted"
        elif present.replicas not in order:
            replicas = ", ".join(map(str, present.replicas))
            kept[partition] = f"not restored, because its replicas were changed to {replicas}"
        elif unregistered := sorted(set(order.before) - metadata.brokers.keys()):
            # Kafka refuses a list with such a replica, and with it the whole request.
            brokers = ", ".join(map(str, unregistered))
            kept[partition] = f"not restored, because broker {brokers} is not registered any more"
        else:
            restored[partition] = order.before
    return Restoration(restored, kept)


def check_demoted(
    metadata: ClusterMetadata, broker_id: int, orders: Mapping[TopicPartition, ReplicaOrder]
) -> str:
    """Return why the demotion is not complete yet; an empty string if it is."""
    electable = find_electable(metadata, broker_id)
    if electable:
        return f"broker {broker_id} still leads {len(electable)} of its partitions"
    return _check_orders(metadata, {partition: order.after for partition, order in orders.items()})


def check_restored(
    metadata: ClusterMetadata, broker_id: int, orders: Mapping[TopicPartition, Sequence[int]]
) -> str:
    """Return why the leadership is not returned yet; an empty string if it is.

    What cannot be returned is no reason; see find_unreturned.
    """
    unreturned = find_unreturned(metadata, broker_id, orders)
    to_check = {partition: replicas for partition, replicas in orders.items() if partition not in unreturned}
    to_lead = [partition for partition, replicas in to_check.items() if replicas[0] == broker_id]
    missing = set(to_lead) - metadata.led_by(broker_id)
    if missing:
        return f"broker {broker_id} does not lead {len(missing)} of {len(to_lead)} partitions again"
    return _check_orders(metadata, to_check)


def find_unreturned(
    metadata: ClusterMetadata, broker_id: int, orders: Mapping[TopicPartition, Sequence[int]]
) -> Mapping[TopicPartition, str]:
    """Return the partitions that changed during the undo, or that the broker cannot lead, and why."""
    unreturned = {}
    for partition, replicas in orders.items():
        present = metadata.partitions.get(partition)
        if present is None:
            unreturned[partition] = "deleted during the undo"
        elif set(present.replicas) != set(replicas):
            unreturned[partition] = "reassigned during the undo"
        elif replicas[0] == broker_id and broker_id not in present.in_sync:
            unreturned[partition] = (
                f"not led by broker {broker_id} again until it has caught up there and Kafka balances leaders"
            )
    return unreturned


def _check_orders(metadata: ClusterMetadata, orders: Mapping[TopicPartition, Sequence[int]]) -> str:
    different = sum(
        _read_order(metadata, partition) != tuple(replicas) for partition, replicas in orders.items()
    )
    return f"{different} partitions have another order of replicas" if different else ""


def _read_order(metadata: ClusterMetadata, partition: TopicPartition) -> Sequence[int]:
    described = metadata.partitions.get(partition)
    return described.replicas if described else ()
