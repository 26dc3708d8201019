"""Ways in which a disk, a power failure or a person damages a file."""

from collections.abc import Callable
from pathlib import Path
from shutil import rmtree

Damage = Callable[[Path], None]


def empty(file: Path) -> None:
    file.write_bytes(b"")


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def cut_at_line(file: Path) -> None:
    """Keep the first line alone: every line that is left is whole."""
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:1]))


def fill_with_zeros(file: Path) -> None:
    file.write_bytes(bytes(file.stat().st_size))


def flip_bit(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 4
    file.write_bytes(bytes(data))


def remove(path: Path) -> None:
    if path.is_dir():
        rmtree(path)
    else:
        path.unlink()
