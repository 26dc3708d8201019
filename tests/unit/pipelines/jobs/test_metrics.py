import math
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest
from prometheus_client import CollectorRegistry

from fleetgauge_pipelines.jobs.batch import BatchResult
from fleetgauge_pipelines.jobs.bronze import IngestResult
from fleetgauge_pipelines.jobs.metrics import StreamMetrics
from fleetgauge_pipelines.quality.gate import QualityVerdict
from tests.exposition import samples_of

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
BATCH = BatchResult(
    IngestResult(received=17, stored=12, replayed=3, quarantined=2, touched={}),
    silver_rows_changed=24,
    gold_rows_changed=5,
    released=0,
    verdicts=(QualityVerdict("in_bounds(a)", True, "{}"), QualityVerdict("in_bounds(b)", False, "{}")),
    seconds=4.2,
)


class ScrapedMetrics:
    """Metrics and the samples that Prometheus scrapes."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.metrics = StreamMetrics(self._registry)

    def samples(self, name: str) -> dict[tuple[str, ...], float]:
        return samples_of(self._registry, name)


@pytest.fixture
def scraped() -> ScrapedMetrics:
    return ScrapedMetrics()


def test_before_the_first_batch_counters_are_zero_and_the_timestamp_is_nan(scraped: ScrapedMetrics) -> None:
    assert scraped.samples("fleetgauge_records_total") == {
        ("stored",): 0,
        ("replayed",): 0,
        ("quarantined",): 0,
    }
    assert scraped.samples("fleetgauge_rows_changed_total") == {("silver",): 0, ("gold",): 0}
    assert scraped.samples("fleetgauge_batch_duration_seconds_count") == {(): 0}
    assert math.isnan(scraped.samples("fleetgauge_batch_timestamp_seconds")[()])


def test_counters_add_up_over_batches_and_the_last_end_is_exported(scraped: ScrapedMetrics) -> None:
    scraped.metrics.record_batch(BATCH, NOON)
    scraped.metrics.record_batch(replace(BATCH, gold_rows_changed=0), NOON + timedelta(seconds=30))
    assert scraped.samples("fleetgauge_records_total") == {
        ("stored",): 24,
        ("replayed",): 6,
        ("quarantined",): 4,
    }
    assert scraped.samples("fleetgauge_rows_changed_total") == {("silver",): 48, ("gold",): 5}
    assert scraped.samples("fleetgauge_batch_timestamp_seconds") == {(): NOON.timestamp() + 30}


def test_durations_fall_into_buckets_of_one_second_to_five_minutes(scraped: ScrapedMetrics) -> None:
    for seconds in (0.4, 4.2, 30, 31, 400):
        scraped.metrics.record_batch(replace(BATCH, seconds=seconds), NOON)
    buckets = scraped.samples("fleetgauge_batch_duration_seconds_bucket")
    assert list(buckets.values()) == [1, 1, 2, 2, 2, 3, 4, 4, 4, 5]
    assert [float(bound) for (bound,) in buckets] == [1, 2, 5, 10, 20, 30, 60, 120, 300, math.inf]
    assert scraped.samples("fleetgauge_batch_duration_seconds_sum") == {(): pytest.approx(465.6)}


def test_failed_expectations_are_counted_by_batch(scraped: ScrapedMetrics) -> None:
    scraped.metrics.record_batch(BATCH, NOON)
    scraped.metrics.record_batch(BATCH, NOON)
    assert scraped.samples("fleetgauge_quality_failures_total") == {
        ("in_bounds(a)",): 0,
        ("in_bounds(b)",): 2,
    }


def test_the_gauge_has_the_weeks_held_back_in_the_last_batch(scraped: ScrapedMetrics) -> None:
    assert scraped.samples("fleetgauge_weeks_held_back") == {(): 0}
    scraped.metrics.record_batch(replace(BATCH, weeks_held_back=(date(2026, 2, 23), date(2026, 3, 2))), NOON)
    assert scraped.samples("fleetgauge_weeks_held_back") == {(): 2}
    scraped.metrics.record_batch(BATCH, NOON)
    assert scraped.samples("fleetgauge_weeks_held_back") == {(): 0}
