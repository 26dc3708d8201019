"""How the demo ends: real processes, which get real signals while a stand-in for the demo runs."""

import signal
import subprocess
import sys

import pytest

DEADLINE_S = 30

_PROGRAM = """
import signal, sys, threading
signal.signal(signal.SIGHUP, signal.SIG_DFL)
from fleetgauge_core.runtime.entry_point import run
from fleetgauge_local import demo_command

def fail():
    raise ValueError("what it was")

def run_stand_in(options, progress, started, shutdown):
    try:
        print("ready", flush=True)
        if "fails" in str(options.directory):
            threading.Thread(target=fail, name="worker").start()
        threading.Event().wait()
    finally:
        shutdown.set()
        if "never-ends" in str(options.directory):
            threading.Event().wait()

demo_command._run = run_stand_in
demo_command._SHUTDOWN_DEADLINE_S = 0.5
run()
"""


def run_demo(behaviour: str, *numbers: signal.Signals) -> tuple[int, str]:
    """Return the exit code and the last line of stderr."""
    command = [sys.executable, "-c", _PROGRAM, "demo", "--port", "0", "--dir", behaviour]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        for number in numbers:
            process.send_signal(number)
        _, err = process.communicate(timeout=DEADLINE_S)
    return process.returncode, err.splitlines()[-1]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_demo(number: signal.Signals) -> None:
    assert run_demo("ends", number) == (0, "ended")


def test_a_thread_that_fails_ends_the_demo_with_its_reason() -> None:
    assert run_demo("fails") == (1, "fleetgauge: the thread worker failed: ValueError: what it was")


def test_a_demo_that_cannot_end_its_parts_is_ended_at_its_deadline() -> None:
    code, last_line = run_demo("never-ends", signal.SIGTERM)
    assert code == 1
    assert "did not end by itself" in last_line
