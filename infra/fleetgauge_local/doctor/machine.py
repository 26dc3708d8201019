"""Inspect the machine; the module ``checks`` compares the result with the requirements."""

import os
import platform
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import urllib3

from fleetgauge_local.distribution import KAFKA_LOCK
from fleetgauge_local.ports import is_free
from fleetgauge_pipelines.io.errors import JarError, JavaError
from fleetgauge_pipelines.io.jars import SPARK_LOCK, count_missing_jars, list_repositories
from fleetgauge_pipelines.io.java import Java, find_java

_RESPONSE_TIMEOUT_S = 10
_CONTROL_GROUPS = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class FolderCapacity:
    """A folder, which need not exist yet, with the free space of its file system."""

    path: Path
    free_bytes: int
    writable: bool


@dataclass(frozen=True, slots=True)
class CachedJars:
    """The number of jars in a lock file, and how many of them the cache lacks, or why it cannot be read."""

    name: str
    missing: int
    total: int
    error: JarError | None = None


@dataclass(frozen=True, slots=True)
class JarRepository:
    """A jar repository and the error of a request to it; None if it responded."""

    name: str
    error: str | None


@dataclass(frozen=True, slots=True)
class Machine:
    """The state of this machine. ``repositories`` is empty if no jar is missing."""

    python: str
    processors: int
    memory_bytes: int
    java: Java | JavaError
    jars: tuple[CachedJars, ...]
    repositories: tuple[JarRepository, ...]
    cache: FolderCapacity
    state: FolderCapacity
    page_port: int
    page_port_free: bool


def inspect_machine(cache: Path, state: Path, page_port: int, progress: Callable[[str], None]) -> Machine:
    """Return the state of this machine; contacts jar repositories only if jars are missing."""
    locks = (("Kafka", KAFKA_LOCK), ("Spark", SPARK_LOCK))
    jars = tuple(_count_jars(name, lock, cache) for name, lock in locks)
    return Machine(
        python=platform.python_version(),
        processors=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        memory_bytes=measure_available_memory_bytes(),
        java=_java(cache, progress),
        jars=jars,
        repositories=tuple(_contact_repositories()) if any(cached.missing for cached in jars) else (),
        cache=inspect_folder(cache),
        state=inspect_folder(state),
        page_port=page_port,
        page_port_free=is_free(page_port),
    )


def _count_jars(name: str, lock: Path, cache: Path) -> CachedJars:
    try:
        return CachedJars(name, *count_missing_jars(lock, cache))
    except JarError as error:
        return CachedJars(name, missing=0, total=0, error=error)


def _java(cache: Path, progress: Callable[[str], None]) -> Java | JavaError:
    try:
        return find_java(cache, progress)
    except JavaError as error:
        return error


def _contact_repositories() -> Iterator[JarRepository]:
    for name, url in list_repositories().items():
        try:
            urllib3.request("HEAD", url, timeout=_RESPONSE_TIMEOUT_S, retries=False)
            yield JarRepository(name, None)
        except urllib3.exceptions.HTTPError as error:
            yield JarRepository(name, type(error).__name__)


def inspect_folder(path: Path) -> FolderCapacity:
    """Return the free space and usability of a folder, or of its nearest visible parent."""
    existing = next(folder for folder in (path, *path.parents) if _is_visible(folder))
    usable = os.access(existing, os.R_OK | os.W_OK | os.X_OK)
    return FolderCapacity(path, shutil.disk_usage(existing).free, usable)


def _is_visible(folder: Path) -> bool:
    try:
        return folder.exists()
    except PermissionError:
        return False


def measure_available_memory_bytes(control_groups: Path = _CONTROL_GROUPS) -> int:
    """Return the memory that this process can still use, within the machine and its control groups."""
    return min([psutil.virtual_memory().available, *_read_control_group_headroom(control_groups)])


def _read_control_group_headroom(root: Path) -> Iterator[int]:
    """Yield the free bytes of each enclosing cgroup v2 with a limit; page cache counts as free."""
    try:
        own_group = Path("/proc/self/cgroup").read_text().strip().rpartition("::/")[2]
    except OSError:
        return
    for group in (root / own_group, *(root / own_group).parents):
        if not group.is_relative_to(root):
            return
        try:
            limit = (group / "memory.max").read_text().strip()
            used = int((group / "memory.current").read_text())
            statistics = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
        except OSError:
            continue
        if limit != "max":
            yield (
                int(limit)
                - used
                + int(statistics.get("inactive_file", 0))
                + int(statistics.get("active_file", 0))
            )
