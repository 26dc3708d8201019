"""`python -m fleetgauge_probes` is `fleetgauge`."""

from fleetgauge_probes.cli import main

main()
