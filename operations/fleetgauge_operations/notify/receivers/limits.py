"""Cut content to the limits of receivers, and mark it as cut."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

MARK = "… (cut)"


def cut_characters(text: str, limit: int) -> str:
    """Return text of at most ``limit`` characters."""
    return text if len(text) <= limit else text[: limit - len(MARK)] + MARK


def keep_lines(lines: Sequence[str], limit: int) -> str:
    """Return the first lines, each in full so that no markup is cut, with at most ``limit`` characters."""
    text = "\n".join(lines)
    if len(text) <= limit:
        return text
    count = _find_largest(len(lines), lambda count: len("\n".join([*lines[:count], MARK])) <= limit)
    return "\n".join([*lines[:count], MARK])


def cut_escaped(text: str, escape: Callable[[str], str], limit: int) -> str:
    """Return escaped text of at most ``limit`` characters, cut between two characters of the text."""
    escaped = escape(text)
    if len(escaped) <= limit:
        return escaped
    count = _find_largest(len(text), lambda count: len(escape(text[:count]) + MARK) <= limit)
    return escape(text[:count]) + MARK


def cut_details(details: Mapping[str, Any], limit_bytes: int) -> dict[str, Any]:
    """Return values by key whose JSON in UTF-8 has at most ``limit_bytes``.

    Small values are kept as they are. A large value is replaced by the beginning of its text, or of its JSON;
    large values share what the small ones leave.
    """
    if _count_bytes(details) <= limit_bytes:
        return dict(details)
    left = limit_bytes - _count_bytes({})
    cut: dict[str, Any] = {}
    for number, (key, value) in enumerate(_sort_by_size(details)):
        # A comma or a brace, and the quotes of a cut value, are counted in the overhead of a key.
        share = left // (len(details) - number) - _count_bytes({key: ""})
        cut[key] = value if _count_bytes(value) <= share else _cut_value(value, share)
        left -= _count_bytes({key: cut[key]})
    return {key: cut[key] for key in details}


def _sort_by_size(details: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    return sorted(details.items(), key=lambda entry: _count_bytes(entry[1]))


def _cut_value(value: Any, limit_bytes: int) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    count = _find_largest(len(text), lambda count: _count_bytes(text[:count] + MARK) <= limit_bytes)
    return text[:count] + MARK


def _count_bytes(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


def _find_largest(limit: int, fits: Callable[[int], bool]) -> int:
    """Return the largest count up to ``limit`` that fits, if each smaller one fits too; 0 if none does."""
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low
