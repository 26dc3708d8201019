"""Tells people of changes of topics: a line in the log, and two counters."""

import logging
from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter

from fleetgauge_core.metadata import TopicChange, TopicChangeKind, describe_change

_log = logging.getLogger("fleetgauge.kafka")


#: Called with a cluster, a topic and its change.
ReportTopicChange = Callable[[str, str, TopicChange], None]


def log_topic_change(cluster: str, topic: str, change: TopicChange) -> None:
    """Log one change of a topic."""
    level = logging.INFO if change.kind is TopicChangeKind.PARTITIONS_ADDED else logging.WARNING
    _log.log(level, "%s: topic %s %s", cluster, topic, describe_change(change))


class TopicChangeReporter:
    """Logs and counts the changes of the topics that a process reads. May be used by any thread."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._changes = Counter(
            "fleetgauge_topic_changes_total",
            "Topics that were deleted, recreated, or got more partitions, and logs that were truncated or of"
            " which records expired unread.",
            ("cluster", "topic", "change"),
            registry=registry,
        )
        self._lost = Counter(
            "fleetgauge_topic_records_lost_total",
            "Records of a topic that were not read before they were gone: their exact number, or with"
            ' count="at_least" a lower bound.',
            ("cluster", "topic", "count"),
            registry=registry,
        )

    def report(self, cluster: str, topic: str, change: TopicChange) -> None:
        """Log and count one change."""
        self._changes.labels(cluster, topic, change.kind).inc()
        count = "exact" if change.is_exact else "at_least"
        self._lost.labels(cluster, topic, count).inc(change.lost_records)
        log_topic_change(cluster, topic, change)

    def remove_cluster(self, cluster: str) -> None:
        """Remove all series of a cluster whose topics are no longer read."""
        for counter in (self._changes, self._lost):
            counter.remove_by_labels({"cluster": cluster})
