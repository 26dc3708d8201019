"""The commands of this package as `fleetgauge --help` lists them, without importing them."""

from fleetgauge_core.runtime.cli import CommandSummary

SUMMARIES = {
    "compare": CommandSummary(
        "Compare clusters with different label values, or the same clusters before and after a change.",
        ("deltalake",),
    ),
    "dash": CommandSummary(
        "Serve dashboards of a lake's service levels until interrupted.",
        ("dash", "deltalake"),
    ),
    "explain": CommandSummary(
        "Explain a cluster's week: the minutes, brokers and probes that determine its service levels.",
        ("deltalake",),
    ),
    "report": CommandSummary(
        "Write the reliability review of a week: changes, causes of bad minutes, incidents and actions.",
        ("deltalake", "markdown_it"),
    ),
    "slo": CommandSummary(
        "Show a week's service levels: the fleet, then its clusters, worst first.",
        ("deltalake",),
    ),
}
