"""The commands of this package."""

from fleetgauge_core.runtime.command_table import CommandEntry

COMMANDS = {
    "change": CommandEntry(
        "fleetgauge_operations.changes.cli:change",
        "Report changes that no observer can see: deploys, tickets, work on hosts.",
    ),
    "changes": CommandEntry(
        "fleetgauge_operations.changes.cli:changes",
        "List what changed in a cluster or in the whole fleet: what was observed, and what was reported.",
    ),
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
    "observe": CommandEntry(
        "fleetgauge_operations.changes.cli:observe",
        "Look at every cluster every 15 s and publish what has changed, until stopped.",
        requires=("deltalake",),
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
