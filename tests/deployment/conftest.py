"""The tool of these tests that is not a Python package."""

import shutil
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def promtool() -> str:
    """The path of promtool; skips the test where it is missing."""
    path = shutil.which("promtool") or shutil.which("promtool", path=Path(sys.prefix, "debian/usr/bin"))
    if path is None:
        pytest.skip("promtool is missing: apt-get install prometheus")
    return path
