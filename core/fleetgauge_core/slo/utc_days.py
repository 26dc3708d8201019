"""UTC days, by which the bronze and silver tables are partitioned."""

from collections.abc import Iterable
from datetime import date, datetime, timedelta


def list_utc_days(spans: Iterable[tuple[datetime, datetime]]) -> list[date]:
    """Return every UTC day that one of the (start, end) spans touches, ascending."""
    days: set[date] = set()
    for start, end in spans:
        days |= {start.date() + timedelta(days=n) for n in range((end.date() - start.date()).days + 1)}
    return sorted(days)
