"""An archive of the classes that Spark's driver loads: with it the JVM starts in two thirds of the time.

The archive is a file of the cache, written once by another process. Without one the JVM starts as usual
(Java's class data sharing: JEP 310, JEP 350).
"""

import hashlib
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

from fleetgauge_pipelines.io.java import Java

_WRITER = "fleetgauge_pipelines.io.write_class_archive"
_WRITING_S = 180
_ENDING_S = 10


def locate_archive(cache: Path, java: Java) -> Path:
    """Return where the archive of this Java and this Spark is."""
    written_for = f"{java.home} {java.version} {version('pyspark')}"
    return cache / "classes" / f"spark-{hashlib.sha256(written_for.encode()).hexdigest()[:16]}.jsa"


def list_reading_options(archive: Path) -> tuple[str, ...]:
    """Return the options of a JVM that reads the archive, if there is one.

    Java checks that it is whole and made for the same classes, and else loads these as usual.
    """
    return (f'"-XX:SharedArchiveFile={archive}"', "-Xshare:auto", *_QUIET) if archive.exists() else ()


def list_writing_options(archive: Path) -> tuple[str, ...]:
    """Return the options of a JVM that writes the archive when it ends."""
    return f'"-XX:ArchiveClassesAtExit={archive}"', *_QUIET


#: Java would say on stdout which classes it cannot archive, and that an archive does not fit.
_QUIET = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")


@contextmanager
def writing_archive() -> Iterator[None]:
    """Let another process write the archive during the block, if it is missing, and wait for it at the end.

    Without a writable cache or enough memory there will be no archive, and nothing else changes.
    """
    command = [sys.executable, "-m", _WRITER]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True) as writer:
        try:
            yield
            writer.wait(_WRITING_S)
        except subprocess.TimeoutExpired:
            pass
        finally:
            writer.terminate()
            try:
                writer.wait(_ENDING_S)
            except subprocess.TimeoutExpired:
                writer.kill()
