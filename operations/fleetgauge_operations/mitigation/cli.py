"""The commands of `fleetgauge mitigate`; `commands` runs them."""

from typing import Any

import click

from fleetgauge_core.runtime.cli import Group
from fleetgauge_core.runtime.options import (
    author_option,
    config_option,
    json_option,
    lake_option,
    listen_option,
    log_option,
    strict_option,
)
from fleetgauge_core.tables.action_kinds import MITIGATION_KINDS, ActionKind

_json = json_option()
_execute = click.option(
    "--execute", is_flag=True, help="Apply the changes; without this option they are only shown."
)


def _reject_blank(_: click.Context, __: click.Parameter, reason: str | None) -> str | None:
    """Raise BadParameter for a blank reason, such as from an unset shell variable."""
    if reason is not None and not reason.strip():
        raise click.BadParameter("must not be blank: give a reason or omit the option")
    return reason


_reason = click.option(
    "--reason",
    callback=_reject_blank,
    help="Reason, if it is not an alert of the watch; it is stored in ops/actions.",
)
_author = author_option("Person or script that is responsible; stored in ops/actions.")


@click.group(cls=Group, epilog="Example: fleetgauge mitigate plan")
def mitigate() -> None:
    """Apply actions to an unhealthy broker, guarded by fail-safes, and undo them."""


@mitigate.command(epilog="Example: fleetgauge mitigate plan --json")
@config_option
@lake_option
@_json
def plan(**options: Any) -> None:
    """Show the actions that present alerts warrant, and which fail-safes refuse them. Changes nothing."""
    from fleetgauge_operations.mitigation.commands import plan_actions

    plan_actions(**options)


@mitigate.command(epilog="Example: fleetgauge mitigate apply --cluster orders-eu --broker 2 --execute")
@click.option("--cluster", "cluster_id", required=True, help="ID of the cluster.")
@click.option("--broker", "broker_id", type=int, required=True, help="ID of the broker.")
@click.option(
    "--action",
    type=click.Choice([kind.value for kind in MITIGATION_KINDS]),
    default=ActionKind.DEMOTE.value,
    show_default=True,
    help="Action to apply.",
)
@_reason
@_execute
@_author
@config_option
@lake_option
@_json
def apply(**options: Any) -> None:
    """Apply an action to a broker, by default as a dry run. Exits with 1 if it is refused or fails."""
    from fleetgauge_operations.mitigation.commands import apply_action

    apply_action(**options)


@mitigate.command(epilog="Example: fleetgauge mitigate undo 3f2a9c01d4e7 --execute")
@click.argument("case_id", metavar="CASE")
@_reason
@_execute
@config_option
@lake_option
@_json
def undo(**options: Any) -> None:
    """Undo an action, except for what was changed after it, by default as a dry run."""
    from fleetgauge_operations.mitigation.commands import undo_action

    undo_action(**options)


@mitigate.command(epilog="Example: fleetgauge mitigate run --config fleet.yaml")
@config_option
@lake_option
@strict_option
@listen_option
@log_option
@_json
def run(**options: Any) -> None:
    """Apply what `mitigation` in the fleet file permits, and notify operators of the rest, until stopped."""
    from fleetgauge_operations.mitigation.commands import run_mitigation

    run_mitigation(**options)


@mitigate.command(epilog="Example: fleetgauge mitigate history --json")
@config_option
@lake_option
@_json
def history(**options: Any) -> None:
    """List all cases, refused ones too."""
    from fleetgauge_operations.mitigation.commands import list_cases

    list_cases(**options)
