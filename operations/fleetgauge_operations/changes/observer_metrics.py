"""Prometheus metrics of `observe`, and what it says once. docs/operations/metrics.md lists the metrics."""

import logging
from collections.abc import Mapping
from datetime import datetime

from prometheus_client import CollectorRegistry, Counter, Gauge

_log = logging.getLogger("fleetgauge.observe")


class ObserverMetrics:
    """What the observers of all clusters tell of themselves. May be used by any thread."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._looked_at = Gauge(
            "fleetgauge_observe_look_timestamp_seconds",
            "When the cluster was last looked at for changes.",
            ("cluster",),
            registry=registry,
        )
        self._changes = Counter(
            "fleetgauge_observe_changes",
            "Records of changes that were seen.",
            ("cluster", "kind"),
            registry=registry,
        )
        self._unread = Gauge(
            "fleetgauge_observe_part_unread",
            "1 while a part of the cluster's state cannot be read, so that its changes are not seen.",
            ("cluster", "part"),
            registry=registry,
        )
        self._looked_at_ids: set[str] = set()
        self._failures: dict[str, dict[str, str]] = {}

    def record_look(self, cluster_id: str, at: datetime, failures: Mapping[str, str]) -> None:
        """Note a look at a cluster, and log which parts could not be read, once each."""
        self._looked_at_ids.add(cluster_id)
        self._looked_at.labels(cluster_id).set(at.timestamp())
        self._replace_failures(cluster_id, failures)

    def record_failure(self, cluster_id: str, reason: str) -> None:
        """Note that a cluster could not be looked at at all; what it may not read stays so."""
        self._replace_failures(cluster_id, {**self._failures.get(cluster_id, {}), "cluster": reason})

    def count_change(self, cluster_id: str, kind: str) -> None:
        """Count a record of a change."""
        self._changes.labels(cluster_id, kind).inc()

    def forget(self, cluster_id: str) -> None:
        """Drop the series of a cluster that is not observed any more."""
        self._replace_failures(cluster_id, {})
        self._failures.pop(cluster_id, None)
        if cluster_id in self._looked_at_ids:
            self._looked_at_ids.discard(cluster_id)
            self._looked_at.remove(cluster_id)

    def _replace_failures(self, cluster_id: str, failures: Mapping[str, str]) -> None:
        before = self._failures.get(cluster_id, {})
        for part, reason in failures.items():
            if before.get(part) != reason:
                _log.warning(
                    "cluster %s: %s cannot be read, so its changes are not seen: %s", cluster_id, part, reason
                )
            self._unread.labels(cluster_id, part).set(1)
        for part in before.keys() - failures.keys():
            _log.info("cluster %s: %s can be read", cluster_id, part)
            self._unread.remove(cluster_id, part)
        self._failures[cluster_id] = dict(failures)
