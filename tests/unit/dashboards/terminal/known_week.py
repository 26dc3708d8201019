"""A closed week of 10,080 minutes, in which every value follows from the position of the minute.

Minute k has a p99 of 20,000 + k us, worst on broker 1. Minutes 500 to 511 were not measured, 600 to 602 only
on two of three brokers. In minutes 1,000 to 1,009 broker 2 loses a fifth of its probes, in 2,000 to 2,149
broker 3 one in 200.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from fleetgauge_core import tables
from tests.browser.lake import put

CLUSTER = "orders-eu"
WEEK = date(2026, 3, 2)
START = datetime(2026, 3, 2, tzinfo=UTC)
MINUTES = 10_080
UNMEASURED = range(500, 512)
PARTLY = range(600, 603)
HUNG = range(1_000, 1_010)
LOSSY = range(2_000, 2_150)

#: 10,068 minutes have a latency; the 9,968th ascending is that of minute 9,979.
LATENCY_P99_US, DECIDES_LATENCY = 29_979, 9_979
#: With failures the ten hung minutes come last, so the 9,968th is ten minutes later.
CENSORED_P99_US, DECIDES_CENSORED = 29_989, 9_989
#: The 101st from below: ten at 0.8, then 150 at 0.995.
AVAILABILITY_P99 = 0.995


def at(number: int) -> datetime:
    return START + timedelta(minutes=number)


def write_gold(root: Path) -> None:
    put(root, tables.CLUSTER_WEEKS, [_week(1, bad_minutes=9), _week(2)])


def write_silver(root: Path) -> None:
    put(root, tables.CLUSTER_MINUTES, map(_minute, range(MINUTES)))


def write_bronze(root: Path) -> None:
    """Write records of the deciding minutes from two vantages; the late one must be excluded."""
    rows = [
        row | {"run_id": vantage, "vantage": vantage, "schedule_lag_p95_us": lag, "sequence": number}
        for vantage, lag in (("on-time", 900), ("late", 150_000))
        for number, row in enumerate(_samples(_list_deciding(), "produce_failures"))
    ]
    put(root, tables.PROBE_MINUTES, rows)


def write_evidence(root: Path) -> None:
    rows = _samples((*_list_deciding(), *HUNG), "failures")
    put(root, tables.EVIDENCE, [row | {"week": WEEK, "why": "decides"} for row in rows])


def write_corrections(root: Path) -> None:
    common = {"scope": "cluster", "reason": "maintenance", "author": "ada", "created_at": START}
    put(
        root,
        tables.CORRECTIONS,
        [
            common | {"correction_id": "ours", "cluster_id": CLUSTER, "starts": at(100), "ends": at(160)},
            common | {"correction_id": "other", "cluster_id": "b", "starts": at(100), "ends": at(160)},
            common | {"correction_id": "over", "cluster_id": CLUSTER, "starts": at(-90), "ends": START},
            common
            | {
                "correction_id": "weekly",
                "scope": "segment",
                "segment": "region",
                "segment_value": "eu",
                "starts": at(-20_000),
                "ends": at(-19_940),
                "recurs": "weekly",
            },
        ],
    )


def _list_deciding() -> tuple[int, ...]:
    return (DECIDES_LATENCY, DECIDES_CENSORED, LOSSY[0])


def _minute(k: int) -> dict[str, Any]:
    key = {"cluster_id": CLUSTER, "minute": at(k), "day": at(k).date(), "brokers_expected": 3}
    if k in UNMEASURED:
        return key | {"brokers_measured": 0, "attempted": 0, "succeeded": 0}
    availability, home = (0.8, 2) if k in HUNG else (0.995, 3) if k in LOSSY else (1.0, 1)
    measured = 2 if k in PARTLY else 3
    return key | {
        "latency_p99_us": 20_000 + k,
        "latency_worst_home": 1,
        "latency_p99_censored_us": 10_000_000 if k in HUNG else 20_000 + k,
        "availability": availability,
        "availability_worst_home": home,
        "brokers_measured": measured,
        "attempted": 200 * measured,
        "succeeded": 200 * measured - round(200 * (1 - availability)),
        "cause": "broker_down" if k in HUNG else None,
    }


def _samples(minutes: Iterable[int], failures: str) -> Iterator[dict[str, Any]]:
    """200 probes of each broker and leg: one at the minute's p99 and two over it, the others fast."""
    for k in minutes:
        for broker in (1, 2, 3):
            for leg in ("client", "leader"):
                lost = 40 if (k, broker) in {(k, 2) for k in HUNG} else int(k in LOSSY and broker == 3)
                quick = 200 - lost - 3
                worst = [20_000 + k - 100 * (broker - 1)] + [50_000] * 2
                taken = [5_000] * quick + worst
                yield {
                    "cluster_id": CLUSTER,
                    "minute": at(k),
                    "day": at(k).date(),
                    "broker_id": broker,
                    "leg": leg,
                    "attempted": 200,
                    "ack_us": taken,
                    "e2e_us": taken if leg == "client" else [],
                    failures: {"MSG_TIMED_OUT": lost} if lost else {},
                }


def _week(revision: int, bad_minutes: int = 10) -> dict[str, Any]:
    numbers = {
        "latency_p99_us": LATENCY_P99_US,
        "latency_p99_censored_us": CENSORED_P99_US,
        "availability_p99": AVAILABILITY_P99,
        "availability_ratio": 0.99992,
        "bad_minutes": bad_minutes,
        "latency_objective_us": 100_000,
        "latency_budget_minutes": 100.8,
        "latency_budget_left_minutes": 100.8 - bad_minutes,
        "availability_objective": 0.9995,
        "availability_budget_minutes": 5.04,
        "availability_spent_minutes": 0.9,
    }
    return {
        "cluster_id": CLUSTER,
        "week": WEEK,
        "revision": revision,
        **numbers,
        **{f"{name}_raw": value for name, value in numbers.items()},
        "minutes_measured": 10_068,
        "minutes_expected": MINUTES,
        "coverage": 0.9987,
        "closed": True,
        "revision_reason": "closed" if revision == 1 else "late_records",
        "definition": "v1",
        "computed_at": at(MINUTES + 2_880 + revision),
    }
