"""The commands of this package as `fleetgauge --help` lists them, without importing them."""

from fleetgauge_core.runtime.cli import CommandSummary

_LAKE = ("deltalake",)

SUMMARIES = {
    "correct": CommandSummary(
        "Exclude minutes from the service levels, with a recorded reason; uncorrected values are kept, too.",
        _LAKE,
    ),
    "mitigate": CommandSummary(
        "Apply actions to an unhealthy broker, guarded by fail-safes, and undo them.", _LAKE
    ),
    "recover": CommandSummary(
        "Fail over to another region: translate group offsets, forecast replay and loss, and fail back.",
        _LAKE,
    ),
    "replay": CommandSummary("Keep incidents as files, and evaluate them with the present detection rules."),
    "watch": CommandSummary(
        "Detect faults of brokers, clusters and paths within seconds and notify people, until stopped."
    ),
}
