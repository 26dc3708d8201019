"""Find weeks that the quality gate holds back; pages then show an older result, or none."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from fleetgauge_dashboards.reader import FailedWeekCheck


@dataclass(frozen=True, slots=True)
class HeldBackWeek:
    """A week that is held back: since when, which expectations fail, and whether an earlier result exists."""

    week: date
    since: datetime
    expectations: tuple[str, ...]
    has_earlier_result: bool


def group_held_back_weeks(
    checks: Sequence[FailedWeekCheck], written: Collection[date]
) -> tuple[HeldBackWeek, ...]:
    """Return the weeks with failed checks, newest first; ``written`` are the weeks that the lake has."""
    weeks = sorted({check.week for check in checks}, reverse=True)
    return tuple(
        _held_back([check for check in checks if check.week == week], week in written) for week in weeks
    )


def _held_back(checks: Sequence[FailedWeekCheck], has_earlier_result: bool) -> HeldBackWeek:
    expectations = tuple(sorted(check.expectation for check in checks))
    return HeldBackWeek(checks[0].week, min(check.at for check in checks), expectations, has_earlier_result)
