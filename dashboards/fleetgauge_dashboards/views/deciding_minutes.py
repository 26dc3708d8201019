"""From a week's number back to the minutes that decide it: the rank, and what stands at it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from fleetgauge_core.slo.quantile import rank
from fleetgauge_dashboards.units import NOTHING, percent

Row = Mapping[str, Any]

#: Many minutes may share a value, all of a good week's an availability of 1; so many are named.
NAMED = 5


@dataclass(frozen=True, slots=True)
class DecidingMinute:
    """A minute with the week's very value, and the home broker that it came from."""

    minute: datetime
    broker_id: int | None


@dataclass(frozen=True, slots=True)
class Decided:
    """One number of the week: its rank among the minutes, in words too, and the minutes that have it.

    ``position`` counts ascending from 1 and ``found`` is what stands there, before corrections; None
    where minutes are no longer held. ``sharing`` is how many minutes have ``value``.
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
    """Where a week's number comes from: which column of its minutes, which of them is worst."""

    name: str
    column: str
    home: Callable[[Row], int | None]
    more_is_worse: bool
    shown: Callable[[float | None], str]


def _exact_ms(us: float | None) -> str:
    """To the microsecond: two minutes that differ must look different here."""
    return NOTHING if us is None else f"{us / 1000:,.3f} ms"


def worst_home(minute: Row) -> int | None:
    """Whose p99 it is once failures count: where they raise it, the home with the most of them."""
    succeeded, censored = minute["latency_p99_us"], minute["latency_p99_censored_us"]
    failed = succeeded is None or (censored is not None and censored > succeeded)
    home: int | None = minute["availability_worst_home" if failed else "latency_worst_home"]
    return home


_METRICS = (
    _Metric("latency_p99_us", "latency_p99_us", lambda m: m["latency_worst_home"], True, _exact_ms),
    _Metric("latency_p99_censored_us", "latency_p99_censored_us", worst_home, True, _exact_ms),
    _Metric("availability_p99", "availability", lambda m: m["availability_worst_home"], False, percent),
)


def decided(week: Row, minutes: Sequence[Row], *, complete: bool) -> tuple[Decided, ...]:
    """The week's p99s; ``complete`` says that ``minutes`` are all of the week's, not what evidence kept."""
    return tuple(_decided(metric, week, minutes, complete) for metric in _METRICS)


def _decided(metric: _Metric, week: Row, minutes: Sequence[Row], complete: bool) -> Decided:
    value, raw = week[metric.name], raw_of(week, metric.name)
    ascending = sorted(one[metric.column] for one in minutes if one[metric.column] is not None)
    sharing = [one for one in minutes if value is not None and one[metric.column] == value]
    position = _position(metric, len(ascending)) if complete and ascending else None
    found = None if position is None else ascending[position - 1]
    return Decided(
        metric.name,
        value,
        raw,
        len(ascending) if complete else None,
        position,
        found,
        _words(metric, len(ascending), position, found, value, raw),
        len(sharing),
        tuple(
            DecidingMinute(one["minute"].astimezone(UTC), metric.home(one))
            for one in sorted(sharing, key=lambda one: one["minute"])[:NAMED]
        ),
    )


def raw_of(week: Row, name: str) -> Any:
    """The number before corrections; weeks older than corrections have but one."""
    raw = week.get(f"{name}_raw")
    return week[name] if raw is None else raw


def _position(metric: _Metric, n: int) -> int:
    return rank(99, n) if metric.more_is_worse else n - rank(99, n) + 1


def _words(
    metric: _Metric, n: int, position: int | None, found: float | None, value: float | None, raw: float | None
) -> str:
    if position is None:
        return f"{metric.shown(value)}, as the week's row has it"
    side = "" if metric.more_is_worse else f" ({ordinal(rank(99, n))} from the best)"
    words = (
        f"{n:,} minutes, rank ceil(0.99 x {n:,}) = {rank(99, n):,}: "
        f"the {ordinal(position)} of {n:,} ascending{side} is {metric.shown(found)}"
    )
    return words if value == raw else f"{words}; with corrections {metric.shown(value)}"


def ordinal(number: int) -> str:
    """9,980th, 1st, 112th."""
    teens = 10 <= number % 100 <= 20
    return f"{number:,}{'th' if teens else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"
