"""Weeks that the quality gate holds back: what a page shows of them is older than its data."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from fleetgauge_dashboards.reader import BrokenWeek


@dataclass(frozen=True, slots=True)
class HeldBack:
    """A week, since when, what it breaks, and whether a good one was written before."""

    week: date
    since: datetime
    expectations: tuple[str, ...]
    shown: bool


def held_back(broken: Sequence[BrokenWeek], written: Collection[date]) -> tuple[HeldBack, ...]:
    """Newest first; ``written`` are the weeks that the lake has."""
    weeks = sorted({row.week for row in broken}, reverse=True)
    return tuple(_held_back([row for row in broken if row.week == week], week in written) for week in weeks)


def _held_back(broken: Sequence[BrokenWeek], shown: bool) -> HeldBack:
    expectations = tuple(sorted(row.expectation for row in broken))
    return HeldBack(broken[0].week, min(row.at for row in broken), expectations, shown)
