"""The random lakes conform to the record contract and cover every branch of the oracle."""

import json
from collections import Counter
from functools import cache

import pytest
from fastavro.validation import validate

from fleetgauge_core.contract import PROBE_MINUTE
from fleetgauge_core.fleet import Fleet
from tests.oracle.clock_changes import CLOCK_CHANGE_WEEKS
from tests.oracle.minute_rules import drop_duplicates
from tests.oracle.oracle import Row, Tables, evaluate, read_settings
from tests.oracle.random_fleets import RandomLake, random_lake
from tests.oracle.revision_rules import apply_revisions

SEEDS = range(3)


@cache
def _lake(seed: int) -> RandomLake:
    return random_lake(seed, fleets=20)


@cache
def _compute(seed: int) -> Tables:
    lake = _lake(seed)
    settings = read_settings(Fleet.model_validate(lake.document))
    first, second = lake.deliveries
    records = [*first.records, *second.records]
    return apply_revisions(
        [
            evaluate(first.records, settings, first.clock, lake.operations),
            evaluate(records, settings, second.clock, lake.operations),
        ]
    )


def _records(seed: int) -> list[Row]:
    return [record for delivery in _lake(seed).deliveries for record in delivery.records]


def test_the_same_seed_gives_the_same_lake_and_another_seed_another() -> None:
    assert random_lake(1, fleets=2) == random_lake(1, fleets=2)
    assert random_lake(1, fleets=2) != random_lake(1 + len(CLOCK_CHANGE_WEEKS), fleets=2)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_record_is_valid_and_not_later_than_the_clock_of_its_delivery(seed: int) -> None:
    schema = json.loads(PROBE_MINUTE.text)
    for delivery in _lake(seed).deliveries:
        for record in delivery.records:
            validate(record, schema)
            ack_us, e2e_us = record["ack_us"], record["e2e_us"]
            succeeded = e2e_us if record["leg"] == "client" else ack_us
            failures = sum(record["produce_failures"].values()) + sum(record["consume_failures"].values())
            assert failures == record["attempted"] - len(succeeded)
            assert (ack_us, e2e_us) == (sorted(ack_us), sorted(e2e_us))
            assert record["minute"] <= delivery.clock


@pytest.mark.parametrize("seed", SEEDS)
def test_records_are_duplicated_late_and_unordered(seed: int) -> None:
    first, second = _lake(seed).deliveries
    for delivery in (first, second):
        assert len(drop_duplicates(delivery.records)) < len(delivery.records)
        minutes = [record["minute"] for record in delivery.records]
        assert minutes != sorted(minutes)
    times = Counter(
        (record["run_id"], record["sequence"])
        for record in drop_duplicates(first.records) + drop_duplicates(second.records)
    )
    assert max(times.values()) == 2
    assert min(record["minute"] for record in second.records) < max(
        record["minute"] for record in first.records
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_a_fleet_has_one_to_four_clusters_and_a_cluster_one_to_six_brokers(seed: int) -> None:
    labels = [cluster["labels"] for cluster in _lake(seed).document["clusters"] if "labels" in cluster]
    assert {*Counter(label["fleet-number"] for label in labels).values()} <= {1, 2, 3, 4}
    brokers = {(record["cluster_id"], record["broker_id"]) for record in _records(seed)}
    assert {1, 5} <= {*Counter(cluster for cluster, _ in brokers).values()} <= {1, 2, 3, 4, 5, 6}


def test_the_random_lakes_cover_every_branch_of_the_oracle() -> None:
    tables = [_compute(seed) for seed in SEEDS]
    minutes = [row for lake_tables in tables for row in lake_tables.cluster_minutes]
    causes = {row["cause"] for row in minutes}
    assert causes >= {
        None,
        "maintenance",
        "roll",
        "BROKER_DOWN",
        "reassignment",
        "throttle",
        "vantage",
        "unknown",
    }
    assert any(row["latency_p99_us"] is None and row["brokers_measured"] for row in minutes)
    weeks = [row for lake_tables in tables for row in lake_tables.cluster_weeks]
    assert {0, 1, 2} == {row["revision"] for row in weeks}
    assert {"closed", "late_records", None} <= {row["revision_reason"] for row in weeks}
    assert any(row["corrections"] and row["minutes_expected"] == 0 for row in weeks)
    assert any(0 < row["minutes_expected"] < row["minutes_expected_raw"] for row in weeks)
    assert any(row["availability_ratio"] != row["availability_ratio_raw"] for row in weeks)
    assert any(row["coverage"] < 0.9 for row in weeks)
    fleets = [row for lake_tables in tables for row in lake_tables.fleet_weeks]
    assert any(row["clusters"] == 0 for row in fleets)
    assert any(row["clusters_excluded"] and row["clusters"] for row in fleets)


def test_the_weeks_include_every_kind_of_clock_change() -> None:
    hours = {(week.bounds[1] - week.bounds[0]).total_seconds() / 3600 for week in CLOCK_CHANGE_WEEKS}
    assert {167.0, 169.0, 168.5, 144.0} <= hours
