"""Which broker is sick: a pure fold over pulses. State and pulse in, state and findings out."""

from fleetgauge_pipelines.detection.fold import Finding, FleetState, Kind, Phase, judge, remember
from fleetgauge_pipelines.detection.signs import DEFAULT_THRESHOLDS, Signs, Thresholds, read_signs

__all__ = [
    "DEFAULT_THRESHOLDS",
    "Finding",
    "FleetState",
    "Kind",
    "Phase",
    "Signs",
    "Thresholds",
    "judge",
    "read_signs",
    "remember",
]
