"""Environment variables that the sources read, and names used in Kafka and in logs."""

import ast
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.deployment.manifests import INFRA, ROOT

_OUR_NAME = re.compile(r'"(fleetgauge[.-][a-z]+(?:[.-][a-z]+)*)"')
_READS = ("get", "setdefault", "pop")


def collect() -> Iterator[str]:
    """Yield the variables, and the names of loggers, topics, client ids, consumer groups and headers."""
    for path in _sources():
        text = path.read_text(encoding="utf-8")
        yield from (f"name {name}" for name in _OUR_NAME.findall(text))
        if "env" in text:
            tree = ast.parse(text)
            yield from (f"variable {name}" for name in _variables(tree, _constants(tree)))


def _sources() -> Iterator[Path]:
    """Yield every module of the wheel and of the images."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    packages = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    for folder in (*(ROOT / package for package in packages), INFRA / "docker"):
        yield from sorted(folder.rglob("*.py"))


def _constants(tree: ast.Module) -> Mapping[str, str]:
    """Return the values of string constants that a module defines."""
    return {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name) and isinstance(node.value.value, str)
    }


def _variables(tree: ast.Module, constants: Mapping[str, str]) -> Iterator[str]:
    for node in ast.walk(tree):
        match _key_of_environment(node):
            case ast.Constant(value=str(name)):
                yield name
            case ast.Name(id=name) if name in constants:
                yield constants[name]


def _key_of_environment(node: ast.AST) -> ast.expr | None:
    """Return the key of ``environ["A"]``, ``environ.get("A")`` or ``"A" in environ``; None for others."""
    match node:
        case ast.Subscript(value=environment, slice=key) if _is_environment(environment):
            return key
        case ast.Call(func=ast.Attribute(value=environment, attr=name), args=[key, *_]):
            return key if name in _READS and _is_environment(environment) else None
        case ast.Compare(left=key, ops=[ast.In() | ast.NotIn()], comparators=[environment]):
            return key if _is_environment(environment) else None
        case _:
            return None


def _is_environment(node: ast.expr) -> bool:
    """Return whether the node is ``os.environ`` or a function's parameter for it."""
    match node:
        case ast.Attribute(attr="environ") | ast.Name(id="environ" | "env"):
            return True
        case _:
            return False
