"""Commands with their arguments and options: spellings, types, choices, defaults and variables."""

from collections.abc import Iterator
from typing import Any

import click

from tests.promises.commands import commands


def collect() -> Iterator[str]:
    for path, command, context in commands():
        yield f"{path}: {'group' if isinstance(command, click.Group) else 'command'}"
        for parameter in command.get_params(context):
            yield from _describe_parameter(path, parameter)


def _describe_parameter(path: str, parameter: click.Parameter) -> Iterator[str]:
    """Yield one line per property of a parameter, so that a new choice is an added line."""
    yield from (f"{path} {spelling}" for spelling in _spellings(parameter))
    name = f"{path} {_name(parameter)}"
    yield f"{name}: {_describe_value(parameter)}"
    yield f"{name}: {'required' if parameter.required else 'optional'}"
    yield from (f"{name}: choice {choice}" for choice in _choices(parameter.type))
    yield from (f"{name}: default {default}" for default in _default(parameter))
    yield from (f"{name}: variable {variable}" for variable in _variables(parameter))


def _spellings(parameter: click.Parameter) -> list[str]:
    if isinstance(parameter, click.Argument):
        return [_name(parameter)]
    return [*parameter.opts, *parameter.secondary_opts]


def _name(parameter: click.Parameter) -> str:
    """Return an argument's metavar, or an option's longest name."""
    if isinstance(parameter, click.Argument):
        return parameter.human_readable_name.strip("[]").upper()
    return max(parameter.opts, key=len)


def _describe_value(parameter: click.Parameter) -> str:
    if isinstance(parameter, click.Option) and (parameter.is_flag or parameter.count):
        return "flag"
    several = " more than once" if parameter.multiple or parameter.nargs == -1 else ""
    return f"takes {_type(parameter.type)}{several}"


def _type(kind: click.ParamType[Any]) -> str:
    """Return the type's name with its bounds or formats."""
    match kind:
        case click.IntRange() | click.FloatRange():
            return f"{kind.name} {kind._describe_range()}"
        case click.DateTime():
            return f"{kind.name} as {' or '.join(kind.formats)}"
        case _:
            return str(kind.name)


def _choices(kind: click.ParamType[Any]) -> Iterator[str]:
    if isinstance(kind, click.Choice):
        yield from map(str, kind.choices)


def _default(parameter: click.Parameter) -> Iterator[str]:
    """Return the default as shown in the help; None if there is none."""
    shown = getattr(parameter, "show_default", None)
    default = parameter.default
    if isinstance(shown, str):
        yield f"({shown})"
    elif isinstance(default, str | int | float | tuple) and not _is_off(parameter):
        yield str(default)


def _is_off(parameter: click.Parameter) -> bool:
    return bool(getattr(parameter, "is_flag", False)) and parameter.default is False


def _variables(parameter: click.Parameter) -> list[str]:
    named = parameter.envvar
    return [named] if isinstance(named, str) else list(named or ())
