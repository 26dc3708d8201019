"""Measures responses while a thousand connections are silent and two hundred send a byte a second.

Rounds with and without these connections alternate, so that a busy machine affects both alike.
"""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from urllib.request import Request, urlopen

from playwright.sync_api import sync_playwright

from tests.benchmarks._measure import Figure, Options, measure_seconds
from tests.benchmarks.pages import record_request, serve_dashboards
from tests.browser.lake import write
from tests.chromium import launch_chromium

_IDLE, _SLOW = 1_000, 200
_ROUNDS, _REQUESTS = 12, 50
_MAX_RATIO = 1.2
_TIMEOUT_S = 60


def measure(options: Options) -> Iterator[Figure]:
    """Measure the dashboards' server, then the health endpoints of the other processes."""
    idle, slow = options.scale_rows(_IDLE), options.scale_rows(_SLOW)
    with tempfile.TemporaryDirectory(prefix="fleetgauge-bench-") as folder:
        lake = Path(folder, "lake")
        write(lake, datetime.now(UTC))
        with serve_dashboards(lake, workers=1) as (url, _), sync_playwright() as playwright:
            browser = launch_chromium(playwright)
            page = record_request(browser, url)
            browser.close()
            requests = {"dash /livez": Request(f"{url}livez"), "dash fleet page": page}
            yield from _measure_requests(requests, int(url.split(":")[2].strip("/")), idle, slow)
    with _run([sys.executable, "-m", "tests.benchmarks._health_process"]) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        address = f"http://127.0.0.1:{port}"
        requests = {f"health {path}": Request(address + path) for path in ("/livez", "/metrics")}
        yield from _measure_requests(requests, port, idle, slow)


def _measure_requests(requests: Mapping[str, Request], port: int, idle: int, slow: int) -> Iterator[Figure]:
    alone_s: dict[str, list[float]] = {name: [] for name in requests}
    crowded_s: dict[str, list[float]] = {name: [] for name in requests}
    for _ in range(_ROUNDS):
        _ask(requests, alone_s)
        with _hold_connections(port, idle, slow):
            _ask(requests, crowded_s)
    for name in requests:
        alone_ms, crowded_ms = 1000 * _p95(alone_s[name]), 1000 * _p95(crowded_s[name])
        yield Figure(f"{name}, p95 alone", round(alone_ms, 2), "ms")
        yield Figure(f"{name}, p95 with {idle:,} idle and {slow} slow", round(crowded_ms, 2), "ms")
        yield Figure(f"{name}, p95 with them to alone", round(crowded_ms / alone_ms, 2), "times", _MAX_RATIO)


def _ask(requests: Mapping[str, Request], durations_s: Mapping[str, list[float]]) -> None:
    for _ in range(_REQUESTS):
        for name, request in requests.items():
            durations_s[name].append(measure_seconds(_sender(request)))


def _sender(request: Request) -> Callable[[], bytes]:
    def send() -> bytes:
        with urlopen(request, timeout=_TIMEOUT_S) as response:
            body: bytes = response.read()
        return body

    return send


def _p95(durations_s: Sequence[float]) -> float:
    return sorted(durations_s)[len(durations_s) * 95 // 100]


@contextmanager
def _hold_connections(port: int, idle: int, slow: int) -> Iterator[None]:
    arguments = ["-m", "tests.benchmarks._silent_clients", str(port), str(idle), str(slow)]
    with _run([sys.executable, *arguments]) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield


@contextmanager
def _run(command: Sequence[str]) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a process that ends when its stdin is closed."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()
