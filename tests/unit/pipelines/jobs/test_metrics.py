import math
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest
from prometheus_client import CollectorRegistry

from fleetgauge_pipelines.jobs.batch import Ingested, Outcome
from fleetgauge_pipelines.jobs.metrics import StreamMetrics
from fleetgauge_pipelines.quality.gate import Verdict
from tests.exposition import samples_of

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
BATCH = Outcome(
    Ingested(received=17, stored=12, replayed=3, quarantined=2, touched={}),
    silver_rows_changed=24,
    gold_rows_changed=5,
    released=0,
    verdicts=(Verdict("in_bounds(a)", True, "{}"), Verdict("in_bounds(b)", False, "{}")),
    seconds=4.2,
)


class Told:
    """Metrics and what a scraper reads of them."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.metrics = StreamMetrics(self._registry)

    def of(self, name: str) -> dict[tuple[str, ...], float]:
        return samples_of(self._registry, name)


@pytest.fixture
def told() -> Told:
    return Told()


def test_before_the_first_batch_counts_are_zero_and_no_batch_ended(told: Told) -> None:
    assert told.of("fleetgauge_records_total") == {("stored",): 0, ("replayed",): 0, ("quarantined",): 0}
    assert told.of("fleetgauge_rows_changed_total") == {("silver",): 0, ("gold",): 0}
    assert told.of("fleetgauge_batch_duration_seconds_count") == {(): 0}
    assert math.isnan(told.of("fleetgauge_batch_timestamp_seconds")[()])


def test_batches_add_up_and_the_last_ones_end_is_told(told: Told) -> None:
    told.metrics.batch(BATCH, NOON)
    told.metrics.batch(replace(BATCH, gold_rows_changed=0), NOON + timedelta(seconds=30))
    assert told.of("fleetgauge_records_total") == {("stored",): 24, ("replayed",): 6, ("quarantined",): 4}
    assert told.of("fleetgauge_rows_changed_total") == {("silver",): 48, ("gold",): 5}
    assert told.of("fleetgauge_batch_timestamp_seconds") == {(): NOON.timestamp() + 30}


def test_durations_fall_into_buckets_of_one_second_to_five_minutes(told: Told) -> None:
    for seconds in (0.4, 4.2, 30, 31, 400):
        told.metrics.batch(replace(BATCH, seconds=seconds), NOON)
    buckets = told.of("fleetgauge_batch_duration_seconds_bucket")
    assert list(buckets.values()) == [1, 1, 2, 2, 2, 3, 4, 4, 4, 5]
    assert [float(bound) for (bound,) in buckets] == [1, 2, 5, 10, 20, 30, 60, 120, 300, math.inf]
    assert told.of("fleetgauge_batch_duration_seconds_sum") == {(): pytest.approx(465.6)}


def test_an_expectation_counts_the_batches_in_which_it_did_not_hold(told: Told) -> None:
    told.metrics.batch(BATCH, NOON)
    told.metrics.batch(BATCH, NOON)
    assert told.of("fleetgauge_quality_failures_total") == {("in_bounds(a)",): 0, ("in_bounds(b)",): 2}


def test_weeks_that_are_held_back_are_those_of_the_last_batch(told: Told) -> None:
    assert told.of("fleetgauge_weeks_held_back") == {(): 0}
    told.metrics.batch(replace(BATCH, weeks_held_back=(date(2026, 2, 23), date(2026, 3, 2))), NOON)
    assert told.of("fleetgauge_weeks_held_back") == {(): 2}
    told.metrics.batch(BATCH, NOON)
    assert told.of("fleetgauge_weeks_held_back") == {(): 0}
