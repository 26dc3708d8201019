"""The function behind a command takes its options: otherwise the command fails, and only when it is run."""

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import click
import pytest

from tests.promises.commands import commands


def list_forwarding_commands() -> Iterator[tuple[str, click.Command, ast.Call, Callable[..., Any]]]:
    """Yield path and command, and the function to which it passes its ``**options`` with that call."""
    for path, command, _ in commands():
        if command.callback is None:
            continue
        tree = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(command.callback))))
        modules = {
            alias.name: node.module
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.module
            for alias in node.names
        }
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            name = node.func.id
            if name in modules and any(keyword.arg is None for keyword in node.keywords):
                yield path, command, node, getattr(import_module(modules[name]), name)


FORWARDING = list(list_forwarding_commands())


def test_most_commands_forward_their_options() -> None:
    assert len(FORWARDING) > 30


@pytest.mark.parametrize(
    ("path", "command", "call", "function"), FORWARDING, ids=[path for path, *_ in FORWARDING]
)
def test_the_function_of_a_command_takes_its_options(
    path: str, command: click.Command, call: ast.Call, function: Callable[..., Any]
) -> None:
    arguments = {parameter.name for parameter in command.params if parameter.expose_value}
    arguments |= {keyword.arg for keyword in call.keywords if keyword.arg}
    inspect.signature(function).bind(**dict.fromkeys(arguments))  # else TypeError
