"""fleet.yaml: what the fleet is, validated once into frozen values."""

from fleetgauge_core.fleet.burn_windows import BURN_WINDOWS, BurnWindow
from fleetgauge_core.fleet.load import FleetFileError, load
from fleetgauge_core.fleet.model import (
    BurnAlerts,
    Cluster,
    Fleet,
    Notifier,
    Objective,
    Telemetry,
    Topics,
    Week,
)
from fleetgauge_core.fleet.recovery import (
    Capacity,
    Mirror,
    Primaries,
    RecoveredGroups,
    Recovery,
    RecoveryLimits,
    RecoveryObjectives,
    Tracers,
)
from fleetgauge_core.fleet.security import (
    OPEN,
    Access,
    OAuth,
    Sasl,
    Secret,
    SecretError,
    Security,
    Tls,
    stamp,
)

__all__ = [
    "BURN_WINDOWS",
    "OPEN",
    "Access",
    "BurnAlerts",
    "BurnWindow",
    "Capacity",
    "Cluster",
    "Fleet",
    "FleetFileError",
    "Mirror",
    "Notifier",
    "OAuth",
    "Objective",
    "Primaries",
    "RecoveredGroups",
    "Recovery",
    "RecoveryLimits",
    "RecoveryObjectives",
    "Sasl",
    "Secret",
    "SecretError",
    "Security",
    "Telemetry",
    "Tls",
    "Topics",
    "Tracers",
    "Week",
    "load",
    "stamp",
]
