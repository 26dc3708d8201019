"""The one tool of these tests that Python does not bring."""

import shutil
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def promtool() -> str:
    found = shutil.which("promtool") or shutil.which("promtool", path=Path(sys.prefix, "debian/usr/bin"))
    if found is None:
        pytest.skip("promtool is missing: apt-get install prometheus")
    return found
