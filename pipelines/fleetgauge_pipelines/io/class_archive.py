"""An archive of the classes that Spark's driver loads: with it the JVM starts in two thirds of the time.

The archive is a file of the cache, written once by another process. Without one the JVM starts as usual
(Java's class data sharing: JEP 310, JEP 350).
"""

import hashlib
import importlib.util
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fleetgauge_pipelines.io.java import Java

#: In the cache.
FOLDER = "classes"
_WRITER = "fleetgauge_pipelines.io.write_class_archive"
_WRITING_S = 180
_ENDING_S = 10


def find_archive(cache: Path, java: Java) -> Path | None:
    """Return the archive of this Java and this Spark; None if there is none, or if it was cut.

    A JVM would crash at one that was cut, so its name has its size.
    """
    archives = (cache / FOLDER).glob(f"{_name_archive(java)}-*.jsa")
    return next((path for path in archives if path.stem.endswith(f"-{path.stat().st_size}")), None)


def store_archive(written: Path, cache: Path, java: Java) -> Path:
    """Move an archive that a JVM has written to where it is found, and return its path."""
    name = f"{_name_archive(java)}-{written.stat().st_size}.jsa"
    return written.rename(cache / FOLDER / name)


def _name_archive(java: Java) -> str:
    # Java refuses an archive of the same classes from another place, or from files that were written again.
    # PySpark is not imported, which takes longer than all else here.
    spark = importlib.util.find_spec("pyspark")
    jars = Path(spark.origin if spark and spark.origin else "").parent / "jars"
    written_for = f"{java.home} {java.version} {jars} {jars.stat().st_mtime_ns}"
    return f"spark-{hashlib.sha256(written_for.encode()).hexdigest()[:16]}"


def list_reading_options(archive: Path | None) -> tuple[str, ...]:
    """Return the options of a JVM that reads the archive, if there is one.

    Java checks that it was made for the same classes, and else loads these as usual.
    """
    return (f'"-XX:SharedArchiveFile={archive}"', "-Xshare:auto", *_QUIET) if archive else ()


def list_writing_options(archive: Path) -> tuple[str, ...]:
    """Return the options of a JVM that writes the archive when it ends."""
    return f'"-XX:ArchiveClassesAtExit={archive}"', *_QUIET


#: Java would say on stdout which classes it cannot archive, and that an archive does not fit.
_QUIET = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")


@contextmanager
def writing_archive(cache: Path, java: Java, progress: Callable[[str], None]) -> Iterator[None]:
    """Let another process write the archive during the block, if it is missing, and wait for it at the end.

    Without a writable cache or enough memory there will be no archive, and nothing else changes.
    """
    if find_archive(cache, java):
        yield
        return
    quiet = subprocess.DEVNULL
    with subprocess.Popen(
        [sys.executable, "-m", _WRITER], stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True
    ) as writer:
        try:
            yield
            progress("archiving Spark's classes (once)")
            _wait(writer, _WRITING_S)
        finally:
            writer.terminate()
            if not _wait(writer, _ENDING_S):
                writer.kill()


def _wait(process: subprocess.Popen[bytes], timeout_s: float) -> bool:
    """Return whether a process ends in time."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout_s)
    return process.returncode is not None
