"""Alternating runs, medians, and the memory of a process with its children."""

import math
import os
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import psutil

RUNS = 5
_LOOK_EVERY_S = 0.1

Work = Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Options:
    """``scale`` is the share of a benchmark's full size; ``only`` names the cases wanted (all, if empty)."""

    scale: float = 1.0
    only: tuple[str, ...] = ()

    def rows(self, full: int) -> int:
        return max(1, round(full * self.scale))


@dataclass(frozen=True, slots=True)
class Result:
    """Seconds are medians; ``peak_mb`` is our own process with its JVM, at its largest."""

    name: str
    rows: int
    ours_s: float
    peers: Mapping[str, float] = field(default_factory=dict)
    peak_mb: int | None = None
    more: Mapping[str, Any] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """What ``--json`` prints of it."""
        found = asdict(self)
        fastest = min(self.peers.values(), default=None)
        ratio = None if fastest is None else round(self.ours_s / fastest, 2)
        return {**found.pop("more") | found, "ratio_to_fastest_peer": ratio}

    def line(self) -> str:
        """For a person."""
        peers = "".join(f", {name} {seconds_} s" for name, seconds_ in self.peers.items())
        memory = f", {self.peak_mb} MB" if self.peak_mb else ""
        more = "".join(f", {key} {value}" for key, value in self.more.items())
        return f"{self.name}: {self.rows} rows, ours {self.ours_s} s{peers}{memory}{more}"


@dataclass(frozen=True, slots=True)
class Figure:
    """One number; a ``goal`` is the most that it should be."""

    name: str
    value: float
    unit: str
    goal: float | None = None

    def document(self) -> dict[str, Any]:
        """What ``--json`` prints of it."""
        return asdict(self)

    def line(self) -> str:
        """For a person."""
        if self.goal is None:
            return f"{self.name}: {self.value:g} {self.unit}"
        missed = ", missed" if self.value > self.goal else ""
        return f"{self.name}: {self.value:g} {self.unit} (goal {self.goal:g}{missed})"


def alternating(works: Mapping[str, Work], runs: int = RUNS) -> dict[str, float]:
    """Median seconds of each; one round runs them all, so that a busy machine is busy for all of them."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for work in works.values():
        work()
    for _ in range(runs):
        for name, work in works.items():
            times[name].append(seconds(work))
    return {name: round(statistics.median(some), 3) for name, some in times.items()}


def seconds(work: Work) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


@dataclass(frozen=True, slots=True)
class Spent:
    """Seconds by the clock, and of processors; a busy machine stretches the former."""

    wall_s: float
    cpu_s: float

    def __add__(self, other: "Spent") -> "Spent":
        return Spent(self.wall_s + other.wall_s, self.cpu_s + other.cpu_s)


def spent(work: Work) -> Spent:
    """By this process and those of its children that live through it."""
    cpu_s, started = _cpu_s(), time.perf_counter()
    work()
    return Spent(round(time.perf_counter() - started, 1), round(_cpu_s() - cpu_s, 1))


def _cpu_s() -> float:
    return sum(sum(times[:2]) for times in _of_all(psutil.Process.cpu_times))


@contextmanager
def peak_memory() -> Iterator[Callable[[], int]]:
    """Gives a function that says the most MB that this process and its children have held so far."""
    highest, done = 0, threading.Event()

    def look() -> None:
        nonlocal highest
        while not done.wait(_LOOK_EVERY_S):
            highest = max(highest, _resident_bytes())

    watching = threading.Thread(target=look, daemon=True)
    watching.start()
    try:
        yield lambda: highest // 2**20
    finally:
        done.set()
        watching.join()


def _resident_bytes() -> int:
    return sum(memory.rss for memory in _of_all(psutil.Process.memory_info))


def _of_all(ask: Callable[[psutil.Process], Any]) -> Iterator[Any]:
    """This process and its children; those that end meanwhile are left out."""
    me = psutil.Process(os.getpid())
    for process in [me, *me.children(recursive=True)]:
        with suppress(psutil.NoSuchProcess):
            yield ask(process)


def growth_exponent(sizes: Sequence[int], times: Sequence[float]) -> float:
    """The slope of log time over log size: 1 is linear."""
    x, y = ([math.log(one) for one in some] for some in (sizes, times))
    slope, _ = statistics.linear_regression(x, y)
    return round(slope, 3)


def peak_bytes(pid: int) -> int:
    """The most that a process ever had, as the kernel keeps it (proc(5), VmHWM); psutil does not tell."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    (kib,) = (line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(kib) * 1024
