"""The command `fleetgauge`: finds subcommands by entry point and imports only the one called."""

import json
import re
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import EntryPoint, entry_points
from typing import Any, NoReturn

import click
from rich.console import Console

from fleetgauge_core import __version__

ENTRY_POINT_GROUP = "fleetgauge.commands"

#: Messages for people go to stderr; stdout is reserved for results.
console = Console(stderr=True, highlight=False)


class InputError(click.ClickException):
    """Wrong usage or invalid input; the command ends with exit code 2.

    The message is one line that names what is wrong, where it is, and how to correct it.
    """

    exit_code = 2

    def show(self, file: object = None) -> None:  # noqa: ARG002 (click's signature)
        """Print the message to stderr on one line."""
        console.print(f"fleetgauge: {self.message}", style="red", markup=False, soft_wrap=True)


def print_json(value: object) -> None:
    """Write the result of a command under ``--json`` to stdout: one JSON value and a newline."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """An address to listen on: a host name or IP address and a port; port 0 takes a free port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class ListenAddressParam(click.ParamType[ListenAddress]):
    """A click parameter type for HOST:PORT, as in `127.0.0.1:9100`, `localhost:0` or `[::1]:9100`."""

    name = "host:port"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> ListenAddress:
        """Return the address, or fail with a usage error."""
        match = re.fullmatch(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+)):([0-9]{1,5})", str(value))
        if match is None or int(match[3]) > 65535:
            self.fail(f"{value!r} is not HOST:PORT such as 127.0.0.1:9100", param, ctx)
        return ListenAddress(match[1] or match[2], int(match[3]))


class TimestampParam(click.ParamType[datetime]):
    """A click parameter type for an ISO 8601 time with a UTC offset, as in `2026-03-02T10:00:00Z`."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """Return the time in UTC, or fail with a usage error."""
        try:
            at = datetime.fromisoformat(str(value))
        except ValueError:
            self.fail(f"{value!r} is not a time such as 2026-03-02T10:00:00Z", param, ctx)
        if at.tzinfo is None:
            self.fail(f"{value!r} has no UTC offset: end it with Z or an offset such as +01:00", param, ctx)
        return at.astimezone(UTC)


class LazyGroup(click.Group):
    """A group whose subcommands are imported only when they are called, as click's docs suggest."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (click's signature)
        """Return the names of the installed subcommands in alphabetical order."""
        return sorted(entry_points(group=ENTRY_POINT_GROUP).names)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 (as above)
        """Import and return a subcommand; None if none is installed under this name."""
        for point in entry_points(group=ENTRY_POINT_GROUP, name=cmd_name):
            return _load(point)
        return None


def _load(point: EntryPoint) -> click.Command:
    try:
        command = point.load()
    except ModuleNotFoundError as error:
        return _unavailable(point.name, error.name or "a package")
    if not isinstance(command, click.Command):
        raise TypeError(f"{point.value} is not a click command")
    return command


def _unavailable(name: str, module: str) -> click.Command:
    def fail() -> NoReturn:
        raise InputError(f"{name} needs {module}, which is not installed: pip install 'fleetgauge[all]'")

    return click.Command(
        name,
        callback=fail,
        help=f"Not available: {module} is not installed.",
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    )


@click.command(
    "fleetgauge",
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="fleetgauge")
def main() -> None:
    """Fleet observability and SLO analytics for Apache Kafka."""
