"""Windows of multiwindow, multi-burn-rate alerts, as data.

A window that fires has spent a share of the budget of its period: burn rate 13.44 over one hour
of a week is 8%. The 7-day set is sloth's (slok/sloth, examples/windows/7d.yaml),
the 30-day set is the SRE Workbook's (chapter 5, "Alerting on SLOs").
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Severity = Literal["page", "ticket"]
PeriodDays = Literal[7, 30]


@dataclass(frozen=True, slots=True)
class BurnWindow:
    """An alert window that fires when the burn rate is at least ``factor`` over both its lengths.

    Burn rate 1 spends the error budget exactly within its period.
    """

    severity: Severity
    long_minutes: int
    short_minutes: int
    factor: float

    @property
    def name(self) -> str:
        """Both lengths, such as "1h/5m"."""
        return f"{_length(self.long_minutes)}/{_length(self.short_minutes)}"

    @property
    def minimum_objective(self) -> float:
        """Lowest objective with which the window can fire, rounded up to four digits."""
        return math.ceil((1 - 1 / self.factor) * 10_000) / 10_000

    def can_fire(self, objective: float) -> bool:
        """Return whether a total outage reaches the burn rate: it burns at 1 / (1 - objective)."""
        return self.factor * (1 - objective) <= 1


BURN_WINDOWS: dict[PeriodDays, tuple[BurnWindow, ...]] = {
    7: (
        BurnWindow("page", 60, 5, 13.44),
        BurnWindow("page", 360, 30, 3.5),
        BurnWindow("ticket", 1440, 120, 1.4),
        BurnWindow("ticket", 4320, 360, 0.98),
    ),
    30: (
        BurnWindow("page", 60, 5, 14.4),
        BurnWindow("page", 360, 30, 6),
        BurnWindow("ticket", 1440, 120, 3),
        BurnWindow("ticket", 4320, 360, 1),
    ),
}


def find_unreachable_window(windows: Sequence[BurnWindow], objective: float) -> BurnWindow | None:
    """Return the window with the highest burn rate if an objective can never reach it, else None."""
    highest = max(windows, key=lambda window: window.factor)
    return None if highest.can_fire(objective) else highest


def _length(minutes: int) -> str:
    for size, unit in ((1440, "d"), (60, "h")):
        if minutes % size == 0:
            return f"{minutes // size}{unit}"
    return f"{minutes}m"
