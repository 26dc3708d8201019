"""Read a lake's tables without a JVM: small frozen rows, and frames of minutes."""

from fleetgauge_dashboards.reader.lake import WHOLE, Lake
from fleetgauge_dashboards.reader.rows import BrokenWeek, ClusterWeek, FleetWeek, HealthEvent
from fleetgauge_dashboards.reader.table import LakeError, TableReader, UnreadableError, column, read_once

__all__ = [
    "WHOLE",
    "BrokenWeek",
    "ClusterWeek",
    "FleetWeek",
    "HealthEvent",
    "Lake",
    "LakeError",
    "TableReader",
    "UnreadableError",
    "column",
    "read_once",
]
