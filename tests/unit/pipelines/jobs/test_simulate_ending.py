"""How `fleetgauge simulate` ends after a defect of its own: a real process, whose Spark session hangs."""

import subprocess
import sys
from pathlib import Path

_PROGRAM = """
import sys, threading, types
from contextlib import contextmanager
from fleetgauge_core.runtime.entry_point import run
from fleetgauge_pipelines.jobs import simulate_command

@contextmanager
def open_lake(_):
    try:
        yield None, None
    finally:
        threading.Event().wait()

def fail(*_):
    raise ValueError("what it was")

stub = types.ModuleType("fleetgauge_pipelines.jobs.simulate")
stub.simulate_lake = fail
sys.modules[stub.__name__] = stub
simulate_command.open_lake_for_pipeline = open_lake
simulate_command.SHUTDOWN_DEADLINE_S = 0.5
run()
"""


def test_a_session_that_does_not_end_after_a_failure_is_ended_at_the_deadline(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _PROGRAM, "simulate", "--to", str(tmp_path / "made"), "--weeks", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "did not end by itself" in done.stderr.splitlines()[-1]
