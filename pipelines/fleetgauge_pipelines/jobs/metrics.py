"""Prometheus metrics of the stream. Names and labels are stable: docs/operations/metrics.md lists them."""

from datetime import datetime
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

if TYPE_CHECKING:
    from fleetgauge_pipelines.jobs.batch import BatchResult

_DURATIONS_S = (1, 2, 5, 10, 20, 30, 60, 120, 300)
_FATES = ("stored", "replayed", "quarantined")
_LEVELS = ("silver", "gold")


class StreamMetrics:
    """The stream's counters and gauges, updated with the result of each batch."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._duration = Histogram(
            "fleetgauge_batch_duration_seconds",
            "Duration of a batch, from reading its records to the quality gate's verdicts.",
            registry=registry,
            buckets=_DURATIONS_S,
        )
        self._ended = Gauge(
            "fleetgauge_batch_timestamp_seconds",
            "Unix time at which the last batch ended; NaN before the first.",
            registry=registry,
        )
        # Not 0, which is 1970: an alert on the age of the last batch must not fire before the first batch.
        self._ended.set(float("nan"))
        self._records = Counter(
            "fleetgauge_records_total", "Records by what became of them.", ("fate",), registry=registry
        )
        self._rows = Counter(
            "fleetgauge_rows_changed_total", "Rows added, updated or deleted.", ("level",), registry=registry
        )
        self._failures = Counter(
            "fleetgauge_quality_failures_total",
            "Batches in which an expectation failed.",
            ("expectation",),
            registry=registry,
        )
        self._held_back = Gauge(
            "fleetgauge_weeks_held_back",
            "Weeks that failed an expectation in the last batch and keep their last good values.",
            registry=registry,
        )
        # Exported as 0 from the start: rate() misses the first event of a series that appears with it.
        for fate in _FATES:
            self._records.labels(fate)
        for level in _LEVELS:
            self._rows.labels(level)

    def record_batch(self, result: "BatchResult", ended_at: datetime) -> None:
        """Update every metric with the result of a batch."""
        self._duration.observe(result.seconds)
        self._ended.set(ended_at.timestamp())
        for fate in _FATES:
            self._records.labels(fate).inc(getattr(result.ingested, fate))
        self._rows.labels("silver").inc(result.silver_rows_changed)
        self._rows.labels("gold").inc(result.gold_rows_changed)
        for verdict in result.verdicts:
            self._failures.labels(verdict.expectation).inc(not verdict.success)
        self._held_back.set(len(result.weeks_held_back))
