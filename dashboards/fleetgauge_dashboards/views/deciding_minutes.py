"""Trace a week's number back to the minutes that decide it: its rank, and the value at that rank."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from fleetgauge_core.slo.quantile import nearest_rank
from fleetgauge_dashboards.units import NO_VALUE, format_percent

Row = Mapping[str, Any]

#: The minutes that are listed of those that share a value; in a good week all minutes have availability 1.
MAX_NAMED_MINUTES = 5


@dataclass(frozen=True, slots=True)
class DecidingMinute:
    """A minute whose value is exactly the week's, and the home broker that the value came from."""

    minute: datetime
    broker_id: int | None


@dataclass(frozen=True, slots=True)
class DecidedNumber:
    """A number of the week, its rank among the minutes, and the minutes that have it.

    ``position`` counts ascending from 1, and ``found`` is the value there before corrections; both are None
    where minutes have expired. ``sharing`` counts the minutes with ``value``; ``words`` explain the rank.
    """

    metric: str
    value: float | None
    value_raw: float | None
    minutes: int | None
    position: int | None
    found: float | None
    words: str
    sharing: int
    deciding: tuple[DecidingMinute, ...]


@dataclass(frozen=True, slots=True)
class _Metric:
    """The origin of a week's number: the column of its minutes, and which of them is worst."""

    name: str
    column: str
    home: Callable[[Row], int | None]
    more_is_worse: bool
    format: Callable[[float | None], str]


def _exact_ms(us: float | None) -> str:
    """Return the latency to the microsecond, so that minutes that differ look different."""
    return NO_VALUE if us is None else f"{us / 1000:,.3f} ms"


def find_worst_home(minute: Row) -> int | None:
    """Return the home broker of the minute's p99 with failures.

    Where failures raise the p99, that is the home with the most failures.
    """
    p99_us, censored_us = minute["latency_p99_us"], minute["latency_p99_censored_us"]
    failures_decide = p99_us is None or (censored_us is not None and censored_us > p99_us)
    home: int | None = minute["availability_worst_home" if failures_decide else "latency_worst_home"]
    return home


_METRICS = (
    _Metric("latency_p99_us", "latency_p99_us", lambda minute: minute["latency_worst_home"], True, _exact_ms),
    _Metric("latency_p99_censored_us", "latency_p99_censored_us", find_worst_home, True, _exact_ms),
    _Metric(
        "availability_p99",
        "availability",
        lambda minute: minute["availability_worst_home"],
        False,
        format_percent,
    ),
)


def find_decided_numbers(week: Row, minutes: Sequence[Row], *, complete: bool) -> tuple[DecidedNumber, ...]:
    """Return the week's p99s with the minutes that decide them.

    ``complete`` says that ``minutes`` are all minutes of the week, not only those kept as evidence.
    """
    return tuple(_decided(metric, week, minutes, complete) for metric in _METRICS)


def _decided(metric: _Metric, week: Row, minutes: Sequence[Row], complete: bool) -> DecidedNumber:
    value, raw = week[metric.name], uncorrected_value(week, metric.name)
    ascending = sorted(row[metric.column] for row in minutes if row[metric.column] is not None)
    sharing = [row for row in minutes if value is not None and row[metric.column] == value]
    position = _position(metric, len(ascending)) if complete and ascending else None
    value_at_rank = None if position is None else ascending[position - 1]
    return DecidedNumber(
        metric.name,
        value,
        raw,
        len(ascending) if complete else None,
        position,
        value_at_rank,
        _words(metric, len(ascending), position, value_at_rank, value, raw),
        len(sharing),
        tuple(
            DecidingMinute(minute["minute"].astimezone(UTC), metric.home(minute))
            for minute in sorted(sharing, key=lambda row: row["minute"])[:MAX_NAMED_MINUTES]
        ),
    )


def uncorrected_value(week: Row, name: str) -> Any:
    """Return the number before corrections; weeks older than corrections have only one value."""
    raw = week.get(f"{name}_raw")
    return week[name] if raw is None else raw


def _position(metric: _Metric, count: int) -> int:
    return nearest_rank(99, count) if metric.more_is_worse else count - nearest_rank(99, count) + 1


def _words(
    metric: _Metric,
    count: int,
    position: int | None,
    value_at_rank: float | None,
    value: float | None,
    raw: float | None,
) -> str:
    if position is None:
        return f"{metric.format(value)}, taken from the week's row"
    from_best = "" if metric.more_is_worse else f" ({format_ordinal(nearest_rank(99, count))} from the best)"
    words = (
        f"{count:,} minutes, rank ceil(0.99 x {count:,}) = {nearest_rank(99, count):,}: "
        f"the {format_ordinal(position)} of {count:,} ascending{from_best} is {metric.format(value_at_rank)}"
    )
    return words if value == raw else f"{words}; with corrections {metric.format(value)}"


def format_ordinal(number: int) -> str:
    """Return the ordinal number as text, such as 9,980th, 1st or 112th."""
    teens = 10 <= number % 100 <= 20
    return f"{number:,}{'th' if teens else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"
