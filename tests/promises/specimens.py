"""Builds a value of any type from its hints, to call functions and collect the keys of their results.

Every string is ``{}``, which is also JSON; keys of mappings are ``*`` or 1; collections have one entry.
"""

from collections.abc import Callable, Collection, Mapping, Set
from datetime import UTC, date, datetime, timedelta
from enum import Enum
from numbers import Number
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

from pydantic import AwareDatetime, BaseModel

from tests.promises.key_paths import is_kind, is_literal, list_fields, not_none, resolve_hints

_SCALARS: Mapping[Any, Any] = {
    bool: True,
    int: 1,
    float: 1.0,
    str: "{}",
    bytes: b"{}",
    datetime: datetime(2026, 3, 2, 12, tzinfo=UTC),
    AwareDatetime: datetime(2026, 3, 2, 12, tzinfo=UTC),
    date: date(2026, 3, 2),
    timedelta: timedelta(seconds=1),
    Path: Path("file"),
    Any: "{}",
    object: "{}",
}
#: Fields with the end of a span whose start is another field.
_ENDS = frozenset({"end", "ends", "ended", "until"})
_LATER = datetime(2026, 3, 2, 13, tzinfo=UTC)


def specimen(kind: Any, choice: int = 0) -> Any:
    """Return a value of a type; ``choice`` is the index of a union's or enumeration's member, or the last.

    Raises: TypeError for a type without known fields.
    """
    if kind in _SCALARS:
        return _SCALARS[kind]
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return specimen(arguments[0], choice)
    if is_literal(kind):
        return _pick(arguments, choice)
    if len(not_none(kind)) != 1 or not_none(kind)[0] is not kind:
        return specimen(_pick(not_none(kind), choice), choice)
    if origin is not None:
        return _container(origin, arguments, choice)
    return _instance(kind, choice)


def _pick(choices: Any, choice: int) -> Any:
    return list(choices)[min(choice, len(choices) - 1)]


def _container(origin: Any, arguments: tuple[Any, ...], choice: int) -> Any:
    if is_kind(origin, Mapping):
        key, value = arguments
        return {"*" if key is str else specimen(key, choice): specimen(value, choice)}
    entries = [specimen(entry, choice) for entry in arguments if entry is not ...]
    if is_kind(origin, Set):
        return frozenset(entries)
    if is_kind(origin, tuple) or is_kind(origin, Collection):
        return tuple(entries)
    if origin is Callable or not isinstance(origin, type) or not arguments:
        return lambda *_: "{}"
    return specimen(origin, choice)


def _instance(kind: Any, choice: int) -> Any:
    if not isinstance(kind, type):
        return "{}"
    if issubclass(kind, Number):
        return _call(kind, 1)
    if issubclass(kind, Enum):
        return _pick(kind, choice)
    if issubclass(kind, BaseModel):
        return kind.model_construct(**{name: specimen(of, choice) for name, of in list_fields(kind).items()})
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        hints = resolve_hints(kind)
        return kind(**{name: specimen(hints.get(name, Any), choice) for name in kind._fields})
    if members := list_fields(kind):
        return kind(
            **{name: _build_field(name, of, choice) for name, of in members.items() if _is_given(kind, name)}
        )
    raise TypeError(f"no specimen of {kind}: give one by hand")


def _call(kind: Any, *arguments: Any) -> Any:
    return kind(*arguments)


def _build_field(name: str, kind: Any, choice: int) -> Any:
    value = specimen(kind, choice)
    return _LATER if name in _ENDS and isinstance(value, datetime) else value


def _is_given(kind: Any, name: str) -> bool:
    return bool(kind.__dataclass_fields__[name].init)
