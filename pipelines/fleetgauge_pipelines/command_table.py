"""The commands of this package."""

from fleetgauge_core.runtime.command_table import CommandEntry

COMMANDS = {
    "backfill": CommandEntry(
        "fleetgauge_pipelines.jobs.backfill_cli:backfill",
        "Write probe records from files, or all records of a topic, and changes to the lake.",
        requires=("deltalake", "pyspark"),
    ),
    "backtest": CommandEntry(
        "fleetgauge_pipelines.jobs.backtest_cli:backtest",
        "Recompute the burn alerts of a past period with the objectives and windows of a fleet file.",
        requires=("deltalake", "pyspark"),
    ),
    "lake": CommandEntry(
        "fleetgauge_pipelines.jobs.lake_cli:lake",
        "Show the size of a lake's tables, compact small files, and remove expired days.",
        requires=("deltalake", "pyspark"),
    ),
    "quarantine": CommandEntry(
        "fleetgauge_pipelines.jobs.quarantine_cli:quarantine",
        "Inspect records that broke the contract, and replay them after their cause was fixed.",
        requires=("deltalake", "pyspark"),
    ),
    "run": CommandEntry(
        "fleetgauge_pipelines.jobs.cli:run",
        "Write the probe records that the telemetry topics hold now to the lake, then exit.",
        requires=("deltalake", "pyspark"),
    ),
    "simulate": CommandEntry(
        "fleetgauge_pipelines.jobs.simulate_cli:simulate",
        "Simulate a realistic fleet's history, to try dashboards and reviews without a Kafka cluster.",
        requires=("deltalake", "pyspark"),
    ),
    "stream": CommandEntry(
        "fleetgauge_pipelines.jobs.cli:stream",
        "Write probe records from the telemetry topics to the lake continuously, until stopped.",
        requires=("deltalake", "pyspark"),
    ),
}
