"""The telemetry cluster's topics, made by whoever runs first."""

from fleetgauge_core.fleet import Telemetry
from fleetgauge_core.fleet.model import StateTopic, Topic
from fleetgauge_core.kafka.admin import Admin, TopicSpec


def ensure_topics(telemetry: Telemetry) -> None:
    """Make the topics that are missing. Raises KafkaUnavailableError where nobody answers."""
    admin = Admin(telemetry.access, timeout_s=10)
    admin.start()
    for spec in telemetry_specs(telemetry, len(admin.brokers())):
        if admin.topic(spec.name) is None:
            admin.create(spec)


def ensure_state_topic(telemetry: Telemetry, topic: StateTopic) -> None:
    """Make it if it is missing. Raises KafkaUnavailableError."""
    admin = Admin(telemetry.access, timeout_s=10)
    admin.start()
    if admin.topic(topic.name) is None:
        copies = min(3, len(admin.brokers()))
        settings = {"cleanup.policy": "compact", "min.insync.replicas": _min_in_sync(copies)}
        admin.create(TopicSpec(topic.name, settings, 1, copies))


def telemetry_specs(telemetry: Telemetry, brokers: int) -> tuple[TopicSpec, ...]:
    """The three topics as they are made in a cluster of so many brokers."""
    topics = telemetry.topics
    return tuple(
        _spec(topic, min(3, brokers))
        for topic in (topics.probe_minutes, topics.probe_pulse, topics.health_events)
    )


def _spec(topic: Topic, copies: int) -> TopicSpec:
    retention_ms = int(topic.retention_hours * 3600 * 1000)
    settings = {"retention.ms": str(retention_ms), "min.insync.replicas": _min_in_sync(copies)}
    return TopicSpec(topic.name, settings, topic.partitions, copies)


def _min_in_sync(copies: int) -> str:
    return str(max(1, copies - 1))
