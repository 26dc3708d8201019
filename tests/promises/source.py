"""Analyze the source of a command: of its function, the one that it runs, and what these call."""

import ast
import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from tests.promises.key_paths import NONE, Paths, in_list, under


def find_functions(command: click.Command) -> tuple[Callable[..., Any], ...]:
    """Return the command's function, that which it hands its options to, and all that they call.

    Functions of other modules are left out, except for those that the second one calls in its own module.
    """
    reached: dict[Callable[..., Any], None] = {}
    if command.callback is not None:
        callback = inspect.unwrap(command.callback)
        _reach(callback, reached)
        for function in _run_functions(callback):
            _reach(function, reached)
    return tuple(reached)


def _run_functions(callback: Callable[..., Any]) -> Iterator[Callable[..., Any]]:
    """Yield the functions that a command's function imports and calls with all its options."""
    nodes = list(ast.walk(find_tree(callback)))
    called = {name for node in nodes if isinstance(node, ast.Call) for name in _name_with_options(node)}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            for name in called.intersection(alias.name for alias in node.names):
                yield inspect.unwrap(getattr(import_module(node.module), name))


def _name_with_options(call: ast.Call) -> Iterator[str]:
    if isinstance(call.func, ast.Name) and any(keyword.arg is None for keyword in call.keywords):
        yield call.func.id


def _reach(function: Callable[..., Any], reached: dict[Callable[..., Any], None]) -> None:
    if function in reached:
        return
    reached[function] = None
    for node in ast.walk(find_tree(function)):
        named = function.__globals__.get(node.id) if isinstance(node, ast.Name) else None
        if inspect.isfunction(named) and named.__module__ == function.__module__:
            _reach(inspect.unwrap(named), reached)


def find_tree(function: Callable[..., Any]) -> ast.AST:
    """Return the syntax tree of a function."""
    code = function.__code__
    return _functions_in(code.co_filename)[code.co_firstlineno]


@cache
def _functions_in(file: str) -> Mapping[int, ast.FunctionDef]:
    """Return the functions of a file by their first line, including decorators."""
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    return {
        min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)]): node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
    }


def literal_keys(function: Callable[..., Any]) -> Paths:
    """Return the key paths of every dict literal in a function."""
    return NONE.union(*(_paths(node) for node in _outermost_objects(find_tree(function))))


def _outermost_objects(node: ast.AST) -> Iterator[ast.Dict]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Dict):
            yield child
        elif not _changes_a_model(child):
            yield from _outermost_objects(child)


def _changes_a_model(node: ast.AST) -> bool:
    return isinstance(node, ast.keyword) and node.arg == "update"


def _paths(node: ast.AST | None) -> Paths:
    match node:
        case ast.Dict(keys=keys, values=values):
            return NONE.union(*(_paths_of_entry(*entry) for entry in zip(keys, values, strict=True)))
        case ast.List(elts=entries) | ast.Tuple(elts=entries):
            return in_list(NONE.union(*map(_paths, entries)))
        case ast.ListComp(elt=entry):
            return in_list(_paths(entry))
        case ast.IfExp(body=body, orelse=otherwise):
            return _paths(body) | _paths(otherwise)
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _paths(left) | _paths(right)
        case _:
            return NONE


def _paths_of_entry(key: ast.expr | None, value: ast.expr) -> Paths:
    """Return the paths of a dict entry: none for a non-string key; an unpacked dict adds its own keys."""
    match key:
        case None:
            return _paths(value)
        case ast.Constant(value=str(name)):
            return under(name, _paths(value))
        case _:
            return NONE
