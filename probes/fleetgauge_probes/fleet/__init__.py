"""fleet.yaml: what the fleet is, validated once into frozen values."""

from fleetgauge_probes.fleet.load import FleetFileError, load
from fleetgauge_probes.fleet.model import Cluster, Fleet, Notifier, Objective, Telemetry, Topics, Week

__all__ = [
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
