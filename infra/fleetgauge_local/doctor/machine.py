"""Observe the machine; nothing is judged here."""

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
from fleetgauge_pipelines.io.errors import JavaError
from fleetgauge_pipelines.io.jars import SPARK_LOCK, missing, repositories
from fleetgauge_pipelines.io.java import Java, find_java

_ANSWER_S = 10
_CONTROL_GROUPS = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class Place:
    """A folder that is or will be, and what its disk still takes."""

    path: Path
    free_bytes: int
    writable: bool


@dataclass(frozen=True, slots=True)
class Jars:
    """How many of a lock's jars the cache lacks."""

    name: str
    missing: int
    total: int


@dataclass(frozen=True, slots=True)
class Repository:
    """A jar repository, and what kept it from answering (None: it answered)."""

    name: str
    error: str | None


@dataclass(frozen=True, slots=True)
class Machine:
    """All that was looked at. ``repositories`` is empty while no jar is missing."""

    python: str
    processors: int
    memory_bytes: int
    java: Java | JavaError
    jars: tuple[Jars, ...]
    repositories: tuple[Repository, ...]
    cache: Place
    state: Place
    page_port: int
    page_port_free: bool


def look(cache: Path, state: Path, page_port: int, progress: Callable[[str], None]) -> Machine:
    """Everything at once. Asks the network only for what is missing here."""
    jars = tuple(
        Jars(name, *missing(lock, cache)) for name, lock in (("Kafka", KAFKA_LOCK), ("Spark", SPARK_LOCK))
    )
    return Machine(
        python=platform.python_version(),
        processors=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        memory_bytes=available_memory_bytes(),
        java=_java(cache, progress),
        jars=jars,
        repositories=tuple(_asked()) if any(one.missing for one in jars) else (),
        cache=place(cache),
        state=place(state),
        page_port=page_port,
        page_port_free=is_free(page_port),
    )


def _java(cache: Path, progress: Callable[[str], None]) -> Java | JavaError:
    try:
        return find_java(cache, progress)
    except JavaError as error:
        return error


def _asked() -> Iterator[Repository]:
    for name, url in repositories().items():
        try:
            urllib3.request("HEAD", url, timeout=_ANSWER_S, retries=False)
            yield Repository(name, None)
        except urllib3.exceptions.HTTPError as error:
            yield Repository(name, type(error).__name__)


def place(path: Path) -> Place:
    """The disk of a folder, which need not exist yet."""
    there = next(folder for folder in (path, *path.parents) if folder.exists())
    return Place(path, shutil.disk_usage(there).free, os.access(there, os.W_OK))


def available_memory_bytes(control_groups: Path = _CONTROL_GROUPS) -> int:
    """What can still be used: of the machine, and of every control group around this process."""
    return min([psutil.virtual_memory().available, *_left_in_control_groups(control_groups)])


def _left_in_control_groups(root: Path) -> Iterator[int]:
    """Version 2 alone. What a group holds of files gives way, so it counts as free."""
    try:
        own = Path("/proc/self/cgroup").read_text().strip().rpartition("::/")[2]
    except OSError:
        return
    for group in (root / own, *(root / own).parents):
        if not group.is_relative_to(root):
            return
        try:
            limit = (group / "memory.max").read_text().strip()
            used = int((group / "memory.current").read_text())
            held = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
        except OSError:
            continue
        if limit != "max":
            yield int(limit) - used + int(held.get("inactive_file", 0)) + int(held.get("active_file", 0))
