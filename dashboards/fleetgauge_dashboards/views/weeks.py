"""Which of the weeks that a lake holds is shown."""

from collections.abc import Sequence
from datetime import date, timedelta


def shown_week(weeks: Sequence[date], asked: date | None) -> date | None:
    """The week that has the asked day, or the newest if none is asked; None where there is no such week."""
    if asked is None:
        return max(weeks, default=None)
    return max((week for week in weeks if week <= asked < week + timedelta(days=7)), default=None)
