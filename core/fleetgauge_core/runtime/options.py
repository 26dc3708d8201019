"""Command-line options that several commands share, so that each is spelled and explained in one way."""

import getpass
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import click

from fleetgauge_core.runtime.cli import ListenAddressParam

Command = TypeVar("Command", bound=Callable[..., Any])


def make_config_option(help: str, default: str | None = "fleet.yaml") -> Callable[[Command], Command]:
    """Return the option ``--config`` (``config: Path``; None if it is not given and has no default)."""
    return click.option(
        "--config", type=click.Path(path_type=Path), default=default, show_default=True, help=help
    )


def make_lake_option(help: str) -> Callable[[Command], Command]:
    """Return the option ``--lake`` (``location: str | None``), the lake if it is not the fleet file's."""
    return click.option("--lake", "location", help=help)


def json_option(help: str = "Print the result on stdout as JSON.") -> Callable[[Command], Command]:
    """Return the option ``--json`` (``as_json: bool``) with a help text that names what is printed."""
    return click.option("--json", "as_json", is_flag=True, help=help)


def author_option(help: str) -> Callable[[Command], Command]:
    """Return the option ``--author`` (``author: str``), by default the login of the user."""
    return click.option("--author", default=getpass.getuser, show_default="the user's login", help=help)


config_option = make_config_option("Path of the fleet file.")
lake_option = make_lake_option("Folder or URI of the lake, instead of the fleet file's `lake`.")


def _to_utc(_: click.Context, __: click.Parameter, at: datetime | None) -> datetime | None:
    return at and at.replace(tzinfo=UTC)


#: ``clock: datetime | None``, in UTC.
clock_option = click.option(
    "--clock",
    type=click.DateTime(["%Y-%m-%dT%H:%M:%SZ"]),
    callback=_to_utc,
    help="Decide which records are in the future and which weeks are closed as of this UTC time, "
    "instead of the current time.",
)

#: ``strict: bool``, of processes that run without a part that cannot be used.
strict_option = click.option(
    "--strict",
    is_flag=True,
    help="End with exit code 2 if, at the start, a cluster or notifier has a bad value in the fleet file, or "
    "a secret or certificate cannot be read. Without this option all others run.",
)

#: ``listen: ListenAddress | None``; see fleetgauge_core.runtime.health_server.
listen_option = click.option(
    "--listen",
    type=ListenAddressParam(),
    help="Serve /livez, /readyz and /metrics over HTTP at this address; port 0 takes a free port.",
)

#: ``log_format: str``, for fleetgauge_core.runtime.logs.configure_logging.
log_option = click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Format of the log lines on stderr.",
)
