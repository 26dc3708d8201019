"""Errors of Spark about damaged files of a lake, in one line instead of a Java stack trace."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from fleetgauge_core.errors import OperationalError

#: What Hadoop, Delta and Parquet say of a file that is cut, empty, gone or changed.
_FILE = r"(?:file:(?://)?)?(\S+?)"
_PATTERNS = (
    rf"Checksum error: {_FILE} at \d+",
    rf"{_FILE} is not a Parquet file",
    rf"FAILED_READ_FILE\.\w+\] [^\n]*? file {_FILE}\.?\s",
    rf"File {_FILE} does not exist",
)


class DamagedFileError(OperationalError):
    """A file of the lake cannot be read by Spark; the message names it."""


@contextmanager
def naming_damaged_files() -> Iterator[None]:
    """Raise DamagedFileError in place of an error of Spark that is about a damaged file of a lake."""
    try:
        yield
    except (Py4JJavaError, PySparkException) as error:
        name = find_damaged_file(str(error))
        if name is None:
            raise
        raise DamagedFileError(
            f"{name} is damaged or gone: restore the table from a backup, or run `fleetgauge lake repair`"
        ) from error


def find_damaged_file(text: str) -> str | None:
    """Return the file that the error of Spark says is damaged; None if it is about something else."""
    matches = (re.search(pattern, text) for pattern in _PATTERNS)
    return next((match[1] for match in matches if match), None)
