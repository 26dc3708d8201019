"""Exit codes: those of all commands, and those in a command's help or source."""

import ast
import re
from collections.abc import Callable, Iterator
from typing import Any

import click

from fleetgauge_core.runtime.cli import InputError, ProcessFailedError
from fleetgauge_core.runtime.supervision import supervise_process
from tests.promises.commands import commands
from tests.promises.source import find_functions, find_tree

_SUPERVISION = supervise_process.__name__
_CODE_IN_HELP = re.compile(r"\bexit(?:s with| code)? (\d+)", re.IGNORECASE)


def collect() -> Iterator[str]:
    """Yield the exit codes of all commands that can be run, without pure groups."""
    yield f"wrong input: {InputError.exit_code}"
    yield f"wrong usage: {click.UsageError.exit_code}"
    for path, command, _ in commands():
        if not isinstance(command, click.Group) or command.invoke_without_command:
            yield f"{path}: 0 done"
            yield from (f"{path}: {code} by its help" for code in _list_codes_in_help(command))
            yield from (f"{path}: {code} by its function" for code in _list_codes_in_source(command))


def _list_codes_in_help(command: click.Command) -> set[str]:
    texts = [
        command.help,
        command.epilog,
        *(getattr(parameter, "help", None) for parameter in command.params),
    ]
    return {code for text in texts for code in _CODE_IN_HELP.findall(" ".join((text or "").split()))}


def _list_codes_in_source(command: click.Command) -> set[int]:
    return {code for function in find_functions(command) for code in _codes(function)} - {0}


def _codes(function: Callable[..., Any]) -> Iterator[int]:
    """Yield the codes of every SystemExit and ``context.exit`` call, and that of a supervised process."""
    for node in ast.walk(find_tree(function)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == _SUPERVISION:
            yield ProcessFailedError.exit_code
        if isinstance(node, ast.Call) and _ends(node.func):
            for argument in node.args:
                yield from _numbers(argument, function)


def _ends(called: ast.expr) -> bool:
    match called:
        case ast.Name(id="SystemExit") | ast.Attribute(value=ast.Name(id="context"), attr="exit"):
            return True
        case _:
            return False


def _numbers(node: ast.expr, function: Callable[..., Any]) -> Iterator[int]:
    """Yield the possible integer values of an expression: a literal, a constant or a conditional."""
    match node:
        case ast.Constant(value=int(number)):
            yield number
        case ast.Name(id=name):
            value = function.__globals__.get(name)
            yield from [value] if isinstance(value, int) else []
        case ast.IfExp(body=body, orelse=otherwise):
            yield from _numbers(body, function)
            yield from _numbers(otherwise, function)
