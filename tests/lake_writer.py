"""Another process that writes to a lake."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

#: Holds the lease of a lake until it is killed.
HOLD = """
import sys
from threading import Event
from fleetgauge_core.lake.lease import hold_lease
with hold_lease(sys.argv[1], "fleetgauge stream", print):
    print("held", flush=True)
    Event().wait()
"""


@contextmanager
def another_holder(lake: str) -> Iterator["subprocess.Popen[str]"]:
    with subprocess.Popen([sys.executable, "-c", HOLD, lake], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()
