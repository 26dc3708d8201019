"""Corrections, actions and health events reach silver and gold, also when they are written later."""

import shutil
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from fleetgauge_core.contract import PROBE_MINUTE
from fleetgauge_core.tables import (
    ACTIONS,
    BURN_CAUSES,
    CLUSTER_MINUTES,
    CLUSTER_WEEKS,
    CORRECTIONS,
    EVIDENCE,
    FLEET_WEEKS,
    HEALTH_EVENTS,
)
from fleetgauge_pipelines.jobs.batch import Pipeline
from tests.spark.agreement import write_rows
from tests.spark.lakes import opened, raw_frame, rows

CLUSTER = "orders"
FLEET = {"clusters": [{"id": CLUSTER, "bootstrap": "orders:9092", "region": "eu"}]}
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
OPEN, CLOSED = NOON + timedelta(hours=1), NOON + timedelta(days=10)
#: The minutes in which only broker 2 is slow, and the one in which both are.
SLOW, BOTH_SLOW = (3, 4, 5), 7
MINUTES = 10


def at(minute: int, second: int = 0) -> datetime:
    return NOON + timedelta(minutes=minute, seconds=second)


def latency_us(minute: int, broker: int) -> int:
    slow = minute == BOTH_SLOW or (broker == 2 and minute in SLOW)
    return 200_000 + minute if slow else 10_000 * broker + minute


def record(minute: int, broker: int) -> dict[str, Any]:
    """Return a client leg's record in which all probes have the same latency."""
    taken = [latency_us(minute, broker)] * 100
    return {
        "agent_id": "a",
        "agent_version": "1",
        "run_id": "run",
        "sequence": minute * 10 + broker,
        "vantage": "v",
        "cluster_id": CLUSTER,
        "kafka_cluster_uuid": "u",
        "broker_id": broker,
        "rack": None,
        "leg": "client",
        "minute": at(minute),
        "expected_brokers": [1, 2],
        "attempted": 100,
        "acknowledged": 100,
        "received": 100,
        "ack_us": [5_000] * 100,
        "e2e_us": taken,
        "produce_failures": {},
        "consume_failures": {},
        "lost": 0,
        "duplicated": 0,
        "out_of_order": 0,
        "schedule_lag_p95_us": 0,
        "schedule_lag_max_us": 0,
        "led_by": [broker],
        "leader_epoch": 1,
        "emitted_at": at(minute + 1),
    }


def correction(correction_id: str, scope: str, first: int, last: int, **of: Any) -> dict[str, Any]:
    span = {"starts": at(first), "ends": at(last + 1), "reason": "upgrade", "author": "ann"}
    return {"correction_id": correction_id, "scope": scope, "created_at": OPEN, **span, **of}


def event(event_id: str, when: datetime, to_state: str) -> dict[str, Any]:
    of = {"cluster_id": CLUSTER, "broker_id": 2, "fingerprint": "f", "from_state": "HEALTHY"}
    return {"event_id": event_id, "at": when, "to_state": to_state, **of}


class LakeState:
    """The newest week and the causes of bad minutes in a lake."""

    def __init__(self, folder: Path) -> None:
        newest = max(rows(folder, CLUSTER_WEEKS), key=lambda row: int(row["revision"]))
        self.week = newest | {"causes": dict(newest["causes"] or ())}
        self.causes = {
            (row["minute"] - NOON) // timedelta(minutes=1): row["cause"]
            for row in rows(folder, CLUSTER_MINUTES)
            if row["cause"]
        }


@dataclass(frozen=True, slots=True)
class RecordedLake:
    """A lake with the records, the pipeline that wrote it, and a copy for another pipeline."""

    folder: Path
    pipeline: Pipeline
    copy: Path


@pytest.fixture(scope="module")
def recorded_lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> RecordedLake:
    folder = tmp_path_factory.mktemp("recorded")
    _, pipeline = opened(spark, folder / "lake", FLEET)
    values = [PROBE_MINUTE.encode(record(minute, broker)) for minute in range(MINUTES) for broker in (1, 2)]
    pipeline.process(raw_frame(spark, values), "records", OPEN)
    return RecordedLake(folder / "lake", pipeline, shutil.copytree(folder / "lake", folder / "copy"))


def test_later_events_actions_and_corrections_change_causes_and_weeks(
    spark: SparkSession, recorded_lake: RecordedLake
) -> None:
    folder, pipeline = recorded_lake.folder, recorded_lake.pipeline

    def batch(clock: datetime) -> LakeState:
        pipeline.process(raw_frame(spark, []), f"at {clock}", clock)
        return LakeState(folder)

    state = LakeState(folder)
    assert state.causes == dict.fromkeys((*SLOW, BOTH_SLOW), "unknown")
    assert (state.week["bad_minutes"], state.week["causes"]) == (4, {"unknown": 4})

    write_rows(
        folder, HEALTH_EVENTS, [event("1", at(3, 20), "BROKER_DOWN"), event("2", at(4, 10), "HEALTHY")]
    )
    write_rows(folder, ACTIONS, [{"action_id": "1", "kind": "roll", "cluster_id": CLUSTER, "starts": at(5)}])
    state = batch(OPEN)
    assert state.causes == {3: "BROKER_DOWN", 4: "BROKER_DOWN", 5: "roll", 7: "roll"}
    assert state.week["causes"] == {"BROKER_DOWN": 2, "roll": 2}

    of_broker = correction("b", "broker", 3, 8, cluster_id=CLUSTER, broker_id=2)
    of_segment = correction("s", "segment", 8, 9, segment="region", segment_value="eu")
    elsewhere = correction("e", "segment", 0, 9, segment="region", segment_value="us")
    write_rows(folder, CORRECTIONS, [of_broker, of_segment, elsewhere])
    state = batch(OPEN)
    week = state.week
    assert state.causes == {3: "maintenance", 4: "maintenance", 5: "maintenance", 7: "roll"}
    assert week["corrections"] == "b,s"
    assert (week["bad_minutes"], week["bad_minutes_raw"]) == (1, 4)
    assert (week["minutes_expected"], week["minutes_expected_raw"], week["coverage"]) == (8, 10, 1.0)
    assert week["latency_budget_minutes"] == 8 / 100
    assert week["latency_p99_us"] == week["latency_p99_us_raw"] == latency_us(BOTH_SLOW, 1)
    fleet = {row["metric"]: row["median"] for row in rows(folder, FLEET_WEEKS) if row["segment"] == "fleet"}
    assert fleet["latency_budget_left_minutes"] == 8 / 100 - 1
    burnt = {
        row["cause"]: row["bad_minutes"] for row in rows(folder, BURN_CAUSES) if row["segment"] == "fleet"
    }
    assert burnt == {"maintenance": 3, "roll": 1}

    assert batch(CLOSED).week["revision"] == 1
    evidence = {(row["minute"], row["broker_id"]): row for row in rows(folder, EVIDENCE)}
    # The minute at the ranks of both latencies, and the first of those at availability's.
    assert set(evidence) == {(at(minute), broker) for minute in (0, BOTH_SLOW) for broker in (1, 2)}
    assert evidence[at(7), 1]["e2e_us"] == [latency_us(7, 1)] * 100
    assert evidence[at(7), 1]["why"] == "latency_p99_us,latency_p99_censored_us,bad_minute"

    write_rows(folder, CORRECTIONS, [correction("w", "cluster", 0, 9, cluster_id=CLUSTER, recurs="weekly")])
    week = batch(CLOSED).week
    assert (week["revision"], week["revision_reason"], week["corrections"]) == (2, "corrections", "b,s,w")
    assert (week["latency_p99_us"], week["bad_minutes"], week["minutes_expected"]) == (None, 0, 0)
    assert (week["latency_p99_us_raw"], week["bad_minutes_raw"]) == (latency_us(BOTH_SLOW, 1), 4)


def test_a_restarted_pipeline_applies_annotations_written_meanwhile(
    spark: SparkSession, recorded_lake: RecordedLake
) -> None:
    folder = recorded_lake.copy
    write_rows(folder, HEALTH_EVENTS, [event("1", at(3, 20), "BROKER_DOWN")])
    write_rows(folder, CORRECTIONS, [correction("c", "cluster", 7, 7, cluster_id=CLUSTER)])

    _, restarted = opened(spark, folder, FLEET)
    restarted.process(raw_frame(spark, []), "after", OPEN)

    state = LakeState(folder)
    assert state.causes == {3: "BROKER_DOWN", 4: "BROKER_DOWN", 5: "BROKER_DOWN", 7: "maintenance"}
    assert (state.week["bad_minutes"], state.week["bad_minutes_raw"]) == (3, 4)
    assert state.week["causes"] == {"BROKER_DOWN": 3, "maintenance": 1}
