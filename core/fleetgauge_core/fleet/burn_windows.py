"""The pairs of windows over which an error budget's burn is judged, as data.

A pair that fires has spent a share of its period's budget: 13.44 over one hour
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
    """Fires when the budget burns at ``factor`` times its even pace or faster, over both lengths."""

    severity: Severity
    long_minutes: int
    short_minutes: int
    factor: float

    @property
    def name(self) -> str:
        return f"{_length(self.long_minutes)}/{_length(self.short_minutes)}"

    @property
    def least_objective(self) -> float:
        """Under it even a total outage burns slower than the factor; four digits, rounded up."""
        return math.ceil((1 - 1 / self.factor) * 10_000) / 10_000

    def can_fire(self, objective: float) -> bool:
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


def deaf_window(windows: Sequence[BurnWindow], objective: float) -> BurnWindow | None:
    """The window that asks most of an objective, if that is more than the objective gives."""
    hardest = max(windows, key=lambda window: window.factor)
    return None if hardest.can_fire(objective) else hardest


def _length(minutes: int) -> str:
    for size, unit in ((1440, "d"), (60, "h")):
        if minutes % size == 0:
            return f"{minutes // size}{unit}"
    return f"{minutes}m"
