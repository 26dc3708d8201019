"""Changes of topics: created, deleted, created anew, or with more partitions."""

from collections.abc import Iterator

from fleetgauge_core.metadata import ObservedTopic
from fleetgauge_core.tables import ChangeKind
from fleetgauge_operations.changes.plan.known_parts import KnownParts
from fleetgauge_operations.changes.plan.observed_change import ObservedChange


def compare_topics(before: KnownParts, after: KnownParts) -> Iterator[ObservedChange]:
    """Yield the topics that were created, deleted or created anew, or have more partitions."""
    if not before.topics or not after.topics or before.topics.at == after.topics.at:
        return
    earlier, later = before.topics.value, after.topics.value
    starts, ends = before.topics.began_at, after.topics.at
    for name in sorted(later.keys() - earlier.keys()):
        yield ObservedChange(ChangeKind.TOPIC_CREATED, starts, ends, topic=name, after=_describe(later[name]))
    for name in sorted(earlier.keys() - later.keys()):
        yield ObservedChange(
            ChangeKind.TOPIC_DELETED, starts, ends, topic=name, before=_describe(earlier[name])
        )
    in_both = [name for name in sorted(earlier.keys() & later.keys()) if earlier[name] != later[name]]
    for name in in_both:
        if earlier[name].topic_id != later[name].topic_id:
            yield ObservedChange(
                ChangeKind.TOPIC_RECREATED,
                starts,
                ends,
                topic=name,
                before=_describe(earlier[name]),
                after=_describe(later[name]),
            )
        elif len(later[name].partitions) > len(earlier[name].partitions):
            yield ObservedChange(
                ChangeKind.PARTITIONS_ADDED,
                starts,
                ends,
                topic=name,
                before={"partitions": len(earlier[name].partitions)},
                after={"partitions": len(later[name].partitions)},
            )


def count_replicas(topic: ObservedTopic) -> list[int]:
    """Return the replication factors of a topic's partitions, each once."""
    return sorted({len(partition.replicas) for partition in topic.partitions.values()})


def _describe(topic: ObservedTopic) -> dict[str, object]:
    return {
        "topic_id": topic.topic_id,
        "partitions": len(topic.partitions),
        "replication_factor": count_replicas(topic),
    }
