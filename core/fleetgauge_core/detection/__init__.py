"""Detection of faults in a fleet: pure folds over probe pulses and probe minutes."""

from fleetgauge_core.detection.burn_fold import (
    BURN_CONDITIONS,
    LONGEST_BURN_WINDOW,
    exclude_paged_errors,
    fold_closed_minute,
    fold_minute_record,
    fold_past_minute_record,
    remove_cluster_burns,
    restore_burn_state,
)
from fleetgauge_core.detection.burn_state import BurnSettings, ClusterBurnState, FleetBurnState
from fleetgauge_core.detection.episodes import FindingEpisode, build_episodes
from fleetgauge_core.detection.finding import (
    Finding,
    FindingSubject,
    HealthCondition,
    HealthState,
    build_finding,
    parse_finding,
)
from fleetgauge_core.detection.fleet_health import FleetHealth, LatencyHistoryKey
from fleetgauge_core.detection.fleet_restore import (
    adopt_finding,
    find_changed_histories,
    restore_fleet_health,
)
from fleetgauge_core.detection.liveness_signs import LivenessSigns, read_liveness_signs
from fleetgauge_core.detection.pulse_fold import (
    detect_no_data,
    expect_pulses,
    fold_pulse,
    remove_clusters,
    rewind_clock,
)
from fleetgauge_core.detection.slowness import LatencyHistory, LatencyQuantiles
from fleetgauge_core.detection.thresholds import DEFAULT_THRESHOLDS, Thresholds
from fleetgauge_core.slo.burn import BurnMinute

__all__ = [
    "BURN_CONDITIONS",
    "DEFAULT_THRESHOLDS",
    "LONGEST_BURN_WINDOW",
    "BurnMinute",
    "BurnSettings",
    "ClusterBurnState",
    "Finding",
    "FindingEpisode",
    "FindingSubject",
    "FleetBurnState",
    "FleetHealth",
    "HealthCondition",
    "HealthState",
    "LatencyHistory",
    "LatencyHistoryKey",
    "LatencyQuantiles",
    "LivenessSigns",
    "Thresholds",
    "adopt_finding",
    "build_episodes",
    "build_finding",
    "detect_no_data",
    "exclude_paged_errors",
    "expect_pulses",
    "find_changed_histories",
    "fold_closed_minute",
    "fold_minute_record",
    "fold_past_minute_record",
    "fold_pulse",
    "parse_finding",
    "read_liveness_signs",
    "remove_cluster_burns",
    "remove_clusters",
    "restore_burn_state",
    "restore_fleet_health",
    "rewind_clock",
]
