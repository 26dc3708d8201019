"""Restarting a broker: so that it works again, or so that it is kept out of sync while it goes on copying.

Motivation: a broker that is in sync holds up every producer with acks=all, and Kafka has no call to take
one out. A throttle alone cannot: whoever is in sync is exempt from it (KIP-73).

Approach: what it follows is throttled first, and then it is restarted. Restarted it is behind, and as long as
more comes in than it may copy, it stays behind; freed, it catches up and is in sync again.
"""

from collections import defaultdict

from fleetgauge_core.kafka import ClusterMetadata


def throttles(layout: ClusterMetadata, broker_id: int) -> dict[str, str]:
    """By topic, its replicas as ``follower.replication.throttled.replicas`` names them: 0:2,3:2."""
    found: dict[str, list[int]] = defaultdict(list)
    for place in layout.replicated_on(broker_id):
        found[place.topic].append(place.partition)
    return {
        topic: ",".join(f"{partition}:{broker_id}" for partition in sorted(partitions))
        for topic, partitions in found.items()
    }


def not_back(layout: ClusterMetadata, broker_id: int) -> str:
    """What is still to come; nothing once it is back and in sync with something, so that its disk works."""
    if _is_away(layout, broker_id):
        return f"broker {broker_id} is not back"
    replicas = layout.replicated_on(broker_id)
    if replicas and not any(broker_id in one.in_sync for one in replicas.values()):
        return f"broker {broker_id} is back and behind in all its {len(replicas)} partitions"
    return ""


def not_quarantined(layout: ClusterMetadata, broker_id: int) -> str:
    """What is still to come; nothing once it is back and out of sync with something."""
    if _is_away(layout, broker_id):
        return f"broker {broker_id} is not back"
    if all(broker_id in one.in_sync for one in layout.replicated_on(broker_id).values()):
        return f"broker {broker_id} is in sync with everything: too little comes in to keep it out"
    return ""


def not_released(layout: ClusterMetadata, broker_id: int) -> str:
    """What is still to come; nothing once it is in sync with all."""
    replicas = layout.replicated_on(broker_id)
    behind = [place for place, one in replicas.items() if broker_id not in one.in_sync]
    return f"broker {broker_id} is behind in {len(behind)} of {len(replicas)} partitions" if behind else ""


def _is_away(layout: ClusterMetadata, broker_id: int) -> bool:
    known = layout.brokers.get(broker_id)
    return known is None or known.fenced
