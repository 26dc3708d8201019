"""Reading commands as processes, whose reader or terminal may leave them: what they are, and how they end."""

import os
import subprocess
import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryFile
from threading import Timer

from tests.browser.lake import ORDERS

#: They are run in a folder of tests.promises.run_promises.write_inputs; one leads to an error, one to code 1.
READING_COMMANDS: Sequence[Sequence[str]] = (
    ("--version",),
    ("--help",),
    ("slo",),
    ("slo", "--json"),
    ("slo", "--csv"),
    ("slo", "2026-03-02"),
    ("slo", "--lake", "none"),
    ("explain", ORDERS, "2026-03-02"),
    ("explain", ORDERS, "2026-03-02", "--json"),
    ("explain", ORDERS, "2026-03-02", "--csv"),
    ("explain", "nobody", "2026-03-02"),
    ("report", "2026-03-02"),
    ("report", "2026-03-02", "--json"),
    ("report", "2026-03-02", "--format", "html"),
    ("compare", "--by", "region=eu,us"),
    ("compare", "--by", "region=eu,us", "--json"),
    ("compare", "--by", "region=eu,us", "--csv"),
    ("correct", "list"),
    ("correct", "list", "--json"),
    ("quarantine", "list"),
    ("quarantine", "list", "--json"),
    ("quarantine", "show", "topic/0/1"),
    ("quarantine", "show", "topic/0/2"),
    ("lake", "status"),
    ("lake", "status", "--json"),
    ("mitigate", "history"),
    ("mitigate", "history", "--json"),
    ("recover", "map", "--from-file", "case.json"),
    ("recover", "map", "--from-file", "case.json", "--json"),
    ("replay", "run", "hang.incident.gz"),
    ("replay", "run", "hang.incident.gz", "--json"),
    ("probe", "acls"),
    ("probe", "acls", "--json"),
    ("validate", "every-key.yaml"),
    ("validate", "every-key.yaml", "--json"),
    ("validate", "--schema"),
)
_DEADLINE_S = 120
#: What a process that was aborted, or met an error that it did not expect, says.
_DEFECTS = ("terminate called", "Traceback", "Exception ignored", "BrokenPipeError", "Fatal Python error")


class Way(StrEnum):
    """How a command's output is read."""

    TO_THE_END = "to the end"
    HEAD = "head"
    CLOSED_PIPE = "closed pipe"
    ASCII_TERMINAL = "ascii terminal"


def run_command(arguments: Sequence[str], way: Way, folder: Path) -> tuple[int, str]:
    """Run a command in a folder, and return its exit code and the defect on its stderr, empty if none."""
    command = [sys.executable, "-m", "fleetgauge_core", *arguments]
    environment = dict(os.environ)
    if way is Way.ASCII_TERMINAL:
        environment |= {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "COLUMNS": "80"}
        read_end, write_end = os.openpty()
    else:
        read_end, write_end = os.pipe()
    if way is Way.CLOSED_PIPE:
        os.close(read_end)
    with (
        TemporaryFile("w+") as errors,
        subprocess.Popen(command, stdout=write_end, stderr=errors, cwd=folder, env=environment) as process,
    ):
        os.close(write_end)
        # Its exit code is then none of the documented ones, and reading ends.
        deadline = Timer(_DEADLINE_S, process.kill)
        deadline.start()
        if way is Way.HEAD:
            os.read(read_end, 1)
            os.close(read_end)
        elif way is not Way.CLOSED_PIPE:
            _read_to_the_end(read_end)
        process.wait()
        deadline.cancel()
        errors.seek(0)
        defects = [line.rstrip() for line in errors if _is_defect(line)]
    return process.returncode, next(iter(defects), "")


def _read_to_the_end(descriptor: int) -> None:
    try:
        while os.read(descriptor, 65536):
            pass
    except OSError:
        # A terminal whose other side is closed ends with EIO on Linux.
        pass
    os.close(descriptor)


def _is_defect(line: str) -> bool:
    return any(text in line for text in _DEFECTS)
