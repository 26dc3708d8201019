"""Errors of Spark about the files of a lake, in one line instead of a Java stack trace."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from fleetgauge_core.errors import OperationalError
from fleetgauge_pipelines.io.table_files import DataFileError, describe_damaged_file

_FULL = re.compile("No space left on device|Disk quota exceeded")
#: What a task says of a file of the lake.
_OF_TASK = re.compile(rf"{DataFileError.__name__}: ([^\n]+)")
_FILE = r"(?:file:(?://)?)?(\S[^\n]*?)"
#: What Hadoop, Delta and Parquet say of a file that is cut, empty, gone or changed.
_PATTERNS = (
    rf"Checksum error: {_FILE} at \d+",
    r"(?:file:(?://)?|(?=s3a?://))(\S[^\n]*?) is not a Parquet file",
    rf"FAILED_READ_FILE\.\w+\] [^\n]*? file {_FILE}\.\s",
    rf"File {_FILE} does not exist",
    rf"Exception: {_FILE} \(No such file or directory\)",
    rf"No such file or directory: {_FILE}(?:\n|$)",
)


class LakeFileError(OperationalError):
    """Spark cannot read or write a file of the lake; the message is one line."""


@contextmanager
def explaining_lake_errors(lake: str) -> Iterator[None]:
    """Raise LakeFileError in place of an error of Spark about a damaged file of the lake or a full disk."""
    try:
        yield
    except (Py4JJavaError, PySparkException) as error:
        if explanation := explain_lake_error(str(error), lake):
            raise LakeFileError(explanation) from error
        raise


def explain_lake_error(text: str, lake: str) -> str | None:
    """Return in one line what an error of Spark says about files of a lake; None for other errors."""
    if _FULL.search(text):
        return "the disk is full: free space on the disks of the lake and of temporary files"
    if line := _OF_TASK.search(text):
        return line[1]
    name = find_damaged_file(text)
    # A file of the shuffle, or an input of backfill, is no file of the lake.
    if name is None or not name.startswith(lake.removeprefix("file://").rstrip("/")):
        return None
    return describe_damaged_file(name)


def find_damaged_file(text: str) -> str | None:
    """Return the file that the error of Spark says is damaged; None if it is about something else."""
    matches = (re.search(pattern, text) for pattern in _PATTERNS)
    return next((match[1] for match in matches if match), None)
