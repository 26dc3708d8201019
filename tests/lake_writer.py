"""Another process that writes to a lake."""

import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

#: Holds the lease of a lake until it is killed; adds a row to ops/actions for each line that it reads.
_WRITER = """
import sys
from fleetgauge_core.errors import OperationalError
from fleetgauge_core.lake.lease import hold_lease
from fleetgauge_core.lake.table_store import TableStore
from fleetgauge_core.tables import ACTIONS
with hold_lease(sys.argv[1], "fleetgauge stream", lambda _: None) as lease:
    print("held", flush=True)
    store = TableStore(sys.argv[1], ACTIONS, create=True, confirm=lease.confirm)
    for line in sys.stdin:
        row = dict.fromkeys(ACTIONS.column_names) | dict.fromkeys(ACTIONS.key, line.strip())
        try:
            store.append([row])
            print("committed", flush=True)
        except OperationalError as error:
            print(error, flush=True)
"""


@contextmanager
def another_holder(
    lake: str, environment: Mapping[str, str] | None = None
) -> Iterator["subprocess.Popen[str]"]:
    """Run a process until it holds the lease, and kill it at the end."""
    with subprocess.Popen(
        [sys.executable, "-c", _WRITER, lake],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:
        try:
            assert process.stdout
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


def commit(process: "subprocess.Popen[str]", row: str) -> str:
    """Let the process commit a row, and return what it says."""
    assert process.stdin
    assert process.stdout
    process.stdin.write(f"{row}\n")
    process.stdin.flush()
    return process.stdout.readline().strip()
