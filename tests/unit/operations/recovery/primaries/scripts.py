"""Small shell scripts that stand for configured commands."""

from pathlib import Path


def write_script(folder: Path, body: str, name: str = "labels") -> str:
    """Write an executable shell script and return its path."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)
