"""What is sick in a fleet: a pure fold over pulses. State and pulse in, state and findings out."""

from fleetgauge_pipelines.detection.finding import Chain, Finding, Phase, Subject, recalled
from fleetgauge_pipelines.detection.fold import (
    FleetState,
    HistoryOf,
    expect,
    judge,
    learnt,
    pass_time,
    remember,
)
from fleetgauge_pipelines.detection.signs import Signs, read_signs
from fleetgauge_pipelines.detection.slowness import History, Took
from fleetgauge_pipelines.detection.thresholds import DEFAULT_THRESHOLDS, Thresholds

__all__ = [
    "DEFAULT_THRESHOLDS",
    "Chain",
    "Finding",
    "FleetState",
    "History",
    "HistoryOf",
    "Phase",
    "Signs",
    "Subject",
    "Thresholds",
    "Took",
    "expect",
    "judge",
    "learnt",
    "pass_time",
    "read_signs",
    "recalled",
    "remember",
]
