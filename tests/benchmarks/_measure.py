"""Measures times of alternating runs, and the CPU time and memory of a process with its children."""

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
_SAMPLE_EVERY_S = 0.1

Work = Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Options:
    """``scale`` is the share of a benchmark's full size; ``only`` selects cases by name, all if empty."""

    scale: float = 1.0
    only: tuple[str, ...] = ()

    def scale_rows(self, full: int) -> int:
        """Return the number of rows at this scale, at least 1."""
        return max(1, round(full * self.scale))


@dataclass(frozen=True, slots=True)
class Result:
    """Seconds are medians; ``peak_mb`` is the maximum memory of this process with its JVM."""

    name: str
    rows: int
    ours_s: float
    peers: Mapping[str, float] = field(default_factory=dict)
    peak_mb: int | None = None
    more: Mapping[str, Any] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """Return the value that ``--json`` prints."""
        fields = asdict(self)
        fastest = min(self.peers.values(), default=None)
        ratio = None if fastest is None else round(self.ours_s / fastest, 2)
        return {**fields.pop("more") | fields, "ratio_to_fastest_peer": ratio}

    def line(self) -> str:
        """Return a line for a terminal."""
        peers = "".join(f", {name} {seconds_} s" for name, seconds_ in self.peers.items())
        memory = f", {self.peak_mb} MB" if self.peak_mb else ""
        more = "".join(f", {key} {value}" for key, value in self.more.items())
        return f"{self.name}: {self.rows} rows, ours {self.ours_s} s{peers}{memory}{more}"


@dataclass(frozen=True, slots=True)
class Figure:
    """A single number; ``goal`` is its upper limit."""

    name: str
    value: float
    unit: str
    goal: float | None = None

    def document(self) -> dict[str, Any]:
        """Return the value that ``--json`` prints."""
        return asdict(self)

    def line(self) -> str:
        """Return a line for a terminal."""
        if self.goal is None:
            return f"{self.name}: {self.value:g} {self.unit}"
        missed = ", missed" if self.value > self.goal else ""
        return f"{self.name}: {self.value:g} {self.unit} (goal {self.goal:g}{missed})"


def time_alternately(works: Mapping[str, Work], runs: int = RUNS) -> dict[str, float]:
    """Return the median seconds of each; each round runs all, so that a busy machine affects all equally."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for work in works.values():
        work()
    for _ in range(runs):
        for name, work in works.items():
            times[name].append(measure_seconds(work))
    return {name: round(statistics.median(durations_s), 3) for name, durations_s in times.items()}


def measure_seconds(work: Work) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


@dataclass(frozen=True, slots=True)
class Duration:
    """Seconds of wall time and of CPU time; a busy machine increases only the former."""

    wall_s: float
    cpu_s: float

    def __add__(self, other: "Duration") -> "Duration":
        return Duration(self.wall_s + other.wall_s, self.cpu_s + other.cpu_s)


def measure_duration(work: Work) -> Duration:
    """Measure this process and those of its children that run before and after the work."""
    cpu_s, started = _cpu_s(), time.perf_counter()
    work()
    return Duration(round(time.perf_counter() - started, 1), round(_cpu_s() - cpu_s, 1))


def _cpu_s() -> float:
    return sum(sum(times[:2]) for times in _query_processes(psutil.Process.cpu_times))


@contextmanager
def track_peak_memory() -> Iterator[Callable[[], int]]:
    """Yield a function that returns the maximum memory of this process and its children so far, in MB."""
    highest, done = 0, threading.Event()

    def sample() -> None:
        nonlocal highest
        while not done.wait(_SAMPLE_EVERY_S):
            highest = max(highest, _resident_bytes())

    sampler = threading.Thread(target=sample, daemon=True)
    sampler.start()
    try:
        yield lambda: highest // 2**20
    finally:
        done.set()
        sampler.join()


def _resident_bytes() -> int:
    return sum(memory.rss for memory in _query_processes(psutil.Process.memory_info))


def _query_processes(query: Callable[[psutil.Process], Any]) -> Iterator[Any]:
    """Yield the result for this process and each child, except those that end meanwhile."""
    parent = psutil.Process(os.getpid())
    for process in [parent, *parent.children(recursive=True)]:
        with suppress(psutil.NoSuchProcess):
            yield query(process)


def fit_growth_exponent(sizes: Sequence[int], times: Sequence[float]) -> float:
    """Return the slope of log time over log size: 1 is linear."""
    x, y = ([math.log(value) for value in values] for values in (sizes, times))
    slope, _ = statistics.linear_regression(x, y)
    return round(slope, 3)


def read_peak_bytes(pid: int) -> int:
    """Return a process's maximum resident memory in bytes (proc(5), VmHWM), which psutil does not offer."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    (kib,) = (line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(kib) * 1024
