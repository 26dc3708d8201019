"""Paths of keys, as ``clusters[].id``: of values as JSON has them, and of types as they become JSON."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel

Paths = frozenset[str]
NONE: Paths = frozenset()


def under(key: str, below: Iterable[str]) -> Paths:
    """Return the path of a key and the paths below it."""
    return frozenset({key, *(join(key, path) for path in below)})


def in_list(below: Iterable[str]) -> Paths:
    """Return the paths within the entries of a list."""
    return frozenset(join("[]", path) for path in below)


def join(key: str, path: str) -> str:
    return f"{key}{path}" if path.startswith("[]") else f"{key}.{path}"


def paths_of_value(value: Any, keyed_by_data: Collection[str] = (), at: str = "") -> Paths:
    """Return the key paths of a JSON value; keys at paths in ``keyed_by_data`` are data."""
    if isinstance(value, Mapping):
        parts = (
            _paths_at("*" if at in keyed_by_data else str(key), below, keyed_by_data, at)
            for key, below in value.items()
        )
        return NONE.union(*parts)
    if isinstance(value, list | tuple):
        return in_list(NONE.union(*(paths_of_value(below, keyed_by_data, f"{at}[]") for below in value)))
    return NONE


def _paths_at(key: str, value: Any, keyed_by_data: Collection[str], at: str) -> Paths:
    return under(key, paths_of_value(value, keyed_by_data, f"{at}.{key}".removeprefix(".")))


def paths_of_type(kind: Any) -> Paths:
    """Return the key paths of a type's JSON after ``asdict`` or ``model_dump``; empty for ``Any``."""
    return _paths_of_type(kind, ())


def _paths_of_type(kind: Any, around: tuple[Any, ...]) -> Paths:
    if kind in around:
        return NONE
    if members := list_fields(kind):
        parts = (under(name, _paths_of_type(below, (*around, kind))) for name, below in members.items())
        return NONE.union(*parts)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _paths_of_type(arguments[0], around)
    if origin in (Union, UnionType):
        return NONE.union(*(_paths_of_type(choice, around) for choice in arguments))
    if is_kind(origin, Mapping):
        return under("*", _paths_of_type(arguments[1], around)) if arguments[1] is not Any else NONE
    if is_kind(origin, Collection):
        return in_list(
            NONE.union(*(_paths_of_type(entry, around) for entry in arguments if entry is not ...))
        )
    return NONE


def list_fields(kind: Any) -> Mapping[str, Any]:
    """Return field types by name of a type that becomes a JSON object; empty for other types."""
    if not isinstance(kind, type) or get_origin(kind) is not None or issubclass(kind, Enum):
        return {}
    if is_dataclass(kind):
        hints = resolve_hints(kind)
        return {field.name: hints.get(field.name, Any) for field in fields(kind)}
    if issubclass(kind, BaseModel):
        hints = resolve_hints(kind)
        return {name: hints.get(name, Any) for name in kind.model_fields}
    return {}


def resolve_hints(annotated: Any) -> Mapping[str, Any]:
    """Return the types of a class's fields or a function's parameters; Any if unresolvable."""
    try:
        return get_type_hints(annotated)
    except (NameError, TypeError):
        return _resolve_each_hint(annotated)


def _resolve_each_hint(annotated: Any) -> Mapping[str, Any]:
    """Resolve each hint separately, for hints with names imported only for type checkers."""
    hints = {}
    for name, hint in getattr(annotated, "__annotations__", {}).items():
        try:
            hints[name] = get_type_hints(_Holder(name, hint, annotated))[name]
        except (NameError, TypeError):
            hints[name] = Any
    return hints


class _Holder:
    """Holds one annotation of a function, for ``get_type_hints``."""

    def __init__(self, name: str, hint: Any, annotated: Any) -> None:
        self.__annotations__ = {name: hint}
        self.__globals__ = getattr(annotated, "__globals__", {})


def is_kind(origin: Any, kind: type) -> bool:
    return isinstance(origin, type) and issubclass(origin, kind)


def is_literal(kind: Any) -> bool:
    return get_origin(kind) is Literal


def not_none(kind: Any) -> tuple[Any, ...]:
    """Return the members of a union without None; for other types the type itself."""
    if get_origin(kind) in (Union, UnionType):
        return tuple(choice for choice in get_args(kind) if choice is not NoneType)
    return (kind,)
