"""The commands of this package."""

from fleetgauge_core.runtime.command_table import CommandEntry

COMMANDS = {
    "init": CommandEntry(
        "fleetgauge_probes.connection.init:init",
        "Write a fleet file with comments; in a terminal, ask for values that no option gives.",
    ),
    "probe": CommandEntry(
        "fleetgauge_probes.cli:probe",
        "Probe every broker of the fleet with 100 messages a minute on each of two legs, until stopped.",
    ),
    "validate": CommandEntry(
        "fleetgauge_probes.connection.validate:validate",
        "Check a fleet file and summarize it; with --connect, check its clusters and notifiers as well.",
    ),
}
