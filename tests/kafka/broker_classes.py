"""Java classes of the tests, compiled and put on the class path of brokers."""

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fleetgauge_local.distribution import KafkaDistribution, prepare_kafka


def add_class(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Compile a class into ``folder`` for all brokers started from now on; return its qualified name."""
    javac = shutil.which("javac")
    if javac is None:
        pytest.skip("javac is missing: install a JDK")

    def with_class(cache: Path, progress: Callable[[str], None], *, exporters: bool) -> KafkaDistribution:
        plain = prepare_kafka(cache, progress, exporters=exporters)
        jars = ":".join(map(str, plain.class_path))
        source = Path(__file__).with_name(f"{name}.java")
        subprocess.run([javac, "-cp", jars, "-d", str(folder), str(source)], check=True)
        return replace(plain, class_path=(*plain.class_path, folder))

    monkeypatch.setattr("fleetgauge_local.fleet.prepare_kafka", with_class)
    return f"org.fleetgauge.tests.{name}"
