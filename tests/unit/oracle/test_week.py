"""The random records conform to the record contract and include every kind of fault."""

import json
from collections import Counter, defaultdict
from datetime import timedelta
from typing import Any

import pytest
from fastavro.validation import validate

from fleetgauge_core.contract import PROBE_MINUTE, ProbeMinute
from fleetgauge_core.fleet import Fleet
from tests.oracle.oracle import Tables, evaluate, read_settings
from tests.oracle.week import START, random_fleet, random_week

SEEDS = range(4)
AFTER = START + timedelta(days=3)
Records = list[dict[str, Any]]


@pytest.fixture(scope="module", params=SEEDS)
def records(request: pytest.FixtureRequest) -> Records:
    return random_week(request.param)


@pytest.fixture(scope="module")
def all_records() -> Records:
    return [record for seed in SEEDS for record in random_week(seed)]


def _evaluate(seed: int) -> Tables:
    return evaluate(random_week(seed), read_settings(Fleet.model_validate(random_fleet(seed))), AFTER)


def test_the_same_seed_gives_the_same_records_and_another_seed_others() -> None:
    assert random_week(1, minutes=60) == random_week(1, minutes=60)
    assert random_week(1, minutes=60) != random_week(2, minutes=60)
    assert random_fleet(1) == random_fleet(1)


def test_every_record_is_a_valid_probe_minute_and_encodes(records: Records) -> None:
    schema = json.loads(PROBE_MINUTE.text)
    for record in records:
        validate(record, schema)
    assert ProbeMinute(**records[0]).encode()


def test_latencies_ascend_and_counts_add_up(records: Records) -> None:
    for record in records:
        assert record["ack_us"] == sorted(record["ack_us"])
        assert record["e2e_us"] == sorted(record["e2e_us"])
        assert min([*record["ack_us"], *record["e2e_us"]], default=0) >= 0
        assert len(record["ack_us"]) == record["acknowledged"] <= record["attempted"]
        assert len(record["e2e_us"]) <= min(record["acknowledged"], record["received"])
        assert record["received"] <= record["attempted"]
        assert all(
            count > 0
            for count in (*record["produce_failures"].values(), *record["consume_failures"].values())
        )
        succeeded = record["e2e_us"] if record["leg"] == "client" else record["ack_us"]
        failures = sum(record["produce_failures"].values()) + sum(record["consume_failures"].values())
        assert failures == record["attempted"] - len(succeeded)
        if record["leg"] == "leader":
            assert (record["e2e_us"], record["received"], record["consume_failures"]) == ([], 0, {})


def test_no_latency_exceeds_its_deadline(records: Records) -> None:
    assert max(us for record in records for us in record["ack_us"]) <= 5_000_000
    assert max(us for record in records for us in record["e2e_us"]) <= 10_000_000


def test_a_sequence_is_unique_within_a_run_and_duplicates_are_identical(records: Records) -> None:
    by_key = defaultdict(list)
    for record in records:
        by_key[record["run_id"], record["sequence"]].append(record)
    assert any(len(same) > 1 for same in by_key.values())
    assert all(record == same[0] for same in by_key.values() for record in same)


def test_records_are_shuffled(records: Records) -> None:
    minutes = [record["minute"] for record in records]
    assert minutes != sorted(minutes)


def test_probes_fail_entirely_partly_and_by_not_being_received(all_records: Records) -> None:
    clients = [record for record in all_records if record["leg"] == "client"]
    assert any(record["attempted"] == 100 and not record["acknowledged"] for record in clients)
    assert any(
        record["attempted"] == 100 == record["acknowledged"] and not record["e2e_us"] for record in clients
    )
    assert any(len(record["e2e_us"]) == 99 and record["attempted"] == 100 for record in clients)
    assert any(len(record["e2e_us"]) == 98 and record["attempted"] == 100 for record in clients)
    assert any(record["received"] > len(record["e2e_us"]) for record in clients)


def test_agents_are_late_by_a_microsecond_and_attempt_fewer_probes_around_restarts(
    all_records: Records,
) -> None:
    lags = Counter(record["schedule_lag_p95_us"] for record in all_records)
    assert lags[100_000]
    assert lags[100_001]
    assert {49, 50} <= {record["attempted"] for record in all_records}
    assert any(record["attempted"] == 0 for record in all_records if record["leg"] == "leader")


def test_brokers_join_leave_and_are_not_listed(all_records: Records) -> None:
    assert any(record["broker_id"] not in record["expected_brokers"] for record in all_records)
    broker_sets = defaultdict(set)
    for record in all_records:
        broker_sets[record["cluster_id"]].add(tuple(record["expected_brokers"]))
    assert all(len(cluster_sets) > 1 for cluster_sets in broker_sets.values())


def test_clusters_have_one_or_two_vantages(all_records: Records) -> None:
    vantages = defaultdict(set)
    for record in all_records:
        vantages[record["cluster_id"]].add(record["vantage"])
    assert {len(cluster_vantages) for cluster_vantages in vantages.values()} == {1, 2}
    assert len({record["vantage"] for record in random_week(0, minutes=60, vantages=1)}) == 1


def test_the_random_records_cover_every_branch_of_the_oracle() -> None:
    tables = [_evaluate(seed) for seed in range(8)]
    brokers = [row for seed_tables in tables for row in seed_tables.broker_minutes]
    assert any(row["agent_late"] and row["vantages"] for row in brokers)
    assert any(row["agent_late"] and not row["vantages"] for row in brokers)
    assert any(row["attempted"] and not row["measured"] for row in brokers)
    assert any(row["measured"] and row["latency_p99_us"] is None for row in brokers)
    minutes = [row for seed_tables in tables for row in seed_tables.cluster_minutes]
    assert any(row["brokers_measured"] == 0 for row in minutes)
    assert {100_000, 100_001} <= {row["latency_p99_censored_us"] for row in minutes}
    weeks = [row for seed_tables in tables for row in seed_tables.cluster_weeks]
    assert {row["closed"] for row in weeks} == {True, False}
    assert any(row["coverage"] < 0.9 for row in weeks)
    assert any(row["coverage"] >= 0.9 for row in weeks)
    assert len({row["latency_p99_censored_us"] for row in weeks}) > 2
    fleet = [row for seed_tables in tables for row in seed_tables.fleet_weeks]
    assert any(row["clusters"] == 0 for row in fleet)
    assert any(row["clusters_excluded"] and row["clusters"] for row in fleet)
