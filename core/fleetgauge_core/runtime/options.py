"""Command-line options that several commands share, so that each is spelled and explained in one way."""

import getpass
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import click

from fleetgauge_core.runtime.cli import ListenAddressParam
from fleetgauge_core.runtime.home_folder import expand_home
from fleetgauge_core.runtime.shard import Shard

Command = TypeVar("Command", bound=Callable[..., Any])


class PathParam(click.Path):
    """A click parameter type for paths, which gives a Path; a leading `~` is the home folder.

    ``is_written``: the command writes the file after all its work, so its folder must exist before.
    """

    def __init__(
        self, *, exists: bool = False, file_okay: bool = True, dir_okay: bool = True, is_written: bool = False
    ) -> None:
        super().__init__(
            exists=exists, file_okay=file_okay, dir_okay=dir_okay, writable=is_written, path_type=Path
        )
        self._is_written = is_written

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path, or fail with a usage error."""
        path = _expand(self, str(value), param, ctx)
        super().convert(path, param, ctx)
        # A file that exists is written in place, as /dev/stdout is.
        if self._is_written and not path.exists() and not os.access(path.parent, os.W_OK | os.X_OK):
            self.fail(f"{path.parent} is no folder that this user can write to", param, ctx)
        return path


class LakeParam(click.ParamType[str]):
    """A click parameter type for the folder or URI of a lake; a leading `~` is the home folder."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the folder or URI, or fail with a usage error."""
        path = _expand(self, str(value), param, ctx)
        return str(path) if str(value).startswith("~") else str(value)


def _expand(
    kind: click.ParamType[Any], value: str, param: click.Parameter | None, ctx: click.Context | None
) -> Path:
    if not value:
        # As from a variable of a script that is not set.
        kind.fail("the path is empty: write . for this folder", param, ctx)
    try:
        return expand_home(value)
    except ValueError as error:
        kind.fail(str(error), param, ctx)


class ShardParam(click.ParamType[Shard]):
    """A click parameter type for a shard, as in ``2/5``."""

    name = "i/n"

    def convert(self, value: str | Shard, param: click.Parameter | None, ctx: click.Context | None) -> Shard:
        """Return the shard, or fail with a usage error."""
        try:
            return value if isinstance(value, Shard) else Shard.parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def make_shard_option(help: str) -> Callable[[Command], Command]:
    """Return the option ``--shard`` (``shard: Shard``), by default all clusters."""
    return click.option("--shard", type=ShardParam(), default=Shard(), show_default="all of them", help=help)


def make_config_option(help: str, default: str | None = "fleet.yaml") -> Callable[[Command], Command]:
    """Return the option ``--config`` (``config: Path``; None if it is not given and has no default)."""
    return click.option("--config", type=PathParam(), default=default, show_default=True, help=help)


def make_lake_option(help: str) -> Callable[[Command], Command]:
    """Return the option ``--lake`` (``location: str | None``), the lake if it is not the fleet file's."""
    return click.option("--lake", "location", type=LakeParam(), help=help)


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
