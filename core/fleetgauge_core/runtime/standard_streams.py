"""Standard streams that cannot stop a command: its reader or its terminal may be gone, or know ASCII only."""

import codecs
import errno
import io
import os
import sys
from collections.abc import Set
from typing import Any, TextIO

_STDOUT, _STDERR = 1, 2


class OutputError(OSError):
    """The result of a command cannot be written to stdout, for example because the disk is full."""


#: The error handler of standard streams, by its name among codecs.
PLAIN = "plain-signs"
#: What stands for signs that a terminal's encoding does not have, where possible in as many columns.
_PLAIN_SIGNS = str.maketrans(
    dict(zip("–—−·…●▲△◌✓✕↻→↑↓×µ", "----~*!!o+x@>^vxu", strict=True))
    | dict(zip("▁▂▃▄▅▆▇█", "_.-:=+*#", strict=True))
    | {"≥": ">=", "≤": "<=", "±": "+-"}
)


class _OutputFile(io.FileIO):
    """The file of a standard stream: discards what meets one of the errors ``discard_on``; None: any."""

    def __init__(self, descriptor: int, discard_on: Set[int] | None) -> None:
        super().__init__(descriptor, "w", closefd=False)
        self._discard_on = discard_on

    def write(self, data: Any, /) -> int:
        """Write the bytes. Raises: OutputError."""
        try:
            return super().write(data)
        except OSError as error:
            if self._discard_on is None or error.errno in self._discard_on:
                return len(data)
            raise OutputError(error.errno, error.strerror) from error


def protect_standard_streams() -> None:
    """Replace stdout and stderr by streams that discard what no reader can receive.

    A command that prints to a closed pipe therefore ends with its own exit code, and a process that logs to a
    full disk goes on. Only stdout raises an error, OutputError, when it cannot be written for another reason.
    Signs that the terminal's encoding does not have are replaced by others, and other characters escaped.
    """
    _open_missing_descriptors()
    # A write to a pipe whose reader has ended gives EPIPE; one to a terminal that hung up gives EIO, which is
    # an error of the disk where stdout is a file.
    reader_ended = {errno.EPIPE, errno.EIO} if os.isatty(_STDOUT) else {errno.EPIPE}
    sys.stdout = _protect(_STDOUT, sys.stdout, reader_ended)
    sys.stderr = _protect(_STDERR, sys.stderr, None)


def _write_plainly(error: UnicodeError) -> tuple[str | bytes, int]:
    """Return what is written in place of characters that an encoding does not have."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    characters = error.object[error.start : error.end].translate(_PLAIN_SIGNS)
    # The dots of a spinner.
    plain = "".join("*" if "\u2800" <= character <= "\u28ff" else character for character in characters)
    return plain.encode("ascii", "backslashreplace").decode("ascii"), error.end


codecs.register_error(PLAIN, _write_plainly)


def _open_missing_descriptors() -> None:
    """Open /dev/null for each standard stream that is closed, so that no other file gets its number."""
    for descriptor in (0, _STDOUT, _STDERR):
        try:
            os.fstat(descriptor)
        except OSError:
            # It takes the lowest number that is free, which is this one. Child processes need it as well.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)


def _protect(descriptor: int, stream: TextIO | None, discard_on: Set[int] | None) -> TextIO:
    file = _OutputFile(descriptor, discard_on)
    return io.TextIOWrapper(
        io.BufferedWriter(file),
        encoding=stream.encoding if stream else "utf-8",
        errors=PLAIN,
        # As Python does it: stderr line by line always, stdout on a terminal.
        line_buffering=descriptor == _STDERR or file.isatty(),
    )
