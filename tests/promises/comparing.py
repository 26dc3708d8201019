"""Compares collected entries with listed ones."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Difference:
    """Entries that are listed but not collected (removed), and the reverse (added); both sorted."""

    removed: tuple[str, ...]
    added: tuple[str, ...]


def compare(listed: Iterable[str], collected: Iterable[str]) -> Difference:
    """Return the difference between listed and collected entries."""
    before, after = set(listed), set(collected)
    return Difference(tuple(sorted(before - after)), tuple(sorted(after - before)))


def merge(listed: Iterable[str], collected: Iterable[str]) -> list[str]:
    """Return the sorted union of both, so that no listed entry is removed."""
    return sorted({*listed, *collected})


def describe(file: str, difference: Difference) -> Iterator[str]:
    """Yield a message per difference; ``file`` is the path of the list."""
    for entry in difference.removed:
        yield f"removed: {entry} (restore it; if it is to go, delete its line of {file} by hand)"
    for entry in difference.added:
        yield f"added, not yet listed: run make format: {entry} ({file})"
