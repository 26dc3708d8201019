"""The commands of this package as `fleetgauge --help` lists them, without importing them."""

from fleetgauge_core.runtime.cli import CommandSummary

SUMMARIES = {
    "init": CommandSummary(
        "Write a fleet file with comments; in a terminal, ask for values that no option gives."
    ),
    "probe": CommandSummary(
        "Probe every broker of the fleet with 100 messages a minute on each of two legs, until stopped."
    ),
    "validate": CommandSummary(
        "Check a fleet file and summarize it; with --connect, check its clusters as well."
    ),
}
