"""Compare the machine with the demo's requirements, as measured in docs/operations/run.md and rounded up."""

from collections.abc import Iterator
from dataclasses import dataclass

from fleetgauge_local.doctor.machine import CachedJars, FolderCapacity, Machine
from fleetgauge_pipelines.io.errors import JavaError
from fleetgauge_pipelines.io.jars import REPOSITORY_VARIABLE

_GIB = 2**30
#: Measured: 3.5 GiB with seven brokers, Spark, the dashboard and the other services; 3.4 GiB with --regions,
#: shared pages counted once.
MEMORY_BYTES = int(3.75 * _GIB)
#: Kafka's log segments, Spark's temporary files and a day of tables.
STATE_BYTES = 1 * _GIB
#: Jars, a downloaded Java, class data archives and the simulated history.
CACHE_BYTES = _GIB // 2


@dataclass(frozen=True, slots=True)
class DoctorCheck:
    """The result of a check. ``ok`` is None for a note; ``mend`` is the remedy, None if none is needed."""

    check: str
    ok: bool | None
    found: str
    mend: str | None = None


def check_machine(machine: Machine) -> tuple[DoctorCheck, ...]:
    """Return all checks, in the order in which to resolve them."""
    return (
        DoctorCheck("python", True, machine.python),
        _processors(machine.processors),
        check_memory(machine.memory_bytes),
        check_disk("disk for the demo", machine.state, STATE_BYTES),
        check_disk("disk for the cache", machine.cache, CACHE_BYTES),
        _java(machine),
        *(_jars(cached) for cached in machine.jars),
        *_repositories(machine),
        _page_port(machine),
    )


def _processors(count: int) -> DoctorCheck:
    if count >= 2:
        return DoctorCheck("processors", True, str(count))
    return DoctorCheck(
        "processors",
        None,
        str(count),
        "with a single processor, probes run late and some minutes are not measured",
    )


def check_memory(available_bytes: int) -> DoctorCheck:
    """Return whether the available memory suffices for the demo."""
    available = f"{available_bytes / _GIB:.1f} GiB available"
    if available_bytes >= MEMORY_BYTES:
        return DoctorCheck("memory", True, available)
    required = f"{MEMORY_BYTES / _GIB:.2f} GiB"
    return DoctorCheck(
        "memory", False, available, f"end other programs or raise the memory limit: the demo needs {required}"
    )


def check_disk(name: str, folder: FolderCapacity, required_bytes: int) -> DoctorCheck:
    """Return whether the folder is writable and has ``required_bytes`` of free space."""
    free = f"{folder.free_bytes / _GIB:.1f} GiB free at {folder.path}"
    variable = "XDG_CACHE_HOME" if "cache" in name else "--dir or XDG_STATE_HOME"
    if not folder.writable:
        return DoctorCheck(
            name, False, f"{folder.path} is not writable", f"choose another folder with {variable}"
        )
    if folder.free_bytes < required_bytes:
        required = f"{required_bytes / _GIB:.1f} GiB"
        return DoctorCheck(name, False, free, f"free {required}, or choose another folder with {variable}")
    return DoctorCheck(name, True, free)


def _java(machine: Machine) -> DoctorCheck:
    if isinstance(machine.java, JavaError):
        problem, _, remedy = str(machine.java).rpartition(": ")
        return DoctorCheck("java", False, problem, remedy)
    java = machine.java
    return DoctorCheck("java", True, f"{java.version} by {java.source} at {java.home}")


def _jars(jars: CachedJars) -> DoctorCheck:
    if jars.error:
        problem, _, remedy = str(jars.error).rpartition(": ")
        return DoctorCheck(f"{jars.name}'s jars", False, problem, remedy)
    cached = f"{jars.total - jars.missing} of {jars.total} in the cache"
    if not jars.missing:
        return DoctorCheck(f"{jars.name}'s jars", True, cached)
    return DoctorCheck(f"{jars.name}'s jars", None, cached, "the next run downloads them")


def _repositories(machine: Machine) -> Iterator[DoctorCheck]:
    for repository in machine.repositories:
        if repository.error is None:
            yield DoctorCheck(f"jar repository {repository.name}", True, "responds")
        else:
            remedy = f"check network and proxy, or set {REPOSITORY_VARIABLE} to another repository"
            yield DoctorCheck(
                f"jar repository {repository.name}", False, f"does not respond ({repository.error})", remedy
            )


def _page_port(machine: Machine) -> DoctorCheck:
    name = f"port {machine.page_port}"
    if machine.page_port_free:
        return DoctorCheck(name, True, "free")
    return DoctorCheck(name, None, "taken", "the demo uses another free port, or the one given with --port")
