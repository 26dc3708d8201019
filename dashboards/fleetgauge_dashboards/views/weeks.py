"""Select which of a lake's weeks is shown."""

from collections.abc import Sequence
from datetime import date, timedelta


def find_week_of_day(weeks: Sequence[date], day: date | None) -> date | None:
    """Return the week that contains the day, or the newest if ``day`` is None.

    None where there is no such week.
    """
    if day is None:
        return max(weeks, default=None)
    return max((week for week in weeks if week <= day < week + timedelta(days=7)), default=None)
