"""fleet.yaml: what the fleet is, validated once into frozen values."""

from fleetgauge_probes.fleet.burn_windows import BURN_WINDOWS, BurnWindow
from fleetgauge_probes.fleet.load import FleetFileError, load
from fleetgauge_probes.fleet.model import (
    BurnAlerts,
    Cluster,
    Fleet,
    Notifier,
    Objective,
    Telemetry,
    Topics,
    Week,
)

__all__ = [
    "BURN_WINDOWS",
    "BurnAlerts",
    "BurnWindow",
    "Cluster",
    "Fleet",
    "FleetFileError",
    "Notifier",
    "Objective",
    "Telemetry",
    "Topics",
    "Week",
    "load",
]
