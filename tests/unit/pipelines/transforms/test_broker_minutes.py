"""Levels of pooled records, compared with the plain definition of one broker-minute."""

from collections.abc import Sequence
from dataclasses import astuple
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

from fleetgauge_core.slo.levels import CENSORED_LATENCY_US, compute_broker_minute_levels
from fleetgauge_core.tables import PROBE_MINUTES
from fleetgauge_core.tables.arrow_schema import arrow_schema
from fleetgauge_pipelines.transforms.broker_minutes import build_failure_maps, compute_levels, pool_records
from fleetgauge_pipelines.transforms.records import COLUMNS, Records, read_records
from tests.probe_minutes import CLIENT

BRONZE = pa.schema([arrow_schema(PROBE_MINUTES).field(name) for name in COLUMNS])
#: As many failures as one record may claim.
INT_MAX = 2**31 - 1
SIZES = (0, 0, 1, 1, 2, 49, 50, 51, 98, 99, 100, 101, 199, 200, 201, 300)


def build_records(*changes: dict[str, Any]) -> Records:
    """Return records of a minute of one cluster; each differs from a plain one in some fields."""
    rows = [{name: getattr(CLIENT, name) for name in COLUMNS} | more for more in changes]
    return read_records(pa.Table.from_pylist(rows, BRONZE), [CLIENT.cluster_id], agent_late_us=100_000)


def draw_samples() -> list[tuple[str, list[int], int]]:
    """Return (leg, ascending latencies, attempted) with sizes at the edges of ranks."""
    rng = Random(3)
    drawn = []
    for number, size in enumerate((*SIZES, *(rng.randint(0, 250) for _ in range(300)))):
        leg = ("client", "leader")[number % 2]
        highest_us = rng.choice((5, 10_000, CENSORED_LATENCY_US[leg], CENSORED_LATENCY_US[leg] * 2))
        failures = rng.choice((0, 0, 1, 2, rng.randint(0, 120)))
        drawn.append((leg, sorted(rng.randint(0, highest_us) for _ in range(size)), size + failures))
    return drawn


def build_probes(broker: int, leg: str, latencies: Sequence[int], attempted: int) -> dict[str, Any]:
    samples = {"ack_us": latencies} if leg == "leader" else {"ack_us": latencies, "e2e_us": latencies}
    return {"broker_id": broker, "leg": leg, "attempted": attempted, "e2e_us": ()} | samples


def test_levels_are_those_of_the_plain_definition() -> None:
    drawn = draw_samples()
    minutes = pool_records(
        build_records(*(build_probes(broker, *probes) for broker, probes in enumerate(drawn)))
    )
    levels = compute_levels(minutes)
    assert minutes.broker.tolist() == list(range(len(drawn)))
    for broker, (leg, latencies, attempted) in enumerate(drawn):
        expected = compute_broker_minute_levels(leg, attempted, latencies)
        actual = (
            levels.availability[broker],
            levels.latency_p50_us[broker],
            levels.latency_p99_us[broker],
            levels.latency_p99_censored_us[broker],
            levels.latency_max_us[broker],
        )
        levels_of_minute = [None if value is np.ma.masked else value for value in actual]
        wanted = [None] * len(levels_of_minute) if expected is None else list(astuple(expected))
        assert levels_of_minute == wanted, (leg, len(latencies), attempted)


def test_more_failures_than_an_int_holds_count_at_the_deadline() -> None:
    vantages = [
        {"vantage": str(number), "attempted": INT_MAX, "e2e_us": (1, 99_000_000)} for number in range(3)
    ]
    levels = compute_levels(pool_records(build_records(*vantages)))
    assert levels.latency_p99_censored_us.tolist() == [10_000_000]
    assert levels.latency_max_us.tolist() == [99_000_000]


def test_a_sum_of_failures_is_capped_at_the_highest_int() -> None:
    minutes = pool_records(
        build_records(
            {"vantage": "a", "produce_failures": {"A": INT_MAX, "B": 1}, "consume_failures": {"A": 7}},
            {"vantage": "b", "produce_failures": {"B": 2}, "consume_failures": {}},
        )
    )
    assert [dict(failures) for failures in build_failure_maps(minutes.failures, 1).to_pylist()] == [
        {"A": INT_MAX, "B": 3}
    ]


def test_a_late_vantage_is_told_and_not_pooled() -> None:
    minutes = pool_records(
        build_records(
            {"vantage": "a", "led_by": (3, 1)},
            {"vantage": "b", "led_by": (2, 1), "schedule_lag_p95_us": 100_001},
        )
    )
    assert (minutes.vantages.tolist(), minutes.is_agent_late.tolist()) == ([1], [True])
    assert minutes.attempted.tolist() == [CLIENT.attempted]
    assert minutes.led_by.to_arrow().to_pylist() == [[1, 2, 3]]
