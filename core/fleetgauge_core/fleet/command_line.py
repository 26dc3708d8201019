"""Read the fleet file for a command; an error in it ends the command with one line and exit code 2.

Not exported by the package: pure modules import the fleet's values without the command line.
"""

from pathlib import Path

from fleetgauge_core.fleet.load import FleetFileError, load_fleet
from fleetgauge_core.fleet.model import Fleet
from fleetgauge_core.fleet.telemetry import Telemetry
from fleetgauge_core.runtime.cli import InputError


def load_fleet_or_exit(path: Path) -> Fleet:
    """Return the fleet that a file describes.

    Raises: InputError when the file cannot be read or breaks the schema.
    """
    try:
        return load_fleet(path)
    except FleetFileError as error:
        raise InputError(str(error)) from error


def telemetry_or_exit(fleet: Fleet, path: Path) -> Telemetry:
    """Return the telemetry cluster of the fleet that was loaded from ``path``.

    Raises: InputError when the fleet file names none.
    """
    if fleet.telemetry is None:
        raise InputError(
            f"{path}: telemetry.bootstrap is missing: set it to the telemetry cluster's bootstrap servers"
        )
    return fleet.telemetry
