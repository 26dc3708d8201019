"""The Java that runs the brokers."""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from fleetgauge_local.errors import LocalFleetError

_OLDEST = 17
_MEND = f"install a Java {_OLDEST} or newer, or point JAVA_HOME at one"


@dataclass(frozen=True)
class Java:
    """An executable and what it calls itself."""

    path: Path
    version: str


def find_java() -> Java:
    """The one of JAVA_HOME, else the one on PATH."""
    path = _path()
    try:
        answer = subprocess.run([path, "-version"], capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise LocalFleetError(f"{path}: does not run: {_MEND}") from error
    found = re.search(r'version "(\d+)', answer.stderr)
    if found is None or int(found.group(1)) < _OLDEST:
        raise LocalFleetError(f"{path}: older than Java {_OLDEST}: {_MEND}")
    return Java(path, answer.stderr)


def _path() -> Path:
    home = os.environ.get("JAVA_HOME")
    if home:
        return Path(home) / "bin" / "java"
    found = shutil.which("java")
    if found is None:
        raise LocalFleetError(f"no java on PATH: {_MEND}")
    return Path(found)
