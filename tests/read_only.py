"""Folders that cannot be written: by their mode, or for root by a mount."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

#: Root gives up its right to read and write any file; nobody else has it.
WITHOUT_PRIVILEGES = ("setpriv", "--bounding-set=-all", "--inh-caps=-all") if os.getuid() == 0 else ()


def forbid_writing(folder: Path) -> None:
    """Take away the right to write the folder and its files, as if they were of another user."""
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)


@contextmanager
def mounted_read_only(folder: Path) -> Iterator[None]:
    """Mount the folder read-only over itself, so that not even root can write it; else skip the test."""
    mounted = subprocess.run(["mount", "--bind", folder, folder], capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"a read-only mount requires root: {mounted.stderr.strip()}")
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", folder], check=True)
        yield
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)
