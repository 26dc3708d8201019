"""The levels of a cluster's week from its cluster-minutes, in plain Python.

It is the definition of gold/cluster_weeks, which the pipeline computes column by column; here for weeks that
are asked for and not stored, and for minutes of which brokers are excluded.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from fleetgauge_core.slo.corrections import ExcludedRange
from fleetgauge_core.slo.levels import LATENCY_BUDGET_DIVISOR
from fleetgauge_core.slo.quantile import quantile, quantile_from_bad_side

Row = Mapping[str, Any]


def compute_week_levels(
    minutes: Iterable[Row], latency_objective_us: int, availability_objective: float
) -> dict[str, Any]:
    """Return the columns of gold/cluster_weeks that corrections change, without objectives.

    ``minutes`` are rows of silver/cluster_minutes of one cluster's week that count; without any, levels are
    None and budgets are zero, as in a week of which corrections exclude every minute.
    """
    minutes = sorted(minutes, key=lambda row: row["minute"])
    censored_us = _ascending(minutes, "latency_p99_censored_us")
    attempted = sum(row["attempted"] for row in minutes)
    bad_minutes = sum(us > latency_objective_us for us in censored_us)
    budget_minutes = len(minutes) / LATENCY_BUDGET_DIVISOR
    # Added up one by one in the order of the minutes, as the pipeline does, so that the bits are the same.
    spent_minutes = 0.0
    for row in minutes:
        if row["availability_pooled"] is not None:
            spent_minutes += 1 - row["availability_pooled"]
    return {
        "latency_p99_us": quantile(99, _ascending(minutes, "latency_p99_us")),
        "latency_p99_censored_us": quantile(99, censored_us),
        "availability_p99": quantile_from_bad_side(99, _ascending(minutes, "availability")),
        "availability_ratio": sum(row["succeeded"] for row in minutes) / attempted if attempted else None,
        "bad_minutes": bad_minutes,
        "latency_budget_minutes": budget_minutes,
        "latency_budget_left_minutes": budget_minutes - bad_minutes if minutes else None,
        "availability_budget_minutes": (1 - availability_objective) * len(minutes),
        "availability_spent_minutes": spent_minutes,
        "minutes_measured": sum(row["brokers_measured"] > 0 for row in minutes),
        "minutes_expected": len(minutes),
    }


def _ascending(minutes: Sequence[Row], name: str) -> list[Any]:
    return sorted(row[name] for row in minutes if row[name] is not None)


def apply_corrections(
    minutes: Iterable[Row], broker_minutes: Iterable[Row], excluded: Sequence[ExcludedRange]
) -> list[Row]:
    """Return the minutes of a cluster that count; one with excluded brokers is computed from its others.

    ``broker_minutes`` are rows of silver/broker_minutes of at least the excluded brokers' minutes.
    """
    by_minute: dict[datetime, list[Row]] = defaultdict(list)
    for row in broker_minutes:
        if row["leg"] == "client":
            by_minute[row["minute"]].append(row)
    counted = []
    for row in minutes:
        brokers = {each.broker_id for each in excluded if each.starts <= row["minute"] < each.ends}
        clients = by_minute[row["minute"]] if brokers else []
        if None in brokers:
            continue
        if any(client["broker_id"] in brokers for client in clients):
            remaining = [client for client in clients if client["broker_id"] not in brokers]
            counted += [_compute_minute(row["minute"], remaining)] if remaining else []
        else:
            counted.append(row)
    return counted


def _compute_minute(minute: datetime, clients: Sequence[Row]) -> Row:
    """Return the columns of silver/cluster_minutes that a week's levels need."""
    measured = [client for client in clients if client["measured"]]
    attempted, succeeded = (sum(client[name] for client in measured) for name in ("attempted", "succeeded"))
    return {
        "minute": minute,
        "latency_p99_us": max(_present(measured, "latency_p99_us"), default=None),
        "latency_p99_censored_us": max(_present(measured, "latency_p99_censored_us"), default=None),
        "availability": min(_present(measured, "availability"), default=None),
        "availability_pooled": succeeded / attempted if attempted else None,
        "attempted": attempted,
        "succeeded": succeeded,
        "brokers_measured": len(measured),
    }


def _present(rows: Sequence[Row], name: str) -> list[Any]:
    return [row[name] for row in rows if row[name] is not None]
