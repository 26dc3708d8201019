"""Processor seconds of every command's `--help`: the least of some runs, each in a process of its own."""

import resource
import subprocess
import sys
from collections.abc import Iterator

from tests.benchmarks._measure import RUNS, Figure, Options
from tests.promises.commands import NAME, commands

GOAL_S = 0.3


def measure(options: Options) -> Iterator[Figure]:
    """Yield a figure for each command and subcommand, or for the top-level commands that are asked for."""
    for path, _, _ in commands():
        words = path.split()[1:]
        if not options.only or (words and words[0] in options.only):
            fastest_s = min(_measure_cpu_s(words) for _ in range(RUNS))
            yield Figure(" ".join((NAME, *words, "--help")), round(fastest_s, 3), "s of processor", GOAL_S)


def _measure_cpu_s(words: list[str]) -> float:
    """Return the user and system time of a process that prints the help."""
    before_s = _children_cpu_s()
    command = [sys.executable, "-m", "fleetgauge_core", *words, "--help"]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return _children_cpu_s() - before_s


def _children_cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
