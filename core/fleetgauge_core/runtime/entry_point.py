"""The process of the command `fleetgauge`: from its standard streams to its exit code."""

import atexit
import os
import sys
import threading
from dataclasses import dataclass

from fleetgauge_core.runtime.cli import main
from fleetgauge_core.runtime.standard_streams import OutputError, protect_standard_streams
from fleetgauge_core.runtime.supervision import end_overdue_process

#: How long threads and exit handlers may go on after the command has returned.
_THREADS_DEADLINE_S = 10.0


@dataclass(slots=True)
class _Outcome:
    exit_code: int = 1
    output_error: OutputError | None = None


def run() -> None:
    """Run the command line of this process, and end the process with the command's exit code.

    The interpreter is not torn down. While it is, threads of Arrow that release Python objects abort the
    process with exit code 134, and a stream that cannot be flushed makes the exit code 120.
    """
    protect_standard_streams()
    outcome = _Outcome()
    # Registered first, called last: after all threads but daemons have ended, and after other exit handlers.
    atexit.register(_end_process, outcome)
    try:
        main(prog_name="fleetgauge")
    except SystemExit as error:
        outcome.exit_code = _code_of(error)
        raise
    except OutputError as error:
        outcome.output_error = error
        raise SystemExit(1) from None
    finally:
        # Python waits for all threads but daemons before it calls exit handlers.
        deadline = threading.Timer(_THREADS_DEADLINE_S, end_overdue_process, (_THREADS_DEADLINE_S,))
        deadline.daemon = True
        deadline.start()


def _code_of(error: SystemExit) -> int:
    """Return the exit code that Python gives a process that ends with this exception."""
    if error.code is None:
        return 0
    return error.code if isinstance(error.code, int) else 1


def _end_process(outcome: _Outcome) -> None:
    try:
        try:
            sys.stdout.flush()
        except OutputError as error:
            outcome.output_error = error
        if outcome.output_error:
            sys.stderr.write(f"fleetgauge: cannot write to stdout: {outcome.output_error.strerror}\n")
            outcome.exit_code = 1
        sys.stderr.flush()
    finally:
        os._exit(outcome.exit_code)
