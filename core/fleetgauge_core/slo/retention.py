"""How long a lake keeps what, and from which day on."""

from collections.abc import Iterable
from datetime import date, datetime, timedelta

from fleetgauge_core.slo.weeks import WeekSpan

#: Bronze. The stream takes no older minutes: it could not compute them from all their samples.
SAMPLES_KEPT = timedelta(days=35)
#: Silver: thirteen months, so that a month can be held against the same one a year before.
MINUTES_KEPT = timedelta(days=396)

#: How long after midnight a day still moves.
_SETTLES = timedelta(hours=1)


def first_kept_day(clock: datetime, kept: timedelta, unfinished: Iterable[WeekSpan]) -> date:
    """The first UTC day that stays: every earlier one is wholly older and of no unfinished week."""
    return min([(clock - kept).date(), *(span.start.date() for span in unfinished)])


def last_closed_day(clock: datetime) -> date:
    """The newest UTC day that no longer gets records and changes as a matter of course."""
    return (clock - _SETTLES).date() - timedelta(days=1)
