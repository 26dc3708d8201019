"""The command `fleetgauge` and the frame of its subcommands.

Only the subcommand that is called is imported. `--help` must stay fast, so a module that declares a command
imports click and light modules alone; what the command does is in another module, which is imported when the
command runs.
"""

import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NoReturn

import click

from fleetgauge_core import __version__
from fleetgauge_core.errors import OperationalError
from fleetgauge_core.runtime.command_table import CommandEntry, find_command, read_command_tables


class _OneLineError(click.ClickException):
    """An error that ends the command; its message is printed to stderr on one line."""

    def show(self, file: object = None) -> None:
        """Print the message; ``file`` is click's, which no caller gives."""
        del file
        from fleetgauge_core.runtime.console import console

        console.print(f"fleetgauge: {self.message}", style="red", markup=False, soft_wrap=True)


class InputError(_OneLineError):
    """Wrong usage or invalid input; the command ends with exit code 2.

    The message is one line that names what is wrong, where it is, and how to correct it.
    """

    exit_code = 2


class ProcessFailedError(_OneLineError):
    """A process cannot go on because of a defect, whose traceback is in the log; it ends with exit code 1."""

    exit_code = 1


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


@contextmanager
def _report_errors(command_name: str | None) -> Iterator[None]:
    """Raise InputError in place of operational errors, file errors and modules that are not installed."""
    try:
        yield
    except OperationalError as error:
        raise InputError(str(error)) from error
    except OSError as error:
        # Errors of sockets name no file; those of files and folders are the user's to mend.
        if error.filename is None:
            raise
        raise InputError(
            f"{os.fsdecode(error.filename)}: {error.strerror or error}: check its owner, its permissions and "
            "the disk, or name another"
        ) from error
    except ModuleNotFoundError as error:
        raise _missing_module_error(command_name, error.name) from error


def _missing_module_error(command_name: str | None, module: str | None) -> InputError:
    return InputError(f"{command_name} needs {module}, which is not installed: pip install 'fleetgauge[all]'")


class Command(click.Command):
    """A command that reports operational errors in one line and with exit code 2."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. Raises: InputError in place of operational errors."""
        with _report_errors(ctx.info_name):
            return super().invoke(ctx)


class Group(click.Group):
    """A group that does the same for all its subcommands."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the group and a subcommand. Raises: InputError in place of operational errors."""
        with _report_errors(ctx.info_name):
            return super().invoke(ctx)


class LazyGroup(Group):
    """A group whose subcommands are imported only when they are called, as click's docs suggest."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (click's signature)
        """Return the names of our own subcommands in alphabetical order."""
        return sorted(read_command_tables())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 (as above)
        """Import and return a subcommand; None if there is none of this name."""
        entry = find_command(cmd_name)
        return None if entry is None else _load(cmd_name, entry)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of subcommands without importing them."""
        commands = {name: _summarize(name, entry) for name, entry in read_command_tables().items()}
        click.Group(commands=commands).format_commands(ctx, formatter)


def _load(name: str, entry: CommandEntry) -> click.Command:
    module, _, attribute = entry.target.partition(":")
    try:
        command = getattr(import_module(module), attribute)
    except ModuleNotFoundError as error:
        return _unavailable(name, error.name)
    if not isinstance(command, click.Command):
        raise TypeError(f"{entry.target} is not a click command")
    return command


def _summarize(name: str, entry: CommandEntry) -> click.Command:
    """Return a command that has only the help of the table."""
    for module in entry.requires:
        if find_spec(module) is None:
            return _unavailable(name, module)
    return click.Command(name, help=entry.help)


def _unavailable(name: str, module: str | None) -> click.Command:
    def fail() -> NoReturn:
        raise _missing_module_error(name, module)

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
