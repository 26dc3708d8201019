"""Fields of JSON objects that others write: read with their type checked."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

_LONGEST_QUOTE = 60


class JsonFieldError(ValueError):
    """A field that cannot be used; the message is one line with its name and what is wrong with it."""


def read_text(document: Mapping[str, Any], name: str) -> str | None:
    """Return a text, None if it is missing or null. Raises: JsonFieldError."""
    value = document.get(name)
    if value is not None and not isinstance(value, str):
        raise JsonFieldError(f"{name}: must be text")
    return value


def read_integer(document: Mapping[str, Any], name: str) -> int | None:
    """Return a whole number, None if it is missing or null. Raises: JsonFieldError."""
    value = document.get(name)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise JsonFieldError(f"{name}: must be a whole number")
    return value


def read_time(document: Mapping[str, Any], name: str) -> datetime | None:
    """Return a time in UTC, None if it is missing or null. Raises: JsonFieldError."""
    text = read_text(document, name)
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise JsonFieldError(
            f"{name}: {text[:_LONGEST_QUOTE]!r} is not a time with its zone, such as 2026-03-02T10:00:00Z"
        )
    try:
        return at.astimezone(UTC)
    except OverflowError:
        raise JsonFieldError(f"{name}: is outside of the years 1 to 9999") from None
