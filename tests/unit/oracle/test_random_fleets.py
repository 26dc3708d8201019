"""The random lakes keep the contract, and hold everything that they claim to."""

import json
from collections import Counter
from functools import cache

import pytest
from fastavro.validation import validate

from fleetgauge_core.contract import PROBE_MINUTE
from fleetgauge_core.fleet import Fleet
from tests.oracle.minute_rules import distinct
from tests.oracle.oracle import Row, Tables, evaluate, settings_of
from tests.oracle.random_fleets import RandomLake, random_lake
from tests.oracle.revision_rules import after
from tests.oracle.scenes import SETTINGS

SEEDS = range(3)


@cache
def _lake(seed: int) -> RandomLake:
    return random_lake(seed, fleets=20)


@cache
def _computed(seed: int) -> Tables:
    one = _lake(seed)
    settings = settings_of(Fleet.model_validate(one.document))
    first, second = one.deliveries
    records = [*first.records, *second.records]
    return after(
        [
            evaluate(first.records, settings, first.clock, one.operations),
            evaluate(records, settings, second.clock, one.operations),
        ]
    )


def _records(seed: int) -> list[Row]:
    return [record for delivery in _lake(seed).deliveries for record in delivery.records]


def test_the_same_seed_gives_the_same_lake_and_another_seed_another() -> None:
    assert random_lake(1, fleets=2) == random_lake(1, fleets=2)
    assert random_lake(1, fleets=2) != random_lake(1 + len(SETTINGS), fleets=2)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_record_is_valid_adds_up_and_comes_before_its_deliverys_clock(seed: int) -> None:
    schema = json.loads(PROBE_MINUTE.text)
    for delivery in _lake(seed).deliveries:
        for r in delivery.records:
            validate(r, schema)
            succeeded = r["e2e_us"] if r["leg"] == "client" else r["ack_us"]
            failures = sum(r["produce_failures"].values()) + sum(r["consume_failures"].values())
            assert failures == r["attempted"] - len(succeeded)
            assert (r["ack_us"], r["e2e_us"]) == (sorted(r["ack_us"]), sorted(r["e2e_us"]))
            assert r["minute"] <= delivery.clock


@pytest.mark.parametrize("seed", SEEDS)
def test_records_come_again_late_and_in_no_order(seed: int) -> None:
    first, second = _lake(seed).deliveries
    for delivery in (first, second):
        assert len(distinct(delivery.records)) < len(delivery.records)
        minutes = [record["minute"] for record in delivery.records]
        assert minutes != sorted(minutes)
    times = Counter(
        (one["run_id"], one["sequence"]) for one in distinct(first.records) + distinct(second.records)
    )
    assert max(times.values()) == 2
    assert min(one["minute"] for one in second.records) < max(one["minute"] for one in first.records)


@pytest.mark.parametrize("seed", SEEDS)
def test_clusters_are_of_one_to_four_a_fleet_and_brokers_of_one_to_six_a_cluster(seed: int) -> None:
    labels = [cluster["labels"] for cluster in _lake(seed).document["clusters"] if "labels" in cluster]
    assert {*Counter(label["fleet-number"] for label in labels).values()} <= {1, 2, 3, 4}
    brokers = {(one["cluster_id"], one["broker_id"]) for one in _records(seed)}
    assert {1, 5} <= {*Counter(cluster for cluster, _ in brokers).values()} <= {1, 2, 3, 4, 5, 6}


def test_what_the_oracle_makes_of_them_reaches_every_branch() -> None:
    tables = [_computed(seed) for seed in SEEDS]
    minutes = [row for one in tables for row in one.cluster_minutes]
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
    weeks = [row for one in tables for row in one.cluster_weeks]
    assert {0, 1, 2} == {row["revision"] for row in weeks}
    assert {"closed", "late_records", None} <= {row["revision_reason"] for row in weeks}
    assert any(row["corrections"] and row["minutes_expected"] == 0 for row in weeks)
    assert any(0 < row["minutes_expected"] < row["minutes_expected_raw"] for row in weeks)
    assert any(row["availability_ratio"] != row["availability_ratio_raw"] for row in weeks)
    assert any(row["coverage"] < 0.9 for row in weeks)
    fleets = [row for one in tables for row in one.fleet_weeks]
    assert any(row["clusters"] == 0 for row in fleets)
    assert any(row["clusters_excluded"] and row["clusters"] for row in fleets)


def test_each_setting_has_an_odd_week() -> None:
    hours = {(one.bounds[1] - one.bounds[0]).total_seconds() / 3600 for one in SETTINGS}
    assert {167.0, 169.0, 168.5, 144.0} <= hours
