"""What the stream's /metrics tells. Names and labels are a promise: docs/operations.md lists them."""

from datetime import datetime
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

if TYPE_CHECKING:
    from fleetgauge_pipelines.jobs.batch import Outcome

_DURATIONS_S = (1, 2, 5, 10, 20, 30, 60, 120, 300)
_FATES = ("stored", "replayed", "quarantined")
_LEVELS = ("silver", "gold")


class StreamMetrics:
    """Takes the outcomes of batches and keeps the registry up to them."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._duration = Histogram(
            "fleetgauge_batch_duration_seconds",
            "What a batch took, from its records to its verdicts.",
            registry=registry,
            buckets=_DURATIONS_S,
        )
        self._ended = Gauge(
            "fleetgauge_batch_timestamp_seconds",
            "When the last batch ended; NaN before the first.",
            registry=registry,
        )
        # Not 1970: a rule on its age must not fire before there was a batch.
        self._ended.set(float("nan"))
        self._records = Counter(
            "fleetgauge_records_total", "What became of the records.", ("fate",), registry=registry
        )
        self._rows = Counter(
            "fleetgauge_rows_changed_total", "Rows added, changed or removed.", ("level",), registry=registry
        )
        self._failures = Counter(
            "fleetgauge_quality_failures_total",
            "Batches in which an expectation did not hold.",
            ("expectation",),
            registry=registry,
        )
        self._held_back = Gauge(
            "fleetgauge_weeks_held_back",
            "Weeks that broke an expectation in the last batch and stay as they were.",
            registry=registry,
        )
        # There from the start: of a counter that appears with its first event, nobody sees that event.
        for fate in _FATES:
            self._records.labels(fate)
        for level in _LEVELS:
            self._rows.labels(level)

    def batch(self, outcome: "Outcome", ended_at: datetime) -> None:
        """A batch ended."""
        self._duration.observe(outcome.seconds)
        self._ended.set(ended_at.timestamp())
        for fate in _FATES:
            self._records.labels(fate).inc(getattr(outcome.ingested, fate))
        self._rows.labels("silver").inc(outcome.silver_rows_changed)
        self._rows.labels("gold").inc(outcome.gold_rows_changed)
        for verdict in outcome.verdicts:
            self._failures.labels(verdict.expectation).inc(not verdict.success)
        self._held_back.set(len(outcome.weeks_held_back))
