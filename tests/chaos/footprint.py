"""Measures the resident memory and the CPU time of each part of a running demo."""

import json
import random
import tempfile
import time
from pathlib import Path

import click
import psutil

from fleetgauge_core.runtime.shutdown import ShutdownFlag
from fleetgauge_local.demo import RunningDemo, run_for, running_demo
from fleetgauge_local.ports import find_free_ports
from tests.chaos.hang_brokers import log_progress


def list_processes(running: RunningDemo) -> dict[str, list[psutil.Process]]:
    """Return the processes of each part, including child processes."""
    status = running.local.status()
    processes = {name: _tree(pid) for name, pid in running.services.pids().items()}
    processes["fleet runner and proxies"] = [psutil.Process(status.runner_pid)]
    processes["7 brokers"] = [
        psutil.Process(broker.pid) for cluster in status.clusters for broker in cluster.brokers if broker.pid
    ]
    return processes


def _tree(pid: int) -> list[psutil.Process]:
    process = psutil.Process(pid)
    return [process, *process.children(recursive=True)]


def _cpu_s(processes: list[psutil.Process]) -> float:
    return sum(
        process.cpu_times().user + process.cpu_times().system for process in processes if process.is_running()
    )


@click.command()
@click.option(
    "--after", "after_s", default=180.0, show_default=True, help="Seconds from readiness to the measurement."
)
@click.option(
    "--over", "over_s", default=60.0, show_default=True, help="Duration of the measurement in seconds."
)
def main(after_s: float, over_s: float) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        running_demo(
            Path(folder),
            find_free_ports(1, random.Random())[0],
            log_progress,
            time.monotonic(),
            ShutdownFlag(),
        ) as running,
    ):
        run_for(after_s, running, lambda _: None, "warming up")
        measured = list_processes(running)
        before = {name: _cpu_s(processes) for name, processes in measured.items()}
        started = time.monotonic()
        run_for(over_s, running, lambda _: None, "measuring")
        elapsed_s = time.monotonic() - started
        rows = {
            name: {
                "rss_mib": round(
                    sum(process.memory_info().rss for process in processes if process.is_running()) / 2**20
                ),
                "cpu_percent_of_a_core": round(100 * (_cpu_s(processes) - before[name]) / elapsed_s, 1),
            }
            for name, processes in measured.items()
        }
        print(json.dumps({"seconds_to_ready": round(running.seconds_to_ready, 1), "parts": rows}, indent=1))


if __name__ == "__main__":
    main()
