"""The commands of this package."""

from fleetgauge_core.runtime.command_table import CommandEntry

COMMANDS = {
    "compare": CommandEntry(
        "fleetgauge_dashboards.terminal.compare:compare",
        "Compare clusters with different label values, or the same clusters before and after a change.",
        requires=("deltalake",),
    ),
    "dash": CommandEntry(
        "fleetgauge_dashboards.cli:dash",
        "Serve dashboards of a lake's service levels until interrupted.",
        requires=("dash", "deltalake"),
    ),
    "explain": CommandEntry(
        "fleetgauge_dashboards.terminal.explain:explain",
        "Explain a cluster's week: the minutes, brokers and probes that determine its service levels.",
        requires=("deltalake",),
    ),
    "report": CommandEntry(
        "fleetgauge_dashboards.terminal.report:report",
        "Write the reliability review of a week: changes, causes of bad minutes, incidents and actions.",
        requires=("deltalake", "markdown_it"),
    ),
    "slo": CommandEntry(
        "fleetgauge_dashboards.terminal.slo:slo",
        "Show a week's service levels: the fleet, then its clusters, worst first.",
        requires=("deltalake",),
    ),
}
