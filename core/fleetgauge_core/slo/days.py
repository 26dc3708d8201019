"""The UTC days by which bronze and silver are laid out."""

from collections.abc import Iterable
from datetime import date, datetime, timedelta


def days_of(spans: Iterable[tuple[datetime, datetime]]) -> list[date]:
    """Every UTC day that one of the spans touches."""
    days: set[date] = set()
    for lo, hi in spans:
        days |= {lo.date() + timedelta(days=n) for n in range((hi.date() - lo.date()).days + 1)}
    return sorted(days)
