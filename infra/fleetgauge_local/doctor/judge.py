"""What was observed against what the demo needs. The figures are those of docs/operations.md, rounded up."""

from collections.abc import Iterator
from dataclasses import dataclass

from fleetgauge_local.doctor.machine import Jars, Machine, Place
from fleetgauge_pipelines.io.errors import JavaError
from fleetgauge_pipelines.io.jars import REPOSITORY_VARIABLE

_GIB = 2**30
#: Seven brokers, Spark, the page and the rest, measured: 3.5 GiB. Regions, with what processes share counted
#: once: 3.4 GiB.
MEMORY_BYTES = int(3.75 * _GIB)
#: Kafka's segments, Spark's scratch and a day of tables.
STATE_BYTES = 1 * _GIB
#: Jars, the packaged Java, archives of classes, the history.
CACHE_BYTES = _GIB // 2


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the doctor's. ``mend`` is None where nothing need be done; ``ok`` None is a remark."""

    check: str
    ok: bool | None
    found: str
    mend: str | None = None


def judge(machine: Machine) -> tuple[Check, ...]:
    """Every check, in the order in which one would mend."""
    return (
        Check("python", True, machine.python),
        _processors(machine.processors),
        enough_memory(machine.memory_bytes),
        enough_disk("disk for the demo", machine.state, STATE_BYTES),
        enough_disk("disk for the cache", machine.cache, CACHE_BYTES),
        _java(machine),
        *(_jars(one) for one in machine.jars),
        *_repositories(machine),
        _page_port(machine),
    )


def _processors(count: int) -> Check:
    if count >= 2:
        return Check("processors", True, str(count))
    return Check("processors", None, str(count), "with a single one, probes are late and minutes unmeasured")


def enough_memory(available_bytes: int) -> Check:
    found = f"{available_bytes / _GIB:.1f} GiB available"
    if available_bytes >= MEMORY_BYTES:
        return Check("memory", True, found)
    wanted = f"{MEMORY_BYTES / _GIB:.2f} GiB"
    return Check("memory", False, found, f"end something else or raise the limit: the demo needs {wanted}")


def enough_disk(name: str, place: Place, wanted_bytes: int) -> Check:
    found = f"{place.free_bytes / _GIB:.1f} GiB free at {place.path}"
    variable = "XDG_CACHE_HOME" if "cache" in name else "--dir or XDG_STATE_HOME"
    if not place.writable:
        return Check(name, False, f"{place.path} cannot be written", f"choose another with {variable}")
    if place.free_bytes < wanted_bytes:
        wanted = f"{wanted_bytes / _GIB:.1f} GiB"
        return Check(name, False, found, f"free {wanted}, or choose another place with {variable}")
    return Check(name, True, found)


def _java(machine: Machine) -> Check:
    if isinstance(machine.java, JavaError):
        found, _, mend = str(machine.java).rpartition(": ")
        return Check("java", False, found, mend)
    java = machine.java
    return Check("java", True, f"{java.version} by {java.source} at {java.home}")


def _jars(jars: Jars) -> Check:
    there = f"{jars.total - jars.missing} of {jars.total} in the cache"
    if not jars.missing:
        return Check(f"{jars.name}'s jars", True, there)
    return Check(f"{jars.name}'s jars", None, there, "the next run fetches them")


def _repositories(machine: Machine) -> Iterator[Check]:
    for one in machine.repositories:
        if one.error is None:
            yield Check(f"jar repository {one.name}", True, "answers")
        else:
            mend = f"check network and proxy, or name another in {REPOSITORY_VARIABLE}"
            yield Check(f"jar repository {one.name}", False, f"does not answer ({one.error})", mend)


def _page_port(machine: Machine) -> Check:
    name = f"port {machine.page_port}"
    if machine.page_port_free:
        return Check(name, True, "free")
    return Check(name, None, "taken", "the demo takes another one, or the one of --port")
