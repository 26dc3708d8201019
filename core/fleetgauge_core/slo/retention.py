"""How long the lake's layers are retained, and which days expire."""

from collections.abc import Iterable
from datetime import date, datetime, timedelta

from fleetgauge_core.slo.weeks import WeekSpan

#: Retention of bronze. The stream rejects older records: silver could not be recomputed from all samples.
SAMPLE_RETENTION = timedelta(days=35)
#: Retention of silver: thirteen months, so that a month can be compared with the same month a year before.
MINUTE_RETENTION = timedelta(days=396)

#: Records of a day still arrive for so long after midnight.
_LATE_RECORDS = timedelta(hours=1)


def first_kept_day(clock: datetime, kept: timedelta, unfinished: Iterable[WeekSpan]) -> date:
    """Return the first UTC day to retain.

    Every earlier day is entirely older than ``kept`` and belongs to none of the unfinished weeks.
    """
    return min([(clock - kept).date(), *(span.start.date() for span in unfinished)])


def last_closed_day(clock: datetime) -> date:
    """Return the latest UTC day that is not expected to receive records any more."""
    return (clock - _LATE_RECORDS).date() - timedelta(days=1)
