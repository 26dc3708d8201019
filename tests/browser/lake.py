"""Writes a small lake of known values: three clusters, three hours of minutes, six weeks.

Broker 2 of ``orders-eu`` has hung for eight minutes; ``payments-us`` is healthy,
but has a gap of twelve minutes; the coverage of ``search-ap`` is too low for it
to be included.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

from fleetgauge_core import tables
from fleetgauge_core.slo.quantile import nearest_rank, quantile
from fleetgauge_core.tables import Table
from fleetgauge_core.tables.arrow_schema import arrow_schema

MINUTE = timedelta(minutes=1)
OBJECTIVE_US = 100_000
ATTEMPTS = 100
DEADLINE_US = {"client": 10_000_000, "leader": 5_000_000}

ORDERS, PAYMENTS, SEARCH = "orders-eu", "payments-us", "search-ap"
BROKERS = (1, 2, 3)
#: Hours of minutes that the lake holds.
HOURS = 3
#: Minutes before now: the length of the hang, and the minutes without measurements.
HUNG_FOR = 8
PAYMENTS_GAP = range(30, 42)
#: Minutes of the newest week, independent of the day, so that its budgets are fixed.
MINUTES_SO_FAR = 3_000


@dataclass(frozen=True, slots=True)
class LakeTimes:
    """The times that tests refer to: the end of the data, the newest week, and the start of the hang."""

    now: datetime
    week: date
    hung_at: datetime


def end_within_one_week(now: datetime) -> datetime:
    """Return a time at which the lake's minutes end: ``now``, or on a Monday (UTC) late on Sunday.

    So the day before it is in the same week, as are the minutes, alerts and time ranges of the tests.
    """
    into_week = timedelta(days=now.weekday(), hours=now.hour, minutes=now.minute)
    return now if into_week > timedelta(days=1) else now - into_week - timedelta(hours=1)


def write(root: Path, now: datetime) -> LakeTimes:
    """Write the lake as of ``now``; its newest minute is the last complete one."""
    now = now.replace(second=0, microsecond=0)
    week = now.date() - timedelta(days=now.weekday())
    times = LakeTimes(now, week, now - HUNG_FOR * MINUTE)
    broker_rows = [row for cluster in (ORDERS, PAYMENTS, SEARCH) for row in _broker_minutes(cluster, now)]
    put(root, tables.BROKER_MINUTES, broker_rows)
    put(root, tables.PROBE_MINUTES, _records([row for row in broker_rows if row["cluster_id"] == ORDERS]))
    put(root, tables.CLUSTER_MINUTES, _cluster_minutes(broker_rows))
    weeks = [row for back in range(6) for row in _cluster_weeks(week, back, now)]
    put(root, tables.CLUSTER_WEEKS, weeks)
    put(root, tables.FLEET_WEEKS, [row for back in range(6) for row in _fleet_weeks(week, back, weeks)])
    put(root, tables.HEALTH_EVENTS, _health_events(times))
    put(root, tables.BURN_CAUSES, [row for back in range(6) for row in _causes(week, back)])
    put(root, tables.QUALITY, [*_checks(now), lost_records(now - timedelta(hours=5), "expired", 1200)])
    put(root, tables.QUARANTINE, _quarantined_records(now))
    return times


def put(root: Path, table: Table, rows: Iterable[dict[str, Any]]) -> None:
    """Append rows to a table of the lake; missing columns are null."""
    data = pa.Table.from_pylist(
        [dict.fromkeys(table.column_names) | row for row in rows], schema=arrow_schema(table)
    )
    write_deltalake(
        str(root / table.path), data, mode="append", partition_by=list(table.partition_by) or None
    )


def _broker_minutes(cluster: str, now: datetime) -> Iterable[dict[str, Any]]:
    random = Random(cluster)
    base = {ORDERS: 34, PAYMENTS: 21, SEARCH: 58}[cluster]
    for ago in range(HOURS * 60, 0, -1):
        for broker in BROKERS:
            for leg in ("client", "leader"):
                ms = (base if leg == "client" else 4) * random.lognormvariate(0, 0.12) * (1 + 0.04 * broker)
                failed = _count_failed(cluster, broker, leg, ago)
                measured = not _gap(cluster, broker, ago)
                yield _broker_minute(
                    cluster, broker, leg, now - ago * MINUTE, int(1000 * ms), failed, measured
                )


def _gap(cluster: str, broker: int, ago: int) -> bool:
    if cluster == PAYMENTS:
        return ago in PAYMENTS_GAP
    return cluster == SEARCH and broker == 3 and ago % 10 < 7


def _count_failed(cluster: str, broker: int, leg: str, ago: int) -> int:
    """Return failed probes: all on a hung broker's leader leg, and some on the client leg of all brokers."""
    if cluster != ORDERS or ago > HUNG_FOR:
        return 0
    if leg == "leader":
        return ATTEMPTS if broker == 2 else 0
    return 20 if ago == HUNG_FOR else 4


def _broker_minute(
    cluster: str, broker: int, leg: str, minute: datetime, p99_us: int, failed: int, measured: bool
) -> dict[str, Any]:
    key = {"cluster_id": cluster, "broker_id": broker, "leg": leg, "minute": minute, "day": minute.date()}
    if not measured:
        return key | {"measured": False, "attempted": 0, "succeeded": 0}
    return key | {
        "measured": True,
        "attempted": ATTEMPTS,
        "succeeded": ATTEMPTS - failed,
        "availability": 1 - failed / ATTEMPTS,
        "latency_p50_us": quantile(50, samples(p99_us, ATTEMPTS - failed)),
        "latency_p99_us": None if failed == ATTEMPTS else p99_us,
        "latency_p99_censored_us": DEADLINE_US[leg] if failed > 1 else p99_us,
        "vantages": 1,
        "failures": {"timed_out": failed} if failed else {},
        "lost": 0,
        "duplicated": 0,
        "agent_late": False,
        "led_by": [broker],
    }


def samples(p99_us: int, succeeded: int) -> list[int]:
    """Return ascending latencies whose p99 by nearest rank is ``p99_us``."""
    return [p99_us * (k + 1) // nearest_rank(99, succeeded) for k in range(succeeded)]


def _records(rows: Iterable[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    """Yield the agent's records of measured broker-minutes."""
    for number, row in enumerate(row for row in rows if row["measured"]):
        latencies = samples(row["latency_p99_us"], row["succeeded"]) if row["succeeded"] else []
        own = ("cluster_id", "broker_id", "leg", "minute", "day", "attempted", "led_by")
        yield {name: row[name] for name in own} | {
            "run_id": "run",
            "sequence": number,
            "vantage": "default",
            "ack_us": latencies,
            "e2e_us": latencies if row["leg"] == "client" else [],
            "produce_failures": row["failures"],
            "consume_failures": {},
            "schedule_lag_p95_us": 900,
            "ingested_at": row["minute"] + timedelta(seconds=80 + number % 40),
        }


def _cluster_minutes(rows: list[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    grouped: dict[tuple[str, datetime], list[dict[str, Any]]] = {}
    for row in rows:
        if row["leg"] == "client":
            grouped.setdefault((row["cluster_id"], row["minute"]), []).append(row)
    for (cluster, minute), brokers in grouped.items():
        yield {"cluster_id": cluster, "minute": minute, "day": minute.date()} | _worst(brokers)


def _worst(brokers: list[dict[str, Any]]) -> dict[str, Any]:
    measured = [row for row in brokers if row["measured"]]
    counted = {"brokers_expected": len(brokers), "brokers_measured": len(measured)}
    if not measured:
        return counted
    slowest = max(measured, key=lambda row: row["latency_p99_us"] or 0)
    least = min(measured, key=lambda row: float(row["availability"]))
    attempted, succeeded = (sum(row[name] for row in measured) for name in ("attempted", "succeeded"))
    return counted | {
        "latency_p99_us": slowest["latency_p99_us"],
        "latency_worst_home": slowest["broker_id"],
        "latency_p99_censored_us": max(row["latency_p99_censored_us"] for row in measured),
        "availability": least["availability"],
        "availability_worst_home": least["broker_id"],
        "availability_pooled": succeeded / attempted,
        "attempted": attempted,
        "succeeded": succeeded,
    }


#: Per cluster: p99 in us this week, its weekly step back in time, bad minutes, availability, coverage.
_WEEK = {
    ORDERS: (43_100, 2_900, 38, 0.99934, 0.9987),
    PAYMENTS: (24_600, 700, 2, 0.999981, 0.9932),
    SEARCH: (71_800, -1_500, 9, 0.99978, 0.7150),
}


def _cluster_weeks(newest: date, back: int, now: datetime) -> Iterable[dict[str, Any]]:
    week = newest - timedelta(days=7 * back)
    for cluster, (p99, step, bad, ratio, coverage) in _WEEK.items():
        expected = 10_080 if back else MINUTES_SO_FAR
        row = _cluster_week(p99 + back * step, bad if back == 0 else bad // 3, ratio, expected)
        key = {"cluster_id": cluster, "week": week, "revision": min(back, 1), "closed": back > 0}
        covered = coverage if back == 0 or cluster != SEARCH else 0.97
        yield (
            key | row | {"coverage": covered, "minutes_measured": int(expected * covered), "computed_at": now}
        )
        if (cluster, back) == (ORDERS, 2):
            late = {"revision": 2, "revision_reason": "late records", "latency_p99_us": 50_500}
            yield key | row | late | {"coverage": covered, "computed_at": now}


def _cluster_week(p99: int, bad: int, ratio: float, expected: int) -> dict[str, Any]:
    budget = expected / 100
    return {
        "latency_p99_us": p99,
        # More bad minutes than the budget is the same as a p99 over the objective.
        "latency_p99_censored_us": DEADLINE_US["client"] if bad > budget else p99 + 1_300 * bad,
        "availability_p99": 0.99,
        "availability_ratio": ratio,
        "bad_minutes": bad,
        "latency_objective_us": OBJECTIVE_US,
        "latency_budget_minutes": budget,
        "latency_budget_left_minutes": budget - bad,
        "availability_objective": 0.9995,
        "availability_budget_minutes": expected * 0.0005,
        "availability_spent_minutes": expected * (1 - ratio),
        "minutes_expected": expected,
        "definition": "v1",
    }


def _fleet_weeks(newest: date, back: int, weeks: list[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    week = newest - timedelta(days=7 * back)
    latest = {r["cluster_id"]: r for r in weeks if r["week"] == week}
    counted = [row for row in latest.values() if row["coverage"] >= 0.9]
    for metric, lower_is_worse in (
        ("latency_p99_us", False),
        ("availability_ratio", True),
        ("latency_budget_left_minutes", True),
    ):
        best_first = sorted((float(row[metric]) for row in counted), reverse=lower_is_worse)
        yield {
            "week": week,
            "metric": metric,
            "segment": "fleet",
            "segment_value": "",
            "revision": min(back, 1),
            "median": best_first[(len(best_first) + 1) // 2 - 1],
            "p90": best_first[-1],
            "p99": best_first[-1],
            "clusters": len(counted),
            "clusters_excluded": len(latest) - len(counted),
            "closed": back > 0,
        }


def _causes(newest: date, back: int) -> Iterable[dict[str, Any]]:
    """Yield the causes of all bad minutes of a week."""
    for cause, minutes, clusters in (("BROKER_DOWN", 36, 1), ("unknown", 9, 2), ("maintenance", 4, 1)):
        yield {
            "week": newest - timedelta(days=7 * back),
            "segment": "fleet",
            "segment_value": "",
            "cause": cause,
            "bad_minutes": minutes if back == 0 else minutes // 3,
            "clusters": clusters,
        }


def _checks(now: datetime) -> Iterable[dict[str, Any]]:
    """Yield two expectations in ten batches; the second failed in the last batch."""
    for batch in range(10):
        for name, holds in (("counts add up", True), ("latency is positive", batch < 9)):
            yield {
                "check_id": f"{batch}-{name}",
                "at": now - timedelta(minutes=30 * (10 - batch)),
                "batch": f"batch {batch}",
                "suite": "silver",
                "expectation": name,
                "success": holds,
                "observed": "" if holds else "3 of 1,080 rows",
            }


def lost_records(at: datetime, name: str, records: int, **observed: Any) -> dict[str, Any]:
    """Return the check of ops/quality that says what the stream has lost."""
    text = {"text": f"topic probe-minutes was {name}", "change": name, "records": records, "exact": True}
    return {
        "check_id": name,
        "at": at,
        "batch": "stream/7/topics",
        "suite": "topics",
        "expectation": "every_record_is_read(probe-minutes)",
        "success": False,
        "observed": json.dumps(text | observed),
    }


def _quarantined_records(now: datetime) -> Iterable[dict[str, Any]]:
    """Yield five quarantined records of two days."""
    for number in range(5):
        yield {
            "source": f"topic-0-{number}",
            "value": b"?",
            "reason": "not_decodable" if number < 3 else "too_old",
            "ingested_at": now - timedelta(days=number % 2),
        }


def _health_events(times: LakeTimes) -> Iterable[dict[str, Any]]:
    yield from _finding(ORDERS, 2, times.hung_at + timedelta(seconds=3), None, "open")
    yield from _finding(PAYMENTS, 1, times.now - timedelta(hours=2), timedelta(minutes=6), "past")
    yield from _finding(SEARCH, 3, times.now - timedelta(days=9), timedelta(minutes=21), "old")


def _finding(
    cluster: str, broker: int, at: datetime, lasted: timedelta | None, name: str
) -> Iterable[dict[str, Any]]:
    named = at + timedelta(seconds=6)
    steps = [(at, "HEALTHY", "SUSPECT"), (named, "SUSPECT", "BROKER_DOWN")]
    steps += [(named + lasted, "BROKER_DOWN", "HEALTHY")] if lasted else []
    for number, (when, left, entered) in enumerate(steps):
        signs = {
            "api_versions_age_s": 3.1 + 3 * number,
            "leader_leg_outstanding": 11 * number,
            "vantages": ["default"],
        }
        yield {
            "event_id": f"{name}-{number}",
            "fingerprint": f"{cluster}/{broker}/{name}",
            "cluster_id": cluster,
            "broker_id": broker,
            "at": when,
            "from_state": left,
            "to_state": entered,
            "kind": "BROKER_DOWN",
            "evidence": json.dumps(signs),
        }
