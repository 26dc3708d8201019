"""Spark's driver starts from an archive of its classes where there is one, and without it else."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fleetgauge_pipelines.io.class_archive import (
    FOLDER,
    find_archive,
    list_reading_options,
    list_writing_options,
    store_archive,
)
from fleetgauge_pipelines.io.java import Java, JavaSource

JAVA = Java(Path("/java"), "17.0.1", JavaSource.PATH)
ARCHIVED = "shared objects file (top)"
OPEN_SESSION = "from fleetgauge_pipelines.io.session import open_session; open_session('test', print).stop()"


def test_each_java_has_an_archive_of_its_own_which_is_not_found_once_it_is_cut(tmp_path: Path) -> None:
    javas = [
        JAVA,
        Java(JAVA.home, "17.0.2", JavaSource.PATH),
        Java(Path("/other"), JAVA.version, JavaSource.PATH),
    ]
    (tmp_path / FOLDER).mkdir()
    for number, java in enumerate(javas, 1):
        assert find_archive(tmp_path, java) is None
        written = tmp_path / "written"
        written.write_bytes(bytes(number))
        archive = store_archive(written, tmp_path, java)
        assert find_archive(tmp_path, java) == archive
    archive.write_bytes(b"")
    assert find_archive(tmp_path, javas[-1]) is None
    assert find_archive(tmp_path, javas[0]) is not None


def test_a_jvm_reads_an_archive_if_there_is_one(tmp_path: Path) -> None:
    archive = tmp_path / "a folder" / "spark.jsa"
    assert list_reading_options(None) == ()
    assert f'"-XX:SharedArchiveFile={archive}"' in list_reading_options(archive)
    assert f'"-XX:ArchiveClassesAtExit={archive}"' in list_writing_options(archive)


@pytest.mark.thorough
def test_an_archive_is_written_once_and_read_and_a_damaged_one_does_no_harm(tmp_path: Path) -> None:
    cache = tmp_path / "a cache" / "fleetgauge"
    cache.mkdir(parents=True)
    default = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    (cache / "jars").symlink_to(Path(default, "fleetgauge", "jars"))
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache.parent)}

    def run(*arguments: str, **more: str) -> str:
        command = [sys.executable, *arguments]
        return subprocess.run(
            command, env=environment | more, check=True, capture_output=True, text=True
        ).stdout

    write = ("-m", "fleetgauge_pipelines.io.write_class_archive")
    (archive,) = map(Path, run(*write).splitlines())
    written_at = archive.stat().st_mtime_ns
    run(*write)
    assert archive.stat().st_mtime_ns == written_at
    assert {path.name for path in archive.parent.iterdir()} == {".lock", archive.name}

    def count_archived(log: Path) -> int:
        run("-c", OPEN_SESSION, JDK_JAVA_OPTIONS=f"-Xlog:class+load:file={log}")
        return log.read_text().count(ARCHIVED)

    assert count_archived(tmp_path / "whole.log") > 3000
    archive.chmod(0o644)
    os.truncate(archive, archive.stat().st_size // 2)
    assert count_archived(tmp_path / "damaged.log") == 0
