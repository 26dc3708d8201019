import json
import socket
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner

from fleetgauge_local.doctor import machine
from fleetgauge_local.doctor.cli import doctor
from fleetgauge_local.doctor.machine import inspect_folder, inspect_machine, measure_available_memory_bytes
from fleetgauge_pipelines.io.errors import JavaError

MIB = 2**20


def ignore_progress(_: str) -> None:
    pass


def control_group(folder: Path, limit: str, used: int, files: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "memory.max").write_text(f"{limit}\n")
    (folder / "memory.current").write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"anon {used - files}\ninactive_file {files}\nactive_file 0\n")


def own_group(root: Path) -> Path:
    return root / Path("/proc/self/cgroup").read_text().strip().rpartition("::/")[2]


def test_available_memory_is_that_of_the_tightest_enclosing_control_group(tmp_path: Path) -> None:
    control_group(tmp_path, str(64 * MIB), used=48 * MIB, files=8 * MIB)
    assert measure_available_memory_bytes(tmp_path) == 24 * MIB

    control_group(own_group(tmp_path), str(32 * MIB), used=20 * MIB, files=0)
    assert measure_available_memory_bytes(tmp_path) == 12 * MIB


def test_available_memory_without_a_limit_is_that_of_the_machine(tmp_path: Path) -> None:
    control_group(tmp_path, "max", used=48 * MIB, files=8 * MIB)
    assert measure_available_memory_bytes(tmp_path) == pytest.approx(
        psutil.virtual_memory().available, rel=0.2
    )


def test_a_missing_folder_has_the_capacity_of_its_nearest_existing_parent(tmp_path: Path) -> None:
    capacity = inspect_folder(tmp_path / "not" / "yet")
    assert capacity.path == tmp_path / "not" / "yet"
    assert capacity.free_bytes > 0
    assert capacity.writable


def test_an_empty_cache_a_used_port_and_an_unreachable_repository_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLEETGAUGE_MAVEN_REPOSITORY", "http://127.0.0.1:9/maven")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "no-java"))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        inspected = inspect_machine(tmp_path / "cache", tmp_path / "state", port, ignore_progress)

    assert [(jars.missing, jars.total) for jars in inspected.jars] == [(46, 46), (7, 7)]
    assert not inspected.page_port_free
    (repository,) = inspected.repositories
    assert (repository.name, repository.error) == ("FLEETGAUGE_MAVEN_REPOSITORY", "NewConnectionError")
    assert isinstance(inspected.java, JavaError)


def test_the_command_exits_with_1_and_reports_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "measure_available_memory_bytes", lambda: 64 * MIB)
    result = CliRunner().invoke(doctor, ["--json"])
    assert result.exit_code == 1
    assert "memory" in [check["check"] for check in json.loads(result.stdout) if check["ok"] is False]
