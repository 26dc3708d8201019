"""Command-line options that several commands share, so that each is spelled and explained in one way."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from fleetgauge_core.runtime.cli import ListenAddressParam

Command = TypeVar("Command", bound=Callable[..., Any])

#: ``config: Path``, the fleet file.
config_option = click.option(
    "--config",
    type=click.Path(path_type=Path),
    default="fleet.yaml",
    show_default=True,
    help="Path of the fleet file.",
)

#: ``location: str | None``, the lake if it is not the fleet file's.
lake_option = click.option(
    "--lake", "location", help="Folder or URI of the lake, instead of the fleet file's `lake`."
)

#: ``clock: datetime | None``, naive and in UTC.
clock_option = click.option(
    "--clock",
    type=click.DateTime(["%Y-%m-%dT%H:%M:%SZ"]),
    help="Decide which records are in the future and which weeks are closed as of this UTC time, "
    "instead of the current time.",
)

#: ``listen: ListenAddress | None``; see fleetgauge_core.runtime.health_server.
listen_option = click.option(
    "--listen",
    type=ListenAddressParam(),
    help="Serve /livez, /readyz and /metrics over HTTP at this address; port 0 takes a free port.",
)


def json_option(help: str = "Print the result on stdout as JSON.") -> Callable[[Command], Command]:
    """Return the option ``--json`` (``as_json: bool``) with a help text that names what is printed."""
    return click.option("--json", "as_json", is_flag=True, help=help)
