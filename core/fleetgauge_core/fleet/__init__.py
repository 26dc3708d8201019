"""The fleet file, fleet.yaml, as validated and immutable values."""

from fleetgauge_core.fleet.burn_windows import BURN_WINDOWS, BurnWindow
from fleetgauge_core.fleet.change_source import WHOLE_FLEET, ChangeSource, split_segment
from fleetgauge_core.fleet.cluster import Cluster
from fleetgauge_core.fleet.load import FleetFileError, load_fleet, require_cluster, require_telemetry
from fleetgauge_core.fleet.model import Fleet
from fleetgauge_core.fleet.notifier import NO_PROXY, BasicAuth, Notifier, is_one_line
from fleetgauge_core.fleet.recovery import (
    Capacity,
    FailoverGroups,
    Mirror,
    Primaries,
    Recovery,
    RecoveryLimits,
    RecoveryObjectives,
    Tracers,
)
from fleetgauge_core.fleet.security import (
    NO_SECURITY,
    ClusterAccess,
    OAuth,
    Sasl,
    Secret,
    SecretError,
    Security,
    Tls,
    read_file_version,
)
from fleetgauge_core.fleet.service_levels import BurnAlerts, Objective, Week
from fleetgauge_core.fleet.telemetry import StateTopic, Telemetry, Topic, Topics
from fleetgauge_core.fleet.tls_files import explain_tls_error, load_tls_context

__all__ = [
    "BURN_WINDOWS",
    "NO_PROXY",
    "NO_SECURITY",
    "WHOLE_FLEET",
    "BasicAuth",
    "BurnAlerts",
    "BurnWindow",
    "Capacity",
    "ChangeSource",
    "Cluster",
    "ClusterAccess",
    "FailoverGroups",
    "Fleet",
    "FleetFileError",
    "Mirror",
    "Notifier",
    "OAuth",
    "Objective",
    "Primaries",
    "Recovery",
    "RecoveryLimits",
    "RecoveryObjectives",
    "Sasl",
    "Secret",
    "SecretError",
    "Security",
    "StateTopic",
    "Telemetry",
    "Tls",
    "Topic",
    "Topics",
    "Tracers",
    "Week",
    "explain_tls_error",
    "is_one_line",
    "load_fleet",
    "load_tls_context",
    "read_file_version",
    "require_cluster",
    "require_telemetry",
    "split_segment",
]
