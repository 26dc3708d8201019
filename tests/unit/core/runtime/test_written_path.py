"""The check of a file that a command is to write."""

import os
from pathlib import Path

import click
import pytest

from fleetgauge_core.runtime import options
from fleetgauge_core.runtime.options import PathParam

WRITTEN = PathParam(dir_okay=False, is_written=True)


def test_a_file_that_exists_needs_no_writable_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "review.md").touch()
    # Root may write everywhere.
    monkeypatch.setattr(options.os, "access", lambda path, mode: mode != os.W_OK | os.X_OK)
    assert WRITTEN.convert(str(tmp_path / "review.md"), None, None) == tmp_path / "review.md"
    with pytest.raises(click.BadParameter, match="no folder that this user can write to"):
        WRITTEN.convert(str(tmp_path / "other.md"), None, None)
