"""What each part of a running demo takes: resident memory, and CPU over half a minute."""

import json
import random
import tempfile
import time
from pathlib import Path

import click
import psutil

from fleetgauge_local.demo import Running, running_demo, wait_for
from fleetgauge_local.ports import free_ports
from tests.chaos.hang_brokers import say


def parts(running: Running) -> dict[str, list[psutil.Process]]:
    """Part to its processes, children included."""
    status = running.local.status()
    found = {name: _tree(pid) for name, pid in running.services.pids().items()}
    found["fleet runner and proxies"] = [psutil.Process(status.runner_pid)]
    found["7 brokers"] = [psutil.Process(b.pid) for c in status.clusters for b in c.brokers if b.pid]
    return found


def _tree(pid: int) -> list[psutil.Process]:
    process = psutil.Process(pid)
    return [process, *process.children(recursive=True)]


def _cpu_s(processes: list[psutil.Process]) -> float:
    return sum(sum(p.cpu_times()[:2]) for p in processes if p.is_running())


@click.command()
@click.option(
    "--after", "after_s", default=180.0, show_default=True, help="Seconds from ready to the measurement."
)
@click.option("--over", "over_s", default=60.0, show_default=True, help="Seconds measured.")
def main(after_s: float, over_s: float) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        running_demo(Path(folder), free_ports(1, random.Random())[0], say, time.monotonic()) as running,
    ):
        wait_for(after_s, running, lambda _: None, "warming up")
        measured = parts(running)
        before = {name: _cpu_s(processes) for name, processes in measured.items()}
        started = time.monotonic()
        wait_for(over_s, running, lambda _: None, "measuring")
        took = time.monotonic() - started
        rows = {
            name: {
                "rss_mib": round(sum(p.memory_info().rss for p in processes if p.is_running()) / 2**20),
                "cpu_percent_of_a_core": round(100 * (_cpu_s(processes) - before[name]) / took, 1),
            }
            for name, processes in measured.items()
        }
        print(json.dumps({"seconds_to_ready": round(running.seconds_to_ready, 1), "parts": rows}, indent=1))


if __name__ == "__main__":
    main()
