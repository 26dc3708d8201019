"""Run commands that the fleet file configures."""

import os
import signal
import subprocess
from collections.abc import Sequence


class CommandError(Exception):
    """A command failed; the message is one line."""


def run_command(command: Sequence[str], timeout_s: float) -> bytes:
    """Run a command without a shell and return its standard output.

    After ``timeout_s`` seconds the command and all processes that it started are killed.

    Raises: CommandError if it cannot be started, times out, or exits with another code than 0.
    """
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise CommandError(f"{command[0]}: {getattr(error, 'strerror', None) or error}") from error
    with process:
        try:
            stdout, stderr = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired as error:
            _kill(process)
            raise CommandError(f"{command[0]}: killed after a timeout of {timeout_s:g} s") from error
        except BaseException:
            _kill(process)
            raise
    if process.returncode:
        raise CommandError(f"{command[0]} exited with {process.returncode}: {_last_line(stderr)}")
    return stdout


def _kill(process: "subprocess.Popen[bytes]") -> None:
    # The process was not waited for, so its id cannot have been reused.
    os.killpg(process.pid, signal.SIGKILL)


def _last_line(stderr: bytes) -> str:
    lines = stderr.decode(errors="replace").strip().splitlines()
    return lines[-1].strip() if lines else "no error output"
