"""Group a week's minutes into contiguous bad and unmeasured periods, and count the worst brokers."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from fleetgauge_core import tables
from fleetgauge_core.contract.failure_codes import find_agent_fault
from fleetgauge_dashboards.links import MINUTE
from fleetgauge_dashboards.views.deciding_minutes import Row, find_worst_home

#: The columns of a file of minutes: silver's, and whether the minute is over the objective.
MINUTE_COLUMNS = (*tables.CLUSTER_MINUTES.column_names, "bad")


@dataclass(frozen=True, slots=True)
class BadPeriod:
    """Adjacent bad minutes from ``start`` up to ``end``.

    ``broker_id`` is the broker that was worst most often.
    """

    start: datetime
    end: datetime
    minutes: int
    broker_id: int | None
    worst_us: int
    causes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UnmeasuredPeriod:
    """Adjacent minutes in which not every expected broker was measured.

    ``fewest_measured`` is the minimum of measured brokers; ``reasons`` are the agent's own faults for which
    brokers were not measured, in words.
    """

    start: datetime
    end: datetime
    minutes: int
    fewest_measured: int
    brokers_expected: int
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WorstHomeCount:
    """In how many minutes, and in how many bad minutes, a broker was the worst home."""

    broker_id: int
    minutes: int
    bad_minutes: int


def is_bad_minute(minute: Row, objective_us: int | None) -> bool:
    """Return whether the minute's p99 with failures is over the objective."""
    censored = minute["latency_p99_censored_us"]
    return censored is not None and objective_us is not None and censored > objective_us


def mark_bad_minutes(cluster_id: str, minutes: Iterable[Row], objective_us: int | None) -> list[Row]:
    """Return a cluster's minutes with the columns of ``MINUTE_COLUMNS``."""
    return [{"cluster_id": cluster_id, **row, "bad": is_bad_minute(row, objective_us)} for row in minutes]


def find_bad_periods(minutes: Iterable[Row], objective_us: int | None) -> tuple[BadPeriod, ...]:
    """Return the periods of adjacent bad minutes, in time order."""
    bad = [minute for minute in minutes if is_bad_minute(minute, objective_us)]
    return tuple(_bad_stretch(rows) for rows in _contiguous(bad))


def find_unmeasured_periods(
    minutes: Iterable[Row], unmeasured_brokers: Iterable[Row] = ()
) -> tuple[UnmeasuredPeriod, ...]:
    """Return the periods of adjacent minutes that were not completely measured, in time order.

    ``unmeasured_brokers`` are rows of silver/broker_minutes, whose failures may say why.
    """
    reasons: dict[datetime, set[str]] = {}
    for row in unmeasured_brokers:
        faults = (find_agent_fault(code) for code in dict(row["failures"] or ()))
        reasons.setdefault(row["minute"], set()).update(fault.description for fault in faults if fault)
    gaps = [minute for minute in minutes if minute["brokers_measured"] < minute["brokers_expected"]]
    return tuple(
        UnmeasuredPeriod(
            *_bounds(rows),
            len(rows),
            min(row["brokers_measured"] for row in rows),
            max(row["brokers_expected"] for row in rows),
            tuple(sorted(set().union(*(reasons.get(row["minute"], ()) for row in rows)))),
        )
        for rows in _contiguous(gaps)
    )


def count_worst_homes(minutes: Sequence[Row], objective_us: int | None) -> tuple[WorstHomeCount, ...]:
    """Return how often each broker was the worst home, most bad minutes first."""
    all_minutes = Counter(home for minute in minutes if (home := find_worst_home(minute)) is not None)
    bad = Counter(find_worst_home(minute) for minute in minutes if is_bad_minute(minute, objective_us))
    counts = (WorstHomeCount(home, count, bad[home]) for home, count in all_minutes.items())
    return tuple(
        sorted(
            counts,
            key=lambda home_count: (-home_count.bad_minutes, -home_count.minutes, home_count.broker_id),
        )
    )


def _bad_stretch(rows: Sequence[Row]) -> BadPeriod:
    homes = Counter(home for row in rows if (home := find_worst_home(row)) is not None)
    return BadPeriod(
        *_bounds(rows),
        len(rows),
        min(homes, key=lambda home: (-homes[home], home), default=None),
        max(row["latency_p99_censored_us"] for row in rows),
        tuple(sorted({row["cause"] for row in rows if row["cause"]})),
    )


def _contiguous(minutes: Iterable[Row]) -> list[list[Row]]:
    periods: list[list[Row]] = []
    for row in sorted(minutes, key=lambda row: row["minute"]):
        if periods and row["minute"] - periods[-1][-1]["minute"] == MINUTE:
            periods[-1].append(row)
        else:
            periods.append([row])
    return periods


def _bounds(rows: Sequence[Row]) -> tuple[datetime, datetime]:
    return rows[0]["minute"].astimezone(UTC), rows[-1]["minute"].astimezone(UTC) + MINUTE
