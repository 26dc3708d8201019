"""The commands of `fleetgauge replay`; `commands` runs them."""

from typing import Any

import click

from fleetgauge_core.runtime.cli import Group, TimestampParam
from fleetgauge_core.runtime.options import PathParam, config_option, json_option
from fleetgauge_operations.replay import SUFFIX

#: The hour of a broker's latency history, and the time until its first block is complete.
_LEAD_MIN = 75


@click.group(cls=Group, epilog="Example: fleetgauge replay run incidents/")
def replay() -> None:
    """Keep incidents as files, and evaluate them with the present detection rules."""


@replay.command(
    epilog="Example: fleetgauge replay export --cluster orders-eu --from 2026-03-02T10:00:00Z "
    "--to 2026-03-02T10:30:00Z --note 'disk of broker 3 full'"
)
@click.option("--cluster", "cluster_id", required=True, help="ID of the incident's cluster.")
@click.option(
    "--from",
    "since",
    type=TimestampParam(),
    required=True,
    help="When the incident began, or shortly before.",
)
@click.option(
    "--to", "until", type=TimestampParam(), required=True, help="When the incident ended, or shortly after."
)
@click.option("--note", default="", help="Description of the incident.")
@click.option("--false-alarm", is_flag=True, help="Expect no findings, whatever the watch reported.")
@click.option(
    "--before",
    "lead_min",
    type=click.IntRange(min=0),
    default=_LEAD_MIN,
    show_default=True,
    help="Minutes of pulses before the incident, which show the usual latencies.",
)
@click.option(
    "--out",
    type=PathParam(dir_okay=False, is_written=True),
    help=f"Path of the incident file; its name should end with {SUFFIX}.",
)
@config_option
@json_option()
def export(**options: Any) -> None:
    """Write the pulses and findings of an incident from the telemetry cluster's topics to one file."""
    from fleetgauge_operations.replay.commands import export_incident

    export_incident(**options)


@replay.command(epilog="Example: fleetgauge replay run incidents/ --set flaps=2")
@click.argument("paths", nargs=-1, required=True, type=PathParam(exists=True))
@click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="NAME=VALUE",
    help="A threshold to try, in its own unit; durations in seconds. May be repeated.",
)
@json_option()
def run(**options: Any) -> None:
    """Evaluate incident files or folders of them; exits with 1 if findings differ from the expected ones."""
    from fleetgauge_operations.replay.commands import evaluate_incidents

    evaluate_incidents(**options)
