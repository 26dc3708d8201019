"""The random records keep the contract, and are as nasty as they claim."""

import json
from collections import Counter, defaultdict
from datetime import timedelta
from typing import Any

import pytest
from fastavro.validation import validate

from fleetgauge_core.contract import PROBE_MINUTE, ProbeMinute
from fleetgauge_core.fleet import Fleet
from tests.oracle.oracle import Tables, evaluate, settings_of
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


def _evaluated(seed: int) -> Tables:
    return evaluate(random_week(seed), settings_of(Fleet.model_validate(random_fleet(seed))), AFTER)


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
    for r in records:
        assert r["ack_us"] == sorted(r["ack_us"])
        assert r["e2e_us"] == sorted(r["e2e_us"])
        assert min([*r["ack_us"], *r["e2e_us"]], default=0) >= 0
        assert len(r["ack_us"]) == r["acknowledged"] <= r["attempted"]
        assert len(r["e2e_us"]) <= min(r["acknowledged"], r["received"])
        assert r["received"] <= r["attempted"]
        assert all(count > 0 for count in (*r["produce_failures"].values(), *r["consume_failures"].values()))
        succeeded = r["e2e_us"] if r["leg"] == "client" else r["ack_us"]
        failures = sum(r["produce_failures"].values()) + sum(r["consume_failures"].values())
        assert failures == r["attempted"] - len(succeeded)
        if r["leg"] == "leader":
            assert (r["e2e_us"], r["received"], r["consume_failures"]) == ([], 0, {})


def test_deadlines_are_kept(records: Records) -> None:
    assert max(us for r in records for us in r["ack_us"]) <= 5_000_000
    assert max(us for r in records for us in r["e2e_us"]) <= 10_000_000


def test_a_sequence_is_used_once_a_run_and_a_replay_is_identical(records: Records) -> None:
    by_key = defaultdict(list)
    for record in records:
        by_key[record["run_id"], record["sequence"]].append(record)
    assert any(len(same) > 1 for same in by_key.values())
    assert all(one == same[0] for same in by_key.values() for one in same)


def test_records_come_shuffled(records: Records) -> None:
    minutes = [record["minute"] for record in records]
    assert minutes != sorted(minutes)


def test_brokers_fail_wholly_partly_and_by_not_delivering(all_records: Records) -> None:
    clients = [r for r in all_records if r["leg"] == "client"]
    assert any(r["attempted"] == 100 and not r["acknowledged"] for r in clients)
    assert any(r["attempted"] == 100 == r["acknowledged"] and not r["e2e_us"] for r in clients)
    assert any(len(r["e2e_us"]) == 99 and r["attempted"] == 100 for r in clients)
    assert any(len(r["e2e_us"]) == 98 and r["attempted"] == 100 for r in clients)
    assert any(r["received"] > len(r["e2e_us"]) for r in clients)


def test_agents_are_late_to_the_microsecond_start_in_mid_minute_and_attempt_nothing_at_times(
    all_records: Records,
) -> None:
    lags = Counter(r["schedule_lag_p95_us"] for r in all_records)
    assert lags[100_000]
    assert lags[100_001]
    assert {49, 50} <= {r["attempted"] for r in all_records}
    assert any(r["attempted"] == 0 for r in all_records if r["leg"] == "leader")


def test_minutes_and_brokers_are_missing_join_leave_and_are_unlisted(all_records: Records) -> None:
    assert any(r["broker_id"] not in r["expected_brokers"] for r in all_records)
    sets = defaultdict(set)
    for r in all_records:
        sets[r["cluster_id"]].add(tuple(r["expected_brokers"]))
    assert all(len(different) > 1 for different in sets.values())


def test_two_vantages_see_one_cluster_and_one_the_others(all_records: Records) -> None:
    vantages = defaultdict(set)
    for r in all_records:
        vantages[r["cluster_id"]].add(r["vantage"])
    assert {len(seen) for seen in vantages.values()} == {1, 2}
    assert len({r["vantage"] for r in random_week(0, minutes=60, vantages=1)}) == 1


def test_what_the_oracle_makes_of_them_reaches_every_branch() -> None:
    tables = [_evaluated(seed) for seed in range(8)]
    brokers = [row for one in tables for row in one.broker_minutes]
    assert any(row["agent_late"] and row["vantages"] for row in brokers)
    assert any(row["agent_late"] and not row["vantages"] for row in brokers)
    assert any(row["attempted"] and not row["measured"] for row in brokers)
    assert any(row["measured"] and row["latency_p99_us"] is None for row in brokers)
    minutes = [row for one in tables for row in one.cluster_minutes]
    assert any(row["brokers_measured"] == 0 for row in minutes)
    assert {100_000, 100_001} <= {row["latency_p99_censored_us"] for row in minutes}
    weeks = [row for one in tables for row in one.cluster_weeks]
    assert {row["closed"] for row in weeks} == {True, False}
    assert any(row["coverage"] < 0.9 for row in weeks)
    assert any(row["coverage"] >= 0.9 for row in weeks)
    assert len({row["latency_p99_censored_us"] for row in weeks}) > 2
    fleet = [row for one in tables for row in one.fleet_weeks]
    assert any(row["clusters"] == 0 for row in fleet)
    assert any(row["clusters_excluded"] and row["clusters"] for row in fleet)
