"""Run the command `fleetgauge` as `python -m fleetgauge_core`."""

from fleetgauge_core.runtime.entry_point import run

run()
