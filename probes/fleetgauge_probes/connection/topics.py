"""Check of whether Fleetgauge's topics can be created, or exist with the settings that it would use."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from fleetgauge_core.kafka import QueryFailure, TopicInspection, TopicMetadata
from fleetgauge_core.metadata import find_differences
from fleetgauge_probes.connection.check import ConnectionCheck, build_check, build_unknown_check


class _Difference(NamedTuple):
    """A difference between a topic and its specification, and how to remove it."""

    fact: str
    remedy: str


def check_topics(topics: Sequence[TopicInspection] | QueryFailure) -> ConnectionCheck:
    """Return a check that fails if a topic cannot be created or differs from its specification."""
    if isinstance(topics, QueryFailure):
        return build_unknown_check("topics", topics.reason)
    names_by_state: dict[str, list[str]] = {}
    remedies: list[str] = []
    for topic in topics:
        state, topic_remedies = _describe_state(topic)
        names_by_state.setdefault(state, []).append(topic.spec.name)
        remedies += topic_remedies
    return build_check(
        "topics", [f"{state}: {', '.join(names)}" for state, names in names_by_state.items()], remedies
    )


def _describe_state(topic: TopicInspection) -> tuple[str, list[str]]:
    """Return a topic's state in words, and remedies if it needs any."""
    if topic.metadata:
        differences = list(_list_differences(topic, topic.metadata))
        if differences:
            facts = ", ".join(difference.fact for difference in differences)
            return f"exists with other settings ({facts})", [difference.remedy for difference in differences]
        return "exists as specified", []
    if topic.is_hidden:
        return "not visible to this client", []
    if topic.rejection and not topic.rejection.is_unauthorized:
        problem = "cannot be created" if topic.is_absent else "cannot be described"
        fact = f"{problem} ({topic.rejection.error_name}: {topic.rejection.message})"
        return fact, ["change the cluster's configuration or policy so that it permits the topic"]
    return "does not exist yet, the agent creates it", []


def _list_differences(topic: TopicInspection, metadata: TopicMetadata) -> Iterator[_Difference]:
    name = topic.spec.name
    for difference in find_differences(topic.spec.settings, topic.settings):
        yield _Difference(
            str(difference),
            f"kafka-configs.sh --alter --topic {name} --add-config {difference.key}={difference.specified}",
        )
    replicas = min((len(partition.replicas) for partition in metadata.partitions.values()), default=0)
    assignment = topic.spec.assignment
    replication_factor = len(assignment[0]) if assignment else topic.spec.replication_factor
    if replicas < replication_factor:
        yield _Difference(
            f"replication factor {replicas} instead of {replication_factor}",
            f"if nothing else uses {name}, delete it: the agent creates it again",
        )
