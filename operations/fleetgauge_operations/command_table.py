"""The commands of this package."""

from fleetgauge_core.runtime.command_table import CommandEntry

COMMANDS = {
    "correct": CommandEntry(
        "fleetgauge_operations.corrections.cli:correct",
        "Exclude minutes from the service levels, with a recorded reason; uncorrected values are kept, too.",
        requires=("deltalake",),
    ),
    "mitigate": CommandEntry(
        "fleetgauge_operations.mitigation.cli:mitigate",
        "Apply actions to an unhealthy broker, guarded by fail-safes, and undo them.",
        requires=("deltalake",),
    ),
    "notify": CommandEntry(
        "fleetgauge_operations.notify.cli:notify",
        "Send a marked test to the receivers of notifications, and say what came back.",
    ),
    "recover": CommandEntry(
        "fleetgauge_operations.recovery.cli:recover",
        "Fail over to another region: translate group offsets, forecast replay and loss, and fail back.",
        requires=("deltalake",),
    ),
    "replay": CommandEntry(
        "fleetgauge_operations.replay.cli:replay",
        "Keep incidents as files, and evaluate them with the present detection rules.",
    ),
    "watch": CommandEntry(
        "fleetgauge_operations.watch.cli:watch",
        "Detect faults of brokers, clusters and paths within seconds and notify people, until stopped.",
    ),
}
