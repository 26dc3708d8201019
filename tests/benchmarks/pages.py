"""Measures the pages and the weekly review over a very large lake; a bare Dash page is the peer.

The browser loads each page without a cache. The same server serves both, the dashboards with two workers.
Lakes of fewer clusters and of fewer weeks show how the fleet page's response and the review grow.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from statistics import median
from urllib.request import Request, urlopen

import click
import psutil
from playwright.sync_api import Browser, Page, sync_playwright
from playwright.sync_api import Request as PageRequest

from fleetgauge_dashboards.security_headers import TOKEN_HEADER
from tests.benchmarks._great_lake import CLUSTERS, DETAILED_CLUSTER, WEEKS, write_lake
from tests.benchmarks._measure import Figure, Options, measure_seconds, read_peak_bytes
from tests.chromium import launch_chromium

_FLEETGAUGE = str(Path(sys.executable).with_name("fleetgauge"))
_MB = 1_000_000
_ROUNDS = 7
#: Rounds after which each worker has read the lake; the browser never has a cache.
_WARM_UP_ROUNDS = 3
_WORKERS = 2
_READERS, _REQUESTS_PER_READER = 20, 10
_TIMEOUT_MS = 120_000
_CHART = ".js-plotly-plot .main-svg"
_FIRST_ROW = ".ag-center-cols-container [row-index='0']"
#: Smaller lakes: the share of the clusters, and the number of weeks.
_SMALLER_LAKES = ((0.1, WEEKS), (1.0, 9))


def measure(options: Options) -> Iterator[Figure]:
    """Measure the report, first useful paints, responses, memory, and growth with the lake."""
    clusters = options.scale_rows(CLUSTERS)
    with tempfile.TemporaryDirectory(prefix="fleetgauge-bench-") as folder:
        lake = Path(folder, "lake")
        click.echo(f"writing a lake of {clusters:,} clusters", err=True)
        week = str(write_lake(lake, clusters, datetime.now(UTC)))
        duration_s, size = _measure_report(lake, week)
        yield Figure("report", round(duration_s, 1), "s", 20)
        yield Figure("report file", round(size / _MB, 3), "MB", 5)
        yield from _measure_paints(lake)
        for share, weeks in _SMALLER_LAKES:
            yield from _measure_growth(
                Path(folder, f"{share}-{weeks}"), max(1, round(share * clusters)), weeks
            )


def _measure_report(lake: Path, week: str) -> tuple[float, int]:
    """Return the median seconds, and the size of the file in bytes."""
    output = lake.parent / "review.html"
    options = ["--lake", str(lake), "--format", "html", "--output", str(output)]
    command = [_FLEETGAUGE, "report", week, *options]
    durations_s = [
        measure_seconds(lambda: subprocess.run(command, check=True, capture_output=True)) for _ in range(3)
    ]
    return median(durations_s), output.stat().st_size


def _measure_growth(lake: Path, clusters: int, weeks: int) -> Iterator[Figure]:
    """Measure a smaller lake; only its figures have the size in their names."""
    week = str(write_lake(lake, clusters, datetime.now(UTC), weeks))
    size = f"{clusters:,} clusters, {weeks} weeks"
    duration_s, _ = _measure_report(lake, week)
    yield Figure(f"report of {size}", round(duration_s, 1), "s")
    with serve_dashboards(lake) as (url, _), sync_playwright() as playwright:
        browser = launch_chromium(playwright)
        request = record_request(browser, url)
        yield Figure(f"response to one of 20 readers, p95, {size}", round(_measure_p95_ms(request)), "ms")
        browser.close()


def _measure_paints(lake: Path) -> Iterator[Figure]:
    with serve_dashboards(lake) as (url, pid), _serve_bare_page() as peer, sync_playwright() as playwright:
        browser = launch_chromium(playwright)
        pages = {
            "bare": (peer, _CHART),
            "fleet": (url, _FIRST_ROW),
            "cluster": (f"{url}cluster/{DETAILED_CLUSTER}?window=7d", f"#cluster-heatmap {_CHART}"),
        }
        paints_s: dict[str, list[float]] = {name: [] for name in pages}
        for _ in range(_WARM_UP_ROUNDS + _ROUNDS):
            for name, (address, selector) in pages.items():
                paints_s[name].append(_measure_paint(browser, address, selector))
        median_s = {name: median(values[_WARM_UP_ROUNDS:]) for name, values in paints_s.items()}
        yield Figure("fleet page, first useful paint after the start", round(paints_s["fleet"][0], 2), "s")
        yield Figure("bare page, first useful paint", round(median_s["bare"], 2), "s")
        for name, goal in (("fleet", 1.3), ("cluster", 1.6)):
            yield Figure(f"{name} page, first useful paint", round(median_s[name], 2), "s")
            yield Figure(
                f"{name} page to the bare page", round(median_s[name] / median_s["bare"], 2), "times", goal
            )
        request = record_request(browser, url)
        browser.close()
        yield Figure("response to one of 20 readers, p95", round(_measure_p95_ms(request)), "ms", 200)
        workers = [read_peak_bytes(worker.pid) for worker in psutil.Process(pid).children()]
        yield Figure("maximum memory of a worker", round(max(workers) / _MB), "MB", 500)


def _measure_paint(browser: Browser, address: str, selector: str) -> float:
    """Return the seconds from navigation until the selector matches, in a profile without a cache."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    began = time.perf_counter()
    page.goto(address, wait_until="commit")
    page.locator(selector).first.wait_for(timeout=_TIMEOUT_MS)
    duration_s = time.perf_counter() - began
    context.close()
    return duration_s


def record_request(browser: Browser, url: str) -> Request:
    """Return the browser's request for the rows of the fleet page, to be repeated."""
    requests: list[Request] = []
    page: Page = browser.new_page()

    def record(request: PageRequest) -> None:
        body = request.post_data
        if body and "fleet-grid" in body:
            sent = request.all_headers()
            session_headers = ("cookie", "origin", TOKEN_HEADER.lower())
            headers = {"Content-Type": "application/json"} | {name: sent[name] for name in session_headers}
            requests.append(Request(f"{url}_dash-update-component", body.encode(), headers))

    page.on("requestfinished", record)
    page.goto(url)
    page.locator(_FIRST_ROW).wait_for(timeout=_TIMEOUT_MS)
    page.close()
    return requests[-1]


def _measure_p95_ms(request: Request) -> float:
    """Return the p95 of all responses to simultaneous readers, after each worker has read the lake."""

    def read(_: int) -> Sequence[float]:
        return [measure_seconds(lambda: urlopen(request).read()) for _ in range(_REQUESTS_PER_READER)]

    with ThreadPoolExecutor(_READERS) as readers:
        list(readers.map(read, range(_READERS)))
        durations_s = sorted(chain.from_iterable(readers.map(read, range(_READERS))))
    return 1000 * durations_s[len(durations_s) * 95 // 100]


@contextmanager
def serve_dashboards(lake: Path, workers: int = _WORKERS) -> Iterator[tuple[str, int]]:
    """Yield the URL of the pages, and the id of the server's process."""
    command = [_FLEETGAUGE, "dash", "--lake", str(lake), "--port", "0", "--workers", str(workers), "--json"]
    with _run_server(command) as server:
        assert server.stdout is not None
        yield json.loads(server.stdout.readline())["url"], server.pid


@contextmanager
def _serve_bare_page() -> Iterator[str]:
    with _run_server([sys.executable, "-m", "tests.benchmarks._bare_page"]) as server:
        assert server.stdout is not None
        yield server.stdout.readline().decode().strip()


@contextmanager
def _run_server(command: Sequence[str]) -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        try:
            yield server
        finally:
            server.terminate()
