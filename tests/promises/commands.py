"""Finds every command with its path from the click objects."""

from collections.abc import Iterator

import click

from fleetgauge_core.runtime.cli import main

NAME = "fleetgauge"


def commands() -> Iterator[tuple[str, click.Command, click.Context]]:
    """Yield path, command and context of every command and group, parents first."""
    yield from _below(main, click.Context(main, info_name=NAME, **main.context_settings))


def commands_with_json() -> Iterator[tuple[str, click.Command]]:
    """Return the commands with --json by their path without the program's name."""
    for path, command, _ in commands():
        if any("--json" in parameter.opts for parameter in command.params):
            yield path.removeprefix(f"{NAME} "), command


def _below(
    command: click.Command, context: click.Context
) -> Iterator[tuple[str, click.Command, click.Context]]:
    yield context.command_path, command, context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            if child := command.get_command(context, name):
                yield from _below(child, click.Context(child, info_name=name, parent=context))
