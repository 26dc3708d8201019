"""A record that no agent measured, or that contradicts its cluster's others, moves no number of a week."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from fleetgauge_core.contract import PROBE_MINUTE
from fleetgauge_core.fleet import Fleet
from fleetgauge_core.lake.quarantine_view import QuarantineFilter
from fleetgauge_core.tables import BROKER_MINUTES, CLUSTER_WEEKS, PROBE_MINUTES, QUARANTINE
from fleetgauge_pipelines.jobs.batch import Pipeline
from fleetgauge_pipelines.jobs.quarantine import run_replay
from tests.spark.agreement import assert_tables_equal
from tests.spark.broken import Record, good_record
from tests.spark.lakes import content, opened, raw_frame, rows

FLEET = Fleet.model_validate({"clusters": [{"id": "orders", "bootstrap": "orders:9092"}]})
MINUTES = 20
FIRST = datetime(2026, 4, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
CLOCK = FIRST + MINUTES * MINUTE
OLDEST = CLOCK - timedelta(days=35)
BROKERS = (1, 2)
FAST = tuple(range(2000, 2098))


def build_good_records() -> list[Record]:
    return [
        good_record(
            4 * number + 2 * place + (leg == "leader"), FIRST + number * MINUTE, "orders", broker, leg
        )
        | {"expected_brokers": BROKERS}
        for number in range(MINUTES)
        for place, broker in enumerate(BROKERS)
        for leg in ("client", "leader")
    ]


def build_record(sequence: int, **changes: Any) -> Record:
    record = good_record(sequence, FIRST + 5 * MINUTE, "orders", 2) | {"expected_brokers": BROKERS}
    return record | {"run_id": "another run"} | changes


class Story:
    """Twenty good minutes, a batch of records that nobody can have measured, and what came of them."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder
        self.good = build_good_records()
        self.lake, self.pipeline = opened(spark, folder, FLEET)
        self.sent = 0
        self.process(self.good)
        self.weeks = content(folder, CLUSTER_WEEKS)

    def process(self, records: list[Record]) -> None:
        values = [PROBE_MINUTE.encode(record) for record in records]
        frame = raw_frame(self.spark, values, self.sent)
        self.sent += len(values)
        self.pipeline.process(frame, f"batch/{self.sent}", CLOCK, OLDEST)

    def read_reasons(self) -> list[str]:
        in_order = sorted(rows(self.folder, QUARANTINE), key=lambda row: int(row["source"].split("/")[-1]))
        return [row["reason"] for row in in_order]


@pytest.fixture(scope="module")
def story(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Story:
    return Story(spark, tmp_path_factory.mktemp("implausible") / "lake")


def test_implausible_records_are_quarantined_and_move_no_week(story: Story) -> None:
    story.process(
        [
            build_record(0, attempted=2_000_000_000),
            build_record(1, e2e_us=(*FAST[:96], 2_147_000_000, 2_147_000_000)),
            build_record(2, expected_brokers=tuple(range(1, 9000))),
            build_record(3, expected_brokers=tuple(range(1, 100))),
            build_record(4, kafka_cluster_uuid="uuid-of-payments"),
        ]
    )
    reasons = ["implausible"] * 3 + ["unconfirmed_brokers", "other_kafka_cluster"]
    assert story.read_reasons() == reasons
    details = {row["reason"]: row["detail"] for row in rows(story.folder, QUARANTINE)}
    assert details["unconfirmed_brokers"] == "names 97 brokers that no other record names, at most 8"
    assert (
        details["other_kafka_cluster"]
        == "kafka_cluster_uuid is uuid-of-payments, that of orders is uuid-of-orders"
    )
    assert content(story.folder, CLUSTER_WEEKS) == story.weeks


def test_a_new_pipeline_knows_the_cluster_from_bronze(story: Story) -> None:
    """Its first batch has nothing but records of the wrong cluster."""
    quarantined = len(story.read_reasons())
    story.pipeline = Pipeline(story.spark, story.lake, FLEET)
    story.pipeline.open()
    story.process([build_record(10 + n, kafka_cluster_uuid="uuid-of-payments") for n in range(3)])
    assert story.read_reasons()[quarantined:] == ["other_kafka_cluster"] * 3
    assert content(story.folder, CLUSTER_WEEKS) == story.weeks


def test_a_late_lone_record_is_stored_and_counts_once_another_is_near(story: Story) -> None:
    early = FIRST - timedelta(hours=30)
    story.process([build_record(20, minute=early)])
    assert len(rows(story.folder, PROBE_MINUTES)) == len(story.good) + 1
    assert content(story.folder, CLUSTER_WEEKS) == story.weeks
    assert min(row["minute"] for row in rows(story.folder, BROKER_MINUTES)) == FIRST
    companion = build_record(21, minute=early + MINUTE)
    story.process([companion])
    late = [build_record(20, minute=early), companion]
    assert_tables_equal(story.folder, [*story.good, *late], FLEET, CLOCK)


def test_a_person_can_accept_unlikely_records(story: Story) -> None:
    def replay(accepts_unlikely: bool) -> int:
        selection = QuarantineFilter("other_kafka_cluster", None, None)
        outcome = run_replay(story.spark, story.lake, FLEET, selection, CLOCK, accepts_unlikely)
        assert outcome is not None
        return outcome.released

    stored = len(rows(story.folder, PROBE_MINUTES))
    assert replay(accepts_unlikely=False) == 0
    assert replay(accepts_unlikely=True) == 4
    assert len(rows(story.folder, PROBE_MINUTES)) == stored + 4
    assert set(story.read_reasons()) == {"implausible", "unconfirmed_brokers"}


def test_a_cluster_that_was_set_up_anew_is_believed_after_two_minutes(
    spark: SparkSession, tmp_path: Path
) -> None:
    good = build_good_records()
    anew = [
        record | {"kafka_cluster_uuid": "new", "run_id": "new", "minute": record["minute"] + 20 * MINUTE}
        for record in good
    ]
    _, pipeline = opened(spark, tmp_path / "lake", FLEET)
    values = [PROBE_MINUTE.encode(record) for record in (*good, *anew)]
    pipeline.process(raw_frame(spark, values), "batch/0", CLOCK + 20 * MINUTE, OLDEST)
    believed = {row["minute"] for row in rows(tmp_path / "lake", PROBE_MINUTES) if row["run_id"] == "new"}
    assert believed == {FIRST + number * MINUTE for number in range(22, 40)}
    refused = {json.dumps(row["reason"]) for row in rows(tmp_path / "lake", QUARANTINE)}
    assert refused == {'"other_kafka_cluster"'}
