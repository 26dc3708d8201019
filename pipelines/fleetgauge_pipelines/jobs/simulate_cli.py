"""The command `fleetgauge simulate`; `simulate_command` runs it."""

from typing import Any

import click

from fleetgauge_core.runtime.cli import Command
from fleetgauge_core.runtime.options import PathParam, make_config_option
from fleetgauge_pipelines.jobs.cli import counts_json_option

DEFAULT_WEEKS, DEFAULT_RECORD_MINUTES = 35, 60


@click.command(cls=Command, epilog="Example: fleetgauge simulate --to ./simulated --clusters 20 --weeks 35")
@click.option(
    "--to",
    type=PathParam(),
    required=True,
    help="Output folder, empty or of an earlier simulation: gets fleet.yaml, ledger.json and the lake.",
)
@click.option(
    "--clusters", type=click.IntRange(1, 1000), default=20, show_default=True, help="Number of clusters."
)
@click.option(
    "--weeks",
    type=click.IntRange(1, 520),
    help=f"Length of the history in weeks.  [default: {DEFAULT_WEEKS}]",
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**63 - 1),
    default=1,
    show_default=True,
    help="Seed of the random numbers; the same seed gives the same fleet.",
)
@click.option(
    "--end",
    type=click.DateTime(["%Y-%m-%dT%H:%M:%SZ"]),
    help="End of the history (UTC).  [default: the start of the current hour]",
)
@click.option(
    "--records",
    type=click.Choice(["files", "topic"]),
    help="Write probe records instead of a lake: to DIR/records/*.avro or the telemetry cluster of --config.",
)
@click.option(
    "--minutes",
    type=click.IntRange(min=1),
    help=f"Length of the history of records in minutes.  [default: {DEFAULT_RECORD_MINUTES}]",
)
@make_config_option(
    "Path of the fleet file whose telemetry cluster receives the records of --records topic.", default=None
)
@counts_json_option
def simulate(**options: Any) -> None:
    """Simulate a realistic fleet's history, to try dashboards and reviews without a Kafka cluster.

    The history has simulated incidents, which ledger.json lists. The fleet file is marked as simulated.
    """
    from fleetgauge_pipelines.jobs.simulate_command import simulate_fleet

    simulate_fleet(**options)
