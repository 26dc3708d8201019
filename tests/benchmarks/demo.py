"""Measures how long a newcomer waits: from `fleetgauge demo` to the page, and to the first live minute."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pyarrow.compute as pc

from fleetgauge_core.lake.table_store import TableStore
from fleetgauge_core.tables import CLUSTER_MINUTES
from tests.benchmarks._measure import Figure, Options
from tests.ports import free_port
from tests.waiting import wait_until

#: The second run finds the jars and the simulated history that the first has made.
RUNS = ("cold", "warm")
DEADLINE_S = 900
END_S = 120


def measure(options: Options) -> Iterator[Figure]:
    """Run the demo with an empty cache, and again with what is in the cache then."""
    with tempfile.TemporaryDirectory(prefix="fleetgauge-bench-") as name:
        folder = Path(name)
        for run in RUNS:
            to_page_s, to_minute_s = _time_demo(folder / run, folder / "cache")
            if not options.only or run in options.only:
                yield Figure(f"demo {run}: command to the page", round(to_page_s, 1), "s")
                yield Figure(
                    f"demo {run}: command to the first live minute in the table", round(to_minute_s, 1), "s"
                )


def _time_demo(folder: Path, cache: Path) -> tuple[float, float]:
    """Return the seconds until the page answers, and until the table has a minute of a real broker."""
    folder.mkdir()
    port, began = free_port(), datetime.now(UTC)
    lake = TableStore(str(folder / "demo/lake"), CLUSTER_MINUTES)
    started = time.monotonic()
    with _running(folder, cache, port):
        wait_until(lambda: _answers(port), DEADLINE_S, "the page")
        to_page_s = time.monotonic() - started
        wait_until(lambda: _has_minute_since(lake, began), DEADLINE_S, "a live minute")
        return to_page_s, time.monotonic() - started


@contextmanager
def _running(folder: Path, cache: Path, port: int) -> Iterator[None]:
    command = [
        sys.executable,
        "-m",
        "fleetgauge_core",
        "demo",
        "--dir",
        str(folder / "demo"),
        "--port",
        str(port),
    ]
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    with (
        (folder / "demo.log").open("wb") as log,
        subprocess.Popen(command, stdout=log, stderr=log, env=environment) as demo,
    ):
        try:
            yield
        finally:
            demo.send_signal(signal.SIGINT)
            demo.wait(END_S)


def _answers(port: int) -> bool:
    try:
        with urlopen(f"http://127.0.0.1:{port}/", timeout=1) as answer:
            return bool(answer.status == 200)
    except (URLError, OSError):
        return False


def _has_minute_since(lake: TableStore, began: datetime) -> bool:
    return lake.exists and bool(lake.rows(pc.field("minute") >= began, ("minute",)))
