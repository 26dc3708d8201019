"""Classes of our own in brokers' JVMs, compiled as they are needed."""

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fleetgauge_local.distribution import Distribution, prepare


def add_class(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Brokers that are started from now on know it; its full name. ``folder`` gets what is compiled."""
    javac = shutil.which("javac")
    if javac is None:
        pytest.skip("javac is missing: install a JDK")

    def with_class(cache: Path, progress: Callable[[str], None], *, exporters: bool) -> Distribution:
        plain = prepare(cache, progress, exporters=exporters)
        jars = ":".join(map(str, plain.class_path))
        source = Path(__file__).with_name(f"{name}.java")
        subprocess.run([javac, "-cp", jars, "-d", str(folder), str(source)], check=True)
        return replace(plain, class_path=(*plain.class_path, folder))

    monkeypatch.setattr("fleetgauge_local.fleet.prepare", with_class)
    return f"org.fleetgauge.tests.{name}"
