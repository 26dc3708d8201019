"""The commands of `fleetgauge quarantine`; `quarantine_command` runs them."""

from typing import Any

import click

from fleetgauge_core.runtime.cli import Group
from fleetgauge_core.runtime.options import clock_option, config_option, json_option, lake_option
from fleetgauge_core.tables import ACCEPTABLE_REASONS, QUARANTINE_REASONS
from fleetgauge_pipelines.jobs.cli import counts_json_option, only_writer_option

_reason = click.option(
    "--reason",
    type=click.Choice(QUARANTINE_REASONS),
    metavar="REASON",
    help=f"Only rows with this reason: {', '.join(QUARANTINE_REASONS)}.",
)
_since = click.option(
    "--since",
    type=click.DateTime(["%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d"]),
    metavar="TIME",
    help="Only rows ingested at or after this UTC time: 2026-03-02 or 2026-03-02T06:30:00Z.",
)
_view_json_option = json_option("Print the rows on stdout as JSON.")


@click.group(cls=Group, epilog="Example: fleetgauge quarantine list --lake ./lake")
def quarantine() -> None:
    """Inspect records that broke the contract, and replay them after their cause was fixed."""


@quarantine.command("list", epilog="Example: fleetgauge quarantine list --since 2026-03-02")
@_reason
@_since
@config_option
@lake_option
@_view_json_option
def list_(**options: Any) -> None:
    """List how many rows each reason has, when they were ingested, and the source of one of them."""
    from fleetgauge_pipelines.jobs.quarantine_command import list_reasons

    list_reasons(**options)


@quarantine.command(epilog="Example: fleetgauge quarantine show b5rvyvIRQIG5jXJfbDGcDQ/3/1207")
@click.argument("source")
@config_option
@lake_option
@_view_json_option
def show(**options: Any) -> None:
    """Show one row: its reason, its bytes, and the fields that can be decoded from them."""
    from fleetgauge_pipelines.jobs.quarantine_command import show_record

    show_record(**options)


@quarantine.command(epilog="Example: fleetgauge quarantine replay --reason unknown_cluster --json")
@_reason
@click.option("--source", help="Only the row with this source.")
@_since
@click.option(
    "--accept",
    "accepts_unlikely",
    is_flag=True,
    help=f"Also accept records that are only unlikely: {', '.join(ACCEPTABLE_REASONS)}.",
)
@config_option
@lake_option
@only_writer_option
@clock_option
@counts_json_option
def replay(**options: Any) -> None:
    """Process rows again after their cause was fixed, such as a missing cluster or a wrong clock.

    Records that are valid now move to the tables, however old they are; others stay. Stop the stream first.
    """
    from fleetgauge_pipelines.jobs.quarantine_command import replay_records

    replay_records(**options)
