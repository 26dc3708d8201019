"""Options shared by the commands that read a lake."""

from collections.abc import Callable
from typing import TypeVar

import click

from fleetgauge_core.runtime.options import make_config_option, make_lake_option

#: click's decorators accept functions of any signature.
Command = TypeVar("Command", bound=Callable[..., None])


def lake_options(command: Command) -> Command:
    """Add the options --config and --lake to a command."""
    config = make_config_option(
        "The fleet file; it names the lake and the time zone of its weeks.  [default: fleet.yaml, "
        "without --lake]",
        default=None,
    )
    lake = make_lake_option("Another lake than the fleet file's: a folder or an object store URI.")
    return config(lake(command))


def output_options(command: Command) -> Command:
    """Add the options --json and --csv; the parameter ``form`` is None for text output."""
    as_json = click.option("--json", "form", flag_value="json", help="Print the result as one JSON object.")
    as_csv = click.option("--csv", "form", flag_value="csv", help="Print the result's rows as CSV.")
    return as_json(as_csv(command))


def week_argument(required: bool) -> Callable[[Command], Command]:
    """Return a decorator that adds the argument WEEK, a day of a week."""
    metavar = "WEEK" if required else "[WEEK]"
    return click.argument("week", type=click.DateTime(["%Y-%m-%d"]), metavar=metavar, required=required)
