"""The commands of `fleetgauge correct`; `commands` runs them."""

from typing import Any

import click

from fleetgauge_core.runtime.cli import Group, TimestampParam
from fleetgauge_core.runtime.options import author_option, config_option, json_option, lake_option
from fleetgauge_core.slo.corrections import RECURRENCES

_author = author_option("Person or script that is responsible; stored in ops/corrections.")


@click.group(cls=Group, epilog="Example: fleetgauge correct list")
def correct() -> None:
    """Exclude minutes from the service levels, with a recorded reason; uncorrected values are kept, too."""


@correct.command(
    epilog="Example: fleetgauge correct add --cluster orders-eu --from 2026-03-02T10:00:00Z "
    "--to 2026-03-02T11:00:00Z --reason 'Kafka 4.3 upgrade'"
)
@click.option("--cluster", "cluster_id", help="ID of the cluster.")
@click.option("--broker", "broker_id", type=int, help="Only this broker of the cluster.")
@click.option("--segment", metavar="NAME=VALUE", help="All clusters of a segment, such as region=eu-west-1.")
@click.option("--from", "starts", type=TimestampParam(), required=True, help="First minute that is excluded.")
@click.option(
    "--to", "ends", type=TimestampParam(), required=True, help="First minute that is not excluded any more."
)
@click.option("--recurs", type=click.Choice(sorted(RECURRENCES)), help="Repeat at the same local time.")
@click.option(
    "--until", "recurs_until", type=TimestampParam(), help="Time from which on no repetition starts."
)
@click.option("--reason", required=True, help="Reason; shown in the weekly review, too.")
@_author
@config_option
@lake_option
@json_option()
def add(**options: Any) -> None:
    """Exclude minutes of a broker, a cluster or a segment from measured and expected minutes alike."""
    from fleetgauge_operations.corrections.commands import add_correction

    add_correction(**options)


@correct.command("list", epilog="Example: fleetgauge correct list --json")
@config_option
@lake_option
@json_option()
def list_(**options: Any) -> None:
    """List all corrections, withdrawn ones too."""
    from fleetgauge_operations.corrections.commands import list_corrections

    list_corrections(**options)


@correct.command(epilog="Example: fleetgauge correct withdraw 3f2a9c01d4e7")
@click.argument("correction_id", metavar="ID")
@_author
@config_option
@lake_option
@json_option()
def withdraw(**options: Any) -> None:
    """Withdraw a correction, so that its minutes count again; its row is kept."""
    from fleetgauge_operations.corrections.commands import withdraw_correction

    withdraw_correction(**options)
