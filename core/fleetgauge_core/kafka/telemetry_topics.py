"""The topics of the telemetry cluster, created by the first process that needs them."""

from collections.abc import Sequence
from functools import partial

from fleetgauge_core.fleet import StateTopic, Telemetry, Topic
from fleetgauge_core.kafka.cluster_admin import TopicSpec
from fleetgauge_core.kafka.topic_keeper import TopicKeeper
from fleetgauge_core.metadata import build_log_settings, build_state_settings

_MAX_REPLICAS = 3
_HOUR_MS = 3_600_000


def ensure_telemetry_topics(telemetry: Telemetry) -> None:
    """Create the missing ones of the three record topics, and correct the settings of the others.

    Raises: KafkaUnavailableError.
    """
    keep_telemetry_topics(telemetry).ensure()


def ensure_state_topic(telemetry: Telemetry, topic: StateTopic) -> None:
    """Create a compacted topic with one partition if it is missing. Raises: KafkaUnavailableError."""
    TopicKeeper(telemetry.access, lambda brokers: (build_state_topic_spec(topic, brokers),)).ensure()


def keep_changes_topic(telemetry: Telemetry) -> TopicKeeper:
    """Return a keeper of the topic of changes, for those who write it."""
    topic = telemetry.topics.changes
    return TopicKeeper(
        telemetry.access,
        lambda brokers: (build_log_topic_spec(topic.name, topic.partitions, _retention_ms(topic), brokers),),
    )


def keep_telemetry_topics(telemetry: Telemetry, *state_topics: StateTopic) -> TopicKeeper:
    """Return a keeper of the three record topics, and of state topics."""
    return TopicKeeper(telemetry.access, partial(_build_specs, telemetry, state_topics))


def build_telemetry_topic_specs(telemetry: Telemetry, brokers: int) -> tuple[TopicSpec, ...]:
    """Return the specifications of the three record topics for a cluster of so many brokers."""
    topics = telemetry.topics
    return tuple(
        build_log_topic_spec(topic.name, topic.partitions, _retention_ms(topic), brokers)
        for topic in (topics.probe_minutes, topics.probe_pulse, topics.health_events)
    )


def build_log_topic_spec(name: str, partitions: int, retention_ms: int, brokers: int) -> TopicSpec:
    """Return the specification of a topic that deletes its records after ``retention_ms``."""
    replicas = _count_replicas(brokers)
    return TopicSpec(name, build_log_settings(retention_ms, replicas), partitions, replicas)


def build_state_topic_spec(topic: StateTopic, brokers: int) -> TopicSpec:
    """Return the specification of a compacted topic with one partition."""
    replicas = _count_replicas(brokers)
    return TopicSpec(topic.name, build_state_settings(replicas), 1, replicas)


def _build_specs(
    telemetry: Telemetry, state_topics: Sequence[StateTopic], brokers: int
) -> tuple[TopicSpec, ...]:
    states = tuple(build_state_topic_spec(topic, brokers) for topic in state_topics)
    return build_telemetry_topic_specs(telemetry, brokers) + states


def _count_replicas(brokers: int) -> int:
    return min(_MAX_REPLICAS, brokers)


def _retention_ms(topic: Topic) -> int:
    return int(topic.retention_hours * _HOUR_MS)
