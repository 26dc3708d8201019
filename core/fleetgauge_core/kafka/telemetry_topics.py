"""The topics of the telemetry cluster, created by the first process that needs them."""

from fleetgauge_core.fleet import StateTopic, Telemetry, Topic
from fleetgauge_core.kafka.cluster_admin import ClusterAdmin, TopicSpec, compute_min_in_sync


def ensure_telemetry_topics(telemetry: Telemetry) -> None:
    """Create the missing ones of the three record topics. Raises: KafkaUnavailableError."""
    admin = ClusterAdmin(telemetry.access, timeout_s=10)
    admin.start()
    for spec in build_telemetry_topic_specs(telemetry, len(admin.list_broker_ids())):
        if admin.describe_topic(spec.name) is None:
            admin.create_topic(spec)


def ensure_state_topic(telemetry: Telemetry, topic: StateTopic) -> None:
    """Create a compacted topic with one partition if it is missing. Raises: KafkaUnavailableError."""
    admin = ClusterAdmin(telemetry.access, timeout_s=10)
    admin.start()
    if admin.describe_topic(topic.name) is None:
        replicas = min(3, len(admin.list_broker_ids()))
        settings = {"cleanup.policy": "compact", "min.insync.replicas": str(compute_min_in_sync(replicas))}
        admin.create_topic(TopicSpec(topic.name, settings, 1, replicas))


def build_telemetry_topic_specs(telemetry: Telemetry, brokers: int) -> tuple[TopicSpec, ...]:
    """Return the specifications of the three record topics for a cluster of so many brokers."""
    topics = telemetry.topics
    return tuple(
        _topic_spec(topic, min(3, brokers))
        for topic in (topics.probe_minutes, topics.probe_pulse, topics.health_events)
    )


def _topic_spec(topic: Topic, replicas: int) -> TopicSpec:
    retention_ms = int(topic.retention_hours * 3600 * 1000)
    settings = {"retention.ms": str(retention_ms), "min.insync.replicas": str(compute_min_in_sync(replicas))}
    return TopicSpec(topic.name, settings, topic.partitions, replicas)
