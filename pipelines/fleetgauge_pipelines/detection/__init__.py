"""What is sick in a fleet: a pure fold over pulses. State and pulse in, state and findings out."""

from fleetgauge_pipelines.detection.finding import Chain, Finding, Phase, Subject
from fleetgauge_pipelines.detection.fold import FleetState, expect, judge, pass_time, remember
from fleetgauge_pipelines.detection.signs import Signs, read_signs
from fleetgauge_pipelines.detection.thresholds import DEFAULT_THRESHOLDS, Thresholds

__all__ = [
    "DEFAULT_THRESHOLDS",
    "Chain",
    "Finding",
    "FleetState",
    "Phase",
    "Signs",
    "Subject",
    "Thresholds",
    "expect",
    "judge",
    "pass_time",
    "read_signs",
    "remember",
]
