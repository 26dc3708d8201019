"""The commands `fleetgauge observe`, `fleetgauge changes` and `fleetgauge change`."""

from typing import Any

import click

from fleetgauge_core.runtime.cli import Command, Group, TimestampParam
from fleetgauge_core.runtime.options import (
    author_option,
    config_option,
    json_option,
    listen_option,
    log_option,
    make_shard_option,
    strict_option,
)
from fleetgauge_core.tables import REPORTED_KINDS, ChangeKind


@click.command(cls=Command, epilog="Example: fleetgauge observe --config fleet.yaml --shard 2/5")
@config_option
@make_shard_option("Observe only part i of n of the clusters, to share them among n observers.")
@strict_option
@listen_option
@log_option
@json_option("Print the clusters and the number of published records on stdout as JSON, at the end.")
def observe(**options: Any) -> None:
    """Look at every cluster every 15 s and publish what has changed, until stopped. Changes nothing itself.

    Restarts, fencing, moves of leadership, reassignments, throttles, topics, settings, quotas, ACLs, the
    metadata quorum, feature levels and log directories are compared. What this process may not read is logged
    once. Changes of the fleet file take effect while it runs.
    """
    from fleetgauge_operations.changes.commands import observe_fleet

    observe_fleet(**options)


@click.command(
    cls=Command,
    epilog="""\b
Example:
  fleetgauge changes orders
  fleetgauge changes orders --kind reassignment --cost
  fleetgauge changes --since 2026-03-02T00:00:00Z --json""",
)
@click.argument("cluster_id", metavar="[CLUSTER]", required=False)
@click.option(
    "--since",
    type=TimestampParam(),
    help="Only changes that had not ended by then.  [default: a day ago]",
)
@click.option(
    "--kind",
    "kinds",
    type=click.Choice([kind.value for kind in ChangeKind]),
    metavar="KIND",
    multiple=True,
    help="Only this kind of change, for instance broker_restarted; may be given several times.",
)
@click.option("--cost", is_flag=True, help="Also show what each change cost, as far as the lake has it.")
@config_option
@json_option()
def changes(**options: Any) -> None:
    """List what changed in a cluster or in the whole fleet: what was observed, and what was reported."""
    from fleetgauge_operations.changes.commands import list_changes

    list_changes(**options)


@click.group(
    cls=Group, epilog="Example: fleetgauge change add --cluster orders --kind deploy --title 'orders 2.4'"
)
def change() -> None:
    """Report changes that no observer can see: deploys, tickets, work on hosts."""


@change.command(
    epilog="""\b
Example:
  fleetgauge change add --cluster orders --broker 2 --kind host_maintenance \\
    --from 2026-03-02T10:00:00Z --to 2026-03-02T11:00:00Z --title 'new disk'
  fleetgauge change add --segment region=eu-west-1 --kind deploy --title 'gateway 7.1' \\
    --link https://ci.example/7.1"""
)
@click.option(
    "--kind",
    type=click.Choice([kind.value for kind in REPORTED_KINDS]),
    default=ChangeKind.OTHER.value,
    show_default=True,
    help="What kind of change it is.",
)
@click.option("--title", required=True, help="What changes, in a few words.")
@click.option("--cluster", "cluster_id", help="ID of the cluster.")
@click.option("--broker", "broker_id", type=int, help="Only this broker of the cluster.")
@click.option("--segment", metavar="NAME=VALUE", help="All clusters of a segment, such as region=eu-west-1.")
@click.option("--fleet", "whole_fleet", is_flag=True, help="All clusters.")
@click.option("--from", "starts", type=TimestampParam(), help="When it begins.  [default: now]")
@click.option("--to", "ends", type=TimestampParam(), help="When it ends.  [default: when it begins]")
@click.option("--link", help="URL of the release, the ticket or the plan.")
@author_option("Person or system that is responsible.")
@config_option
@json_option()
def add(**options: Any) -> None:
    """Report a change of a cluster, a broker, a segment or the whole fleet."""
    from fleetgauge_operations.changes.commands import add_change

    add_change(**options)


@change.command(epilog="Example: fleetgauge change withdraw 3f0c7b9a5d1e4c58 --config fleet.yaml")
@click.argument("change_id", metavar="CHANGE_ID")
@author_option("Person or system that is responsible.")
@config_option
@json_option()
def withdraw(**options: Any) -> None:
    """Withdraw a report that was a mistake: it explains nothing any more, and stays listed as cancelled."""
    from fleetgauge_operations.changes.commands import withdraw_change

    withdraw_change(**options)
