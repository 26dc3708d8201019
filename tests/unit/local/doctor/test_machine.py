import json
import socket
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner

from fleetgauge_local.doctor import machine
from fleetgauge_local.doctor.cli import doctor
from fleetgauge_local.doctor.machine import available_memory_bytes, look, place
from fleetgauge_pipelines.io.errors import JavaError

MIB = 2**20


def quiet(_: str) -> None:
    pass


def control_group(folder: Path, limit: str, used: int, files: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "memory.max").write_text(f"{limit}\n")
    (folder / "memory.current").write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"anon {used - files}\ninactive_file {files}\nactive_file 0\n")


def own_group(root: Path) -> Path:
    return root / Path("/proc/self/cgroup").read_text().strip().rpartition("::/")[2]


def test_the_tightest_control_group_around_says_how_much_memory_is_left(tmp_path: Path) -> None:
    control_group(tmp_path, str(64 * MIB), used=48 * MIB, files=8 * MIB)
    assert available_memory_bytes(tmp_path) == 24 * MIB

    control_group(own_group(tmp_path), str(32 * MIB), used=20 * MIB, files=0)
    assert available_memory_bytes(tmp_path) == 12 * MIB


def test_without_a_limit_it_is_the_machines_own(tmp_path: Path) -> None:
    control_group(tmp_path, "max", used=48 * MIB, files=8 * MIB)
    assert available_memory_bytes(tmp_path) == pytest.approx(psutil.virtual_memory().available, rel=0.2)


def test_a_folder_that_is_not_there_yet_has_its_parents_disk(tmp_path: Path) -> None:
    found = place(tmp_path / "not" / "yet")
    assert found.path == tmp_path / "not" / "yet"
    assert found.free_bytes > 0
    assert found.writable


def test_an_empty_cache_a_taken_port_and_a_dead_repository_are_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLEETGAUGE_MAVEN_REPOSITORY", "http://127.0.0.1:9/maven")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "no-java"))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        found = look(tmp_path / "cache", tmp_path / "state", port, quiet)

    assert [(one.missing, one.total) for one in found.jars] == [(46, 46), (7, 7)]
    assert not found.page_port_free
    (repository,) = found.repositories
    assert (repository.name, repository.error) == ("FLEETGAUGE_MAVEN_REPOSITORY", "NewConnectionError")
    assert isinstance(found.java, JavaError)


def test_the_command_exits_with_1_and_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "available_memory_bytes", lambda: 64 * MIB)
    done = CliRunner().invoke(doctor, ["--json"])
    assert done.exit_code == 1
    assert "memory" in [check["check"] for check in json.loads(done.stdout) if check["ok"] is False]
