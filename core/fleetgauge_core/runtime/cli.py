"""The command `fleetgauge`: finds its subcommands by entry point, imports only the one called."""

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

GROUP = "fleetgauge.commands"

#: Everything for a person goes to stderr; stdout is for answers.
console = Console(stderr=True, highlight=False)


class InputError(click.ClickException):
    """Wrong usage or input: one line that says what, where and how to mend it (exit code 2)."""

    exit_code = 2

    def show(self, file: object = None) -> None:  # noqa: ARG002 (click's signature)
        console.print(f"fleetgauge: {self.message}", style="red", markup=False, soft_wrap=True)


def print_json(value: object) -> None:
    """The answer of a command under ``--json``: one value on stdout, nothing else."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen: a name or an IP, and a port (0: any that is free)."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class HostPort(click.ParamType[Address]):
    """`127.0.0.1:9100`, `localhost:0` or `[::1]:9100`."""

    name = "host:port"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Address:
        found = re.fullmatch(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+)):([0-9]{1,5})", str(value))
        if found is None or int(found[3]) > 65535:
            self.fail(f"{value!r} is not HOST:PORT such as 127.0.0.1:9100", param, ctx)
        return Address(found[1] or found[2], int(found[3]))


class Instant(click.ParamType[datetime]):
    """`2026-03-02T10:00:00Z`, with its zone."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        try:
            at = datetime.fromisoformat(str(value))
        except ValueError:
            self.fail(f"{value!r} is not a time such as 2026-03-02T10:00:00Z", param, ctx)
        if at.tzinfo is None:
            self.fail(f"{value!r} has no zone: end it with Z or an offset such as +01:00", param, ctx)
        return at.astimezone(UTC)


#: How a long-running command is told where to say how it is; see fleetgauge_core.runtime.health_server.
listen_option = click.option(
    "--listen",
    type=HostPort(),
    help="Answer /livez, /readyz and /metrics over HTTP there; port 0 takes a free one.",
)


class Commands(click.Group):
    """Subcommands that are imported when they are called, not before."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (click's signature)
        return sorted(entry_points(group=GROUP).names)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        for point in entry_points(group=GROUP, name=cmd_name):
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
    def refuse() -> NoReturn:
        raise InputError(f"{name} needs {module}, which is not installed: pip install 'fleetgauge[all]'")

    return click.Command(
        name,
        callback=refuse,
        help=f"Not available here: {module} is not installed.",
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    )


@click.command(
    "fleetgauge",
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="fleetgauge")
def main() -> None:
    """Fleet observability and SLO analytics for Apache Kafka."""
