"""A week's minutes in contiguous stretches: the bad ones, those not measured, and who was worst."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from fleetgauge_core import tables
from fleetgauge_dashboards.links import MINUTE
from fleetgauge_dashboards.views.deciding_minutes import Row, worst_home

#: What a file of minutes holds: silver's columns, and whether the minute is over the objective.
MINUTE_COLUMNS = (*tables.CLUSTER_MINUTES.names, "bad")


@dataclass(frozen=True, slots=True)
class BadStretch:
    """Neighbouring bad minutes from ``start`` up to ``end``; the broker that was worst most often."""

    start: datetime
    end: datetime
    minutes: int
    broker_id: int | None
    worst_us: int
    causes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UnmeasuredStretch:
    """Neighbouring minutes in which not every expected broker was measured, and how few at the worst."""

    start: datetime
    end: datetime
    minutes: int
    fewest_measured: int
    brokers_expected: int


@dataclass(frozen=True, slots=True)
class WorstHome:
    """In how many minutes, and how many bad ones, a broker was the worst home."""

    broker_id: int
    minutes: int
    bad_minutes: int


def is_bad(minute: Row, objective_us: int | None) -> bool:
    censored = minute["latency_p99_censored_us"]
    return censored is not None and objective_us is not None and censored > objective_us


def with_bad(cluster_id: str, minutes: Iterable[Row], objective_us: int | None) -> list[Row]:
    """A cluster's minutes in ``MINUTE_COLUMNS``."""
    return [{"cluster_id": cluster_id, **row, "bad": is_bad(row, objective_us)} for row in minutes]


def bad_stretches(minutes: Iterable[Row], objective_us: int | None) -> tuple[BadStretch, ...]:
    bad = [minute for minute in minutes if is_bad(minute, objective_us)]
    return tuple(_bad_stretch(rows) for rows in _contiguous(bad))


def unmeasured_stretches(minutes: Iterable[Row]) -> tuple[UnmeasuredStretch, ...]:
    gaps = [minute for minute in minutes if minute["brokers_measured"] < minute["brokers_expected"]]
    return tuple(
        UnmeasuredStretch(
            *_bounds(rows),
            len(rows),
            min(row["brokers_measured"] for row in rows),
            max(row["brokers_expected"] for row in rows),
        )
        for rows in _contiguous(gaps)
    )


def worst_homes(minutes: Sequence[Row], objective_us: int | None) -> tuple[WorstHome, ...]:
    """Most bad minutes first."""
    every = Counter(home for minute in minutes if (home := worst_home(minute)) is not None)
    bad = Counter(worst_home(minute) for minute in minutes if is_bad(minute, objective_us))
    homes = (WorstHome(home, count, bad[home]) for home, count in every.items())
    return tuple(sorted(homes, key=lambda one: (-one.bad_minutes, -one.minutes, one.broker_id)))


def _bad_stretch(rows: Sequence[Row]) -> BadStretch:
    homes = Counter(home for row in rows if (home := worst_home(row)) is not None)
    return BadStretch(
        *_bounds(rows),
        len(rows),
        min(homes, key=lambda home: (-homes[home], home), default=None),
        max(row["latency_p99_censored_us"] for row in rows),
        tuple(sorted({row["cause"] for row in rows if row["cause"]})),
    )


def _contiguous(minutes: Iterable[Row]) -> list[list[Row]]:
    found: list[list[Row]] = []
    for row in sorted(minutes, key=lambda row: row["minute"]):
        if found and row["minute"] - found[-1][-1]["minute"] == MINUTE:
            found[-1].append(row)
        else:
            found.append([row])
    return found


def _bounds(rows: Sequence[Row]) -> tuple[datetime, datetime]:
    return rows[0]["minute"].astimezone(UTC), rows[-1]["minute"].astimezone(UTC) + MINUTE
