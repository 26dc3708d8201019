"""Errors of Spark about the files of a lake, in one line instead of a Java stack trace."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from fleetgauge_core.errors import OperationalError

_FULL = "No space left on device"
_FILE = r"(?:file:(?://)?)?(\S+?)"
#: What Hadoop, Delta and Parquet say of a file that is cut, empty, gone or changed.
_PATTERNS = (
    rf"Checksum error: {_FILE} at \d+",
    rf"{_FILE} is not a Parquet file",
    rf"FAILED_READ_FILE\.\w+\] [^\n]*? file {_FILE}\.?\s",
    rf"File {_FILE} does not exist",
)


class LakeFileError(OperationalError):
    """Spark cannot read or write a file of the lake; the message is one line."""


@contextmanager
def explaining_lake_errors() -> Iterator[None]:
    """Raise LakeFileError in place of an error of Spark about a damaged file of a lake or a full disk."""
    try:
        yield
    except (Py4JJavaError, PySparkException) as error:
        if explanation := explain_lake_error(str(error)):
            raise LakeFileError(explanation) from error
        raise


def explain_lake_error(text: str) -> str | None:
    """Return in one line what an error of Spark says about files of a lake; None for other errors."""
    if _FULL in text:
        return "the disk is full: free space on the disks of the lake and of temporary files"
    name = find_damaged_file(text)
    if name is None:
        return None
    return f"{name} is damaged or gone: restore the table from a backup, or run `fleetgauge lake repair`"


def find_damaged_file(text: str) -> str | None:
    """Return the file that the error of Spark says is damaged; None if it is about something else."""
    matches = (re.search(pattern, text) for pattern in _PATTERNS)
    return next((match[1] for match in matches if match), None)
