"""The commands of this package as `fleetgauge --help` lists them, without importing them."""

from fleetgauge_core.runtime.cli import CommandSummary

_HELPS = {
    "backfill": "Write probe records from files, or all records of a topic, to the lake, "
    "one piece at a time.",
    "backtest": "Recompute the burn alerts of a past period with the objectives and windows of a fleet file.",
    "lake": "Show the size of a lake's tables, compact small files, and remove expired days.",
    "quarantine": "Inspect records that broke the contract, and replay them after their cause was fixed.",
    "run": "Write the probe records that the telemetry topics hold now to the lake, then exit.",
    "simulate": "Simulate a realistic fleet's history, to try dashboards and reviews "
    "without a Kafka cluster.",
    "stream": "Write probe records from the telemetry topics to the lake continuously, until stopped.",
}

SUMMARIES = {name: CommandSummary(help, ("deltalake", "pyspark")) for name, help in _HELPS.items()}
