"""`python -m fleetgauge_core` is `fleetgauge`."""

from fleetgauge_core.runtime.cli import main

main()
