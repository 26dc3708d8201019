"""Fifty small fleets of every odd kind: Spark's tables are the oracle's, wherever the process stands."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


# Their JVM is a cold one; four minutes on a machine that the suite does not share.
@pytest.mark.timeout(1800)
def test_fifty_random_fleets_have_the_oracles_tables_in_a_far_zone() -> None:
    """Fourteen hours ahead of UTC, in a process of its own; around a day that its clocks left out."""
    command = [sys.executable, "-m", "tests.chaos", "random_fleets", "--fleets", "50", "--seed", "3"]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"TZ": "Pacific/Apia"}, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-2000:]}"
    rows = json.loads(done.stdout)["rows"]
    assert all(count for path, count in rows.items() if path != "ops/quarantine"), rows
