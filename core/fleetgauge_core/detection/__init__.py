"""What is wrong in a fleet: pure folds over pulses and over minutes."""

from fleetgauge_core.detection.budgets import (
    BURNS,
    REMEMBERED,
    Budget,
    Budgets,
    Goal,
    close,
    count,
    explain,
    learn,
    remember_budgets,
    retire_budgets,
)
from fleetgauge_core.detection.episodes import Episode, episodes
from fleetgauge_core.detection.finding import (
    Chain,
    Finding,
    Phase,
    Subject,
    recalled,
)
from fleetgauge_core.detection.fold import (
    FleetState,
    HistoryOf,
    adopt,
    expect,
    judge,
    learnt,
    pass_time,
    remember,
    retire,
    rewound,
)
from fleetgauge_core.detection.signs import Signs, read_signs
from fleetgauge_core.detection.slowness import History, Took
from fleetgauge_core.detection.thresholds import DEFAULT_THRESHOLDS, Thresholds
from fleetgauge_core.slo.burn import BurnMinute

__all__ = [
    "BURNS",
    "DEFAULT_THRESHOLDS",
    "REMEMBERED",
    "Budget",
    "Budgets",
    "BurnMinute",
    "Chain",
    "Episode",
    "Finding",
    "FleetState",
    "Goal",
    "History",
    "HistoryOf",
    "Phase",
    "Signs",
    "Subject",
    "Thresholds",
    "Took",
    "adopt",
    "close",
    "count",
    "episodes",
    "expect",
    "explain",
    "judge",
    "learn",
    "learnt",
    "pass_time",
    "read_signs",
    "recalled",
    "remember",
    "remember_budgets",
    "retire",
    "retire_budgets",
    "rewound",
]
