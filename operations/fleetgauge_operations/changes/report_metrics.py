"""The metric of changes that other systems report."""

from prometheus_client import CollectorRegistry, Counter

from fleetgauge_core.runtime.posts import PostResponse


class ReportMetrics:
    """Counts the answers to reports."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._reports = Counter(
            "fleetgauge_change_reports",
            "Reports of changes by the status of their answer; of unknown sources, `source` is empty.",
            ("source", "status"),
            registry=registry,
        )

    def record_response(self, source: str, response: PostResponse) -> None:
        """Count an answer to a source."""
        self._reports.labels(source, str(int(response.status))).inc()
