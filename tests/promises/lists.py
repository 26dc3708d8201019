"""Reads and writes the list files: one entry per line, sorted."""

from collections.abc import Iterable
from pathlib import Path

from tests.promises.comparing import compare, describe, merge

FOLDER = Path(__file__).parent / "list"
_ROOT = Path(__file__).parents[2]


def read(name: str) -> list[str]:
    """Return the entries of a list; empty if the file does not exist."""
    path = _path(name)
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def add(name: str, collected: Iterable[str]) -> None:
    """Add the collected entries to a list."""
    FOLDER.mkdir(exist_ok=True)
    entries = merge(read(name), collected)
    _path(name).write_text("".join(f"{entry}\n" for entry in entries), encoding="utf-8")


def differences(name: str, collected: Iterable[str]) -> list[str]:
    """Return a message per difference between a list and the collected entries."""
    return list(describe(str(_path(name).relative_to(_ROOT)), compare(read(name), collected)))


def _path(name: str) -> Path:
    return FOLDER / f"{name}.txt"
