"""The commands of this package as `fleetgauge --help` lists them, without importing them."""

from fleetgauge_core.runtime.cli import CommandSummary

_REQUIRES = ("platformdirs", "psutil")

SUMMARIES = {
    "demo": CommandSummary(
        "Run real Kafka clusters and all Fleetgauge services on this machine; ^C ends them.", _REQUIRES
    ),
    "doctor": CommandSummary(
        "Check whether this machine meets the requirements of the demo; exit code 1 if it does not.",
        _REQUIRES,
    ),
    "fleet": CommandSummary(
        "Run real Kafka clusters on this machine and inject faults into them.", _REQUIRES
    ),
}
