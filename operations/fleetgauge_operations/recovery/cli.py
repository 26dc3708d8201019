"""The commands of `fleetgauge recover`; `commands` runs them."""

from typing import Any

import click

from fleetgauge_core.runtime.cli import Group
from fleetgauge_core.runtime.options import (
    PathParam,
    author_option,
    json_option,
    listen_option,
    log_option,
    make_config_option,
    make_lake_option,
    strict_option,
)
from fleetgauge_operations.recovery.offsets.mapping_rule import MappingRule
from fleetgauge_operations.recovery.primaries.plan.precondition_name import PreconditionName

_config = make_config_option("The fleet file.")
_lake = make_lake_option("Location of the tables, instead of the fleet file's `lake`.")
_group = click.option("--group", "only", help="Only this consumer group.")
_author = author_option("The person responsible.")
_json = json_option("Print JSON to stdout.")


@click.group(cls=Group, epilog="Example: fleetgauge recover plan")
def recover() -> None:
    """Fail over to another region: translate group offsets, forecast replay and loss, and fail back."""


@recover.command(epilog="Example: fleetgauge recover plan --json")
@_group
@_config
@_lake
@_json
def plan(**options: Any) -> None:
    """Show where each group would resume in the passive cluster, and what prevents it. Changes nothing.

    Exits with 1 if a group cannot resume in one of its partitions.
    """
    from fleetgauge_operations.recovery.commands import plan_offsets

    plan_offsets(**options)


@recover.command(epilog="Example: fleetgauge recover sync --execute")
@_group
@click.option("--execute", is_flag=True, help="Commit the offsets; without this option they are only shown.")
@_config
@_lake
@_json
def sync(**options: Any) -> None:
    """Commit the translated offsets of groups in the passive cluster once, by default as a dry run.

    Skips groups that have members there. Never moves an offset backwards, unless the group was reset in the
    active cluster.
    """
    from fleetgauge_operations.recovery.commands import sync_offsets

    sync_offsets(**options)


@recover.command(
    epilog="Example: fleetgauge recover drill --from north-all --to south-all --group billing --execute"
)
@click.option("--from", "active", required=True, help="The active cluster, assumed to fail.")
@click.option("--to", "passive", required=True, help="The passive cluster, in which its groups resume.")
@click.option(
    "--group", "group_names", multiple=True, help="A consumer group; may be repeated. Default: all."
)
@click.option(
    "--execute",
    is_flag=True,
    help="Test the named groups: commit their offsets in the passive cluster, read from there, and compare. "
    "Their consumers are not moved.",
)
@_author
@_config
@_lake
@_json
def drill(**options: Any) -> None:
    """Forecast the replay and loss of a failover, and whether groups are ready for one; exits with 1 if not.

    Shows the records that would be read again, those that may be lost with the failing region, and every
    reason against a failover. Adds a row per group to recovery/drills.
    """
    from fleetgauge_operations.recovery.commands import drill_failover

    drill_failover(**options)


@recover.command(epilog="Example: fleetgauge recover failback --primary north --secondary south --json")
@click.option("--primary", required=True, help="The cluster that failed and is available again.")
@click.option("--secondary", required=True, help="The cluster that took over.")
@click.option(
    "--since",
    type=click.DateTime(["%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%MZ"]),
    help="Time of the failover (UTC), to report the records written to the secondary since.",
)
@_config
@_lake
@_json
def failback(**options: Any) -> None:
    """Show the stranded records of a cluster that failed, the new ones of its replica, and how to fail back.

    Changes nothing. Records are compared by key, value and timestamp. Exits with 1 if records are stranded.
    """
    from fleetgauge_operations.recovery.commands import inspect_failback

    inspect_failback(**options)


@recover.command(
    epilog="Example: fleetgauge recover promote --service billing --from north-all --to south-all --execute"
)
@click.option("--service", required=True, help="A service of recovery.primaries.services.")
@click.option("--from", "active", required=True, help="The current primary, or a cluster of its region.")
@click.option("--to", "passive", required=True, help="The cluster to promote, with its region.")
@click.option(
    "--execute",
    is_flag=True,
    help="Run recovery.primaries.promote if all preconditions are met, and verify the result.",
)
@click.option(
    "--despite",
    multiple=True,
    type=click.Choice([name.value for name in PreconditionName]),
    help="Override a precondition that is not met or unknown; may be repeated.",
)
@_author
@_config
@_lake
@_json
def promote(**options: Any) -> None:
    """Promote another region to the primary of a service if all preconditions are met; by default a dry run.

    label: --from is the only primary, or its lease has expired and it is unreachable. aggregates: both
    clusters have replicated their sources equally far. input_lag: the replication lag into --to is low.
    groups: the service's groups are ready to resume in --to. headroom: --to has the capacity for the whole
    load. Exits with 1 if the promotion is refused or fails.
    """
    from fleetgauge_operations.recovery.commands import promote_cluster

    promote_cluster(**options)


@recover.command(epilog="Example: fleetgauge recover run --execute")
@click.option(
    "--execute", is_flag=True, help="Commit the groups' offsets in the passive cluster continuously."
)
@click.option(
    "--look-every",
    "observe_every_s",
    type=click.FloatRange(min=1),
    default=10.0,
    show_default=True,
    help="Seconds between two observations of the mirrors.",
)
@click.option(
    "--sync-every",
    "sync_every_s",
    type=click.FloatRange(min=1),
    default=30.0,
    show_default=True,
    help="Seconds between two syncs of the groups.",
)
@_config
@_lake
@strict_option
@listen_option
@log_option
@_json
def run(**options: Any) -> None:
    """Store offset syncs, sync group offsets, and evaluate failover readiness, until stopped.

    Writes recovery/checkpoints; a row per minute to recovery/mirror_minutes, group_minutes and
    producer_minutes; and recovery/findings, which are also sent to the fleet's notifiers.
    """
    from fleetgauge_operations.recovery.commands import run_recovery

    run_recovery(**options)


@recover.command("map", epilog="Example: fleetgauge recover map --from-file case.json --rule uber --json")
@click.option(
    "--from-file",
    "path",
    type=PathParam(exists=True, dir_okay=False),
    required=True,
    help="The mapping case as JSON.",
)
@click.option(
    "--rule",
    type=click.Choice([rule.value for rule in MappingRule]),
    help="uber: as published. plus_one: one past a consumed checkpoint. watermark: idle sources do not hold "
    "back the result. Default: the highest offset, by the simplest rule that gives it.",
)
@_json
def map_command(**options: Any) -> None:
    """Translate a group's position between two merged topics, without any cluster.

    \b
    {"position": 6,
     "active": {"A": [[1, 3]], "B": [[3, 5]]},
     "passive": {"A": [[1, 1]], "B": [[3, 7]]},
     "passive_log": [0, 8],
     "watermarks": {"A": [[4, 8]]}}

    The case is about one partition. position: the offset that the group reads next in active. active,
    passive: by source, checkpoints [source offset, offset in the merged topic] in the order of observation; a
    source without checkpoints is unbounded, and the whole passive log is read again. passive_log: [log start
    offset, log end offset].

    watermarks (optional), for sources that are idle: [source end offset, passive offset]; no record that the
    source writes from the first offset on lies before the second one. Watermarks of active also state that
    all earlier records lie before it; give both as {"active": {...}, "passive": {...}}.
    """
    from fleetgauge_operations.recovery.commands import map_position

    map_position(**options)
