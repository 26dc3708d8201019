"""The tables of commands: each package lists its own in its module ``command_table``, as COMMANDS.

A table has what `fleetgauge --help` shows of a command, so that it imports no command. Entry points would say
where the commands are, but importing importlib.metadata alone costs half as much as a help does.
"""

from importlib import import_module
from typing import NamedTuple

#: Other distributions may bring commands by entry points of this group; they run, but the help omits them.
ENTRY_POINT_GROUP = "fleetgauge.commands"
#: The packages that have a table.
PACKAGES = (
    "fleetgauge_dashboards",
    "fleetgauge_local",
    "fleetgauge_operations",
    "fleetgauge_pipelines",
    "fleetgauge_probes",
)


class CommandEntry(NamedTuple):
    """A command of a package's table."""

    target: str
    """The click command as MODULE:NAME."""
    help: str
    """The first sentence of the command's own help."""
    requires: tuple[str, ...] = ()
    """The modules that the command needs and that not every installation has."""


def read_command_tables() -> dict[str, CommandEntry]:
    """Return the commands of all packages by name."""
    commands: dict[str, CommandEntry] = {}
    for package in PACKAGES:
        commands |= import_module(f"{package}.command_table").COMMANDS
    return commands


def find_command(name: str) -> CommandEntry | None:
    """Return the entry of a command in a table, or else of another distribution; None if there is none."""
    if entry := read_command_tables().get(name):
        return entry
    from importlib.metadata import entry_points

    points = entry_points(group=ENTRY_POINT_GROUP, name=name)
    return next((CommandEntry(point.value, help="") for point in points), None)
