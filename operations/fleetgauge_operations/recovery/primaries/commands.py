"""Commands of the user's own."""

import os
import signal
import subprocess
from collections.abc import Sequence


class CommandError(Exception):
    """A command did not do it; one line for a person."""


def ran(command: Sequence[str], timeout_s: float) -> bytes:
    """What it printed. Without a shell; after ``timeout_s`` it is killed with all that it started.

    Raises CommandError.
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
            printed, said = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired as error:
            _kill(process)
            raise CommandError(f"{command[0]}: not done after {timeout_s:g} s, and killed") from error
        except BaseException:
            _kill(process)
            raise
    if process.returncode:
        raise CommandError(f"{command[0]} ended with {process.returncode}: {_last_words(said)}")
    return printed


def _kill(process: "subprocess.Popen[bytes]") -> None:
    # Not waited for yet, so its id is still its own.
    os.killpg(process.pid, signal.SIGKILL)


def _last_words(said: bytes) -> str:
    lines = said.decode(errors="replace").strip().splitlines()
    return lines[-1].strip() if lines else "no word"
