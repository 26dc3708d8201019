"""What is collected now beside what is listed: pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Difference:
    """Entries that are listed and no more there, and entries that are there and not listed; both sorted."""

    removed: tuple[str, ...]
    added: tuple[str, ...]


def compare(listed: Iterable[str], collected: Iterable[str]) -> Difference:
    """In which entries the two differ."""
    before, now = set(listed), set(collected)
    return Difference(tuple(sorted(before - now)), tuple(sorted(now - before)))


def merge(listed: Iterable[str], collected: Iterable[str]) -> list[str]:
    """The list as it is to be written: nothing that was listed goes."""
    return sorted({*listed, *collected})


def describe(file: str, difference: Difference) -> Iterator[str]:
    """A line for each entry in which they differ; ``file`` is where the list is."""
    for entry in difference.removed:
        yield f"removed: {entry} (restore it; if it is to go, delete its line of {file} by hand)"
    for entry in difference.added:
        yield f"added, not yet listed: run make format: {entry} ({file})"
