"""Read a lake's tables without a JVM, as typed rows of small tables and as Arrow tables of minutes."""

from fleetgauge_dashboards.reader.lake import WHOLE_FLEET, LakeReader
from fleetgauge_dashboards.reader.rows import ClusterWeek, FailedWeekCheck, FleetWeek
from fleetgauge_dashboards.reader.table import LakeError, TableReader, UnreadableError, column, read_once

__all__ = [
    "WHOLE_FLEET",
    "ClusterWeek",
    "FailedWeekCheck",
    "FleetWeek",
    "LakeError",
    "LakeReader",
    "TableReader",
    "UnreadableError",
    "column",
    "read_once",
]
