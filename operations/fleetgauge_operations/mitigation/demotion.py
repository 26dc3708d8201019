"""Taking leadership from a broker, and giving it back: which orders of replicas that takes.

Motivation: an election alone does not last. The controller gives a partition back to its first replica
(KIP-460's preferred leader) within five minutes, so the broker must not be the first.

Approach: it is moved to the end of every list of replicas that it is in. The same brokers stay replicas, so
no data moves, and the reassignment ends at once. What the order was is kept, and comes back exactly, unless
somebody has changed it since.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fleetgauge_core.kafka import ClusterMetadata, PartitionMetadata, TopicPartition
from fleetgauge_operations.mitigation.case import Order


def demoted(layout: ClusterMetadata, broker_id: int) -> dict[TopicPartition, Order]:
    """The orders in which it is last, of all that it has a replica of; others stay in theirs, if in sync."""
    orders = {
        place: Order(one.replicas, _last(one, broker_id))
        for place, one in layout.replicated_on(broker_id).items()
    }
    return {place: order for place, order in orders.items() if order.before != order.after}


def _last(one: PartitionMetadata, broker_id: int) -> tuple[int, ...]:
    # Who is not in sync could not be elected, and would leave the broker in its place.
    others = sorted((b for b in one.replicas if b != broker_id), key=lambda b: b not in one.in_sync)
    return (*others, broker_id)


@dataclass(frozen=True, slots=True)
class Restoration:
    """What undoing a demotion takes: orders to put back, and those that it leaves, with the reason."""

    orders: Mapping[TopicPartition, tuple[int, ...]]
    kept: Mapping[TopicPartition, str]

    def led_by(self, broker_id: int) -> Sequence[TopicPartition]:
        """What the broker is to lead again."""
        return sorted(place for place, replicas in self.orders.items() if replicas[0] == broker_id)

    def lots(self, broker_id: int, most: int) -> Sequence["Restoration"]:
        """Parts of it, at most so many for the broker to lead in each; what others lead is in the first."""
        to_lead = self.led_by(broker_id)
        lots = [set(to_lead[at : at + most]) for at in range(0, len(to_lead), most)] or [set()]
        lots[0] |= self.orders.keys() - set(to_lead)
        return [Restoration({place: self.orders[place] for place in sorted(lot)}, {}) for lot in lots]


def restored(layout: ClusterMetadata, orders: Mapping[TopicPartition, Order]) -> Restoration:
    """Each as it was before, where it is as the demotion left it."""
    back: dict[TopicPartition, tuple[int, ...]] = {}
    kept: dict[TopicPartition, str] = {}
    for place, order in orders.items():
        now = layout.partitions.get(place)
        if now is None:
            kept[place] = "is no more"
        elif now.replicas not in order:
            kept[place] = f"was changed to {', '.join(map(str, now.replicas))} since"
        else:
            back[place] = order.before
    return Restoration(back, kept)
