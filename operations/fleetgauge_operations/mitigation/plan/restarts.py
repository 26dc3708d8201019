"""Restarts of a broker, plain or into quarantine, and how their result is verified.

Motivation: a slow broker in the ISR delays every producer with acks=all, and Kafka has no request that
removes a replica from the ISR. A throttle alone does not either, because in-sync replicas are exempt from it
(KIP-73).

Approach: replication to the broker is throttled before it is restarted. After the restart it lags, and it
stays out of the ISR while more is produced than the throttle lets it replicate. Once the throttle is removed,
it catches up and rejoins the ISR.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from fleetgauge_core.metadata import ClusterMetadata, TopicPartition


def plan_throttles(metadata: ClusterMetadata, broker_id: int) -> dict[str, str]:
    """Return ``follower.replication.throttled.replicas`` by topic for all replicas on a broker: 0:2,3:2."""
    numbers_by_topic: dict[str, list[int]] = defaultdict(list)
    for partition in metadata.replicated_on(broker_id):
        numbers_by_topic[partition.topic].append(partition.partition)
    return {
        topic: ",".join(f"{number}:{broker_id}" for number in sorted(numbers))
        for topic, numbers in numbers_by_topic.items()
    }


def encode_throttles(throttles: Mapping[str, str]) -> dict[str, Any]:
    """Return the plan of a quarantine as it is stored with its case."""
    return {"throttles": dict(throttles)}


def decode_throttles(plan: Mapping[str, Any]) -> dict[str, str]:
    """Return the throttled replicas by topic of a stored plan; none for another kind of action."""
    return dict(plan.get("throttles", {}))


def check_restarted(metadata: ClusterMetadata, broker_id: int) -> str:
    """Return why the restart is not complete yet; an empty string if it is.

    It is complete once the broker is registered, not fenced, and in sync in any partition: its disk works.
    """
    if _is_absent(metadata, broker_id):
        return f"broker {broker_id} has not returned"
    replicated = metadata.replicated_on(broker_id)
    if replicated and not any(broker_id in partition.in_sync for partition in replicated.values()):
        return f"broker {broker_id} has returned, but is out of sync in all its {len(replicated)} partitions"
    return ""


def check_quarantined(metadata: ClusterMetadata, broker_id: int) -> str:
    """Return why the quarantine is not in effect; an empty string if the broker is out of sync anywhere."""
    if _is_absent(metadata, broker_id):
        return f"broker {broker_id} has not returned"
    if all(broker_id in partition.in_sync for partition in metadata.replicated_on(broker_id).values()):
        return f"broker {broker_id} is in sync in all partitions: too little is produced to keep it out"
    return ""


def check_in_sync(metadata: ClusterMetadata, broker_id: int) -> str:
    """Return how many partitions of a broker are out of sync; an empty string if none is."""
    replicated = metadata.replicated_on(broker_id)
    behind = sum(broker_id not in partition.in_sync for partition in replicated.values())
    return f"broker {broker_id} is out of sync in {behind} of {len(replicated)} partitions" if behind else ""


def find_withheld(
    metadata: ClusterMetadata, broker_id: int, throttles: Mapping[str, str]
) -> Sequence[TopicPartition]:
    """Return the partitions under min.insync.replicas of which the throttles keep a replica out of sync."""
    return sorted(
        partition
        for partition, replicated in metadata.replicated_on(broker_id).items()
        if partition.topic in throttles
        and broker_id not in replicated.in_sync
        and len(replicated.in_sync) < metadata.min_in_sync.get(partition.topic, 1)
    )


def _is_absent(metadata: ClusterMetadata, broker_id: int) -> bool:
    broker = metadata.brokers.get(broker_id)
    return broker is None or broker.fenced
