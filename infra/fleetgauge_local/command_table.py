"""The commands of this package."""

from fleetgauge_core.runtime.command_table import CommandEntry

COMMANDS = {
    "demo": CommandEntry(
        "fleetgauge_local.demo_cli:demo",
        "Run real Kafka clusters and all Fleetgauge services on this machine; ^C ends them.",
        requires=("platformdirs", "psutil"),
    ),
    "doctor": CommandEntry(
        "fleetgauge_local.doctor.cli:doctor",
        "Check whether this machine meets the requirements of the demo; exit code 1 if it does not.",
        requires=("platformdirs", "psutil"),
    ),
    "fleet": CommandEntry(
        "fleetgauge_local.cli:fleet",
        "Run real Kafka clusters on this machine and inject faults into them.",
        requires=("platformdirs", "psutil"),
    ),
}
