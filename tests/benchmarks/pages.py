"""What pages and the weekly review cost over a great fleet's lake; a bare Dash page is the peer.

The browser starts each page cold. Both are served by the same server, ours with two workers. How it grows is
shown by lakes of fewer clusters and of fewer weeks: a first answer of the fleet page, and the review.
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
from pathlib import Path
from statistics import median
from urllib.request import Request, urlopen

import click
import psutil
from playwright.sync_api import Browser, Page, sync_playwright

from fleetgauge_dashboards.security_headers import TOKEN_HEADER
from tests.benchmarks._great_lake import CLUSTERS, DRAWN, WEEKS, write
from tests.benchmarks._measure import Figure, Options, peak_bytes, seconds
from tests.chromium import launched

_FLEETGAUGE = str(Path(sys.executable).with_name("fleetgauge"))
_MB = 1_000_000
_ROUNDS = 7
#: Until each worker has read the lake; the browser is cold all the same.
_READING_ROUNDS = 3
_WORKERS = 2
_READERS, _QUESTIONS = 20, 10
_PATIENCE_MS = 120_000
_DRAWN = ".js-plotly-plot .main-svg"
_FIRST_ROW = ".ag-center-cols-container [row-index='0']"
#: Shares of a benchmark's clusters, and weeks, that show how it grows.
_SMALLER = ((0.1, WEEKS), (1.0, 9))


def measure(options: Options) -> Iterator[Figure]:
    """The report, first useful paints, answers to many readers, memory, growth."""
    clusters = options.rows(CLUSTERS)
    with tempfile.TemporaryDirectory(prefix="fleetgauge-bench-") as folder:
        lake = Path(folder, "lake")
        click.echo(f"writing a lake of {clusters:,} clusters", err=True)
        week = str(write(lake, clusters, datetime.now(UTC)))
        took, size = _report(lake, week)
        yield Figure("report", round(took, 1), "s", 20)
        yield Figure("report file", round(size / _MB, 3), "MB", 5)
        yield from _paints(lake)
        for share, weeks in _SMALLER:
            yield from _growth(Path(folder, f"{share}-{weeks}"), max(1, round(share * clusters)), weeks)


def _report(lake: Path, week: str) -> tuple[float, int]:
    """Median seconds, and the file's bytes."""
    written = lake.parent / "review.html"
    command = [_FLEETGAUGE, "report", week]
    whole = [*command, "--lake", str(lake), "--format", "html", "--output", str(written)]
    took = median(seconds(lambda: subprocess.run(whole, check=True, capture_output=True)) for _ in range(3))
    return took, written.stat().st_size


def _growth(lake: Path, clusters: int, weeks: int) -> Iterator[Figure]:
    """What the full size takes is named without its size."""
    week = str(write(lake, clusters, datetime.now(UTC), weeks))
    size = f"{clusters:,} clusters, {weeks} weeks"
    took, _ = _report(lake, week)
    yield Figure(f"report of {size}", round(took, 1), "s")
    with _ours(lake) as (url, _), sync_playwright() as playwright:
        browser = launched(playwright)
        question = _asked(browser, url)
        yield Figure(f"answer to one of 20 readers, p95, {size}", round(_p95_ms(question)), "ms")
        browser.close()


def _paints(lake: Path) -> Iterator[Figure]:
    with _ours(lake) as (url, pid), _bare() as peer, sync_playwright() as playwright:
        browser = launched(playwright)
        pages = {
            "bare": (peer, _DRAWN),
            "fleet": (url, _FIRST_ROW),
            "cluster": (f"{url}cluster/{DRAWN}?window=7d", f"#cluster-heatmap {_DRAWN}"),
        }
        took: dict[str, list[float]] = {name: [] for name in pages}
        for _ in range(_READING_ROUNDS + _ROUNDS):
            for name, (address, drawn) in pages.items():
                took[name].append(_painted(browser, address, drawn))
        of = {name: median(some[_READING_ROUNDS:]) for name, some in took.items()}
        yield Figure("fleet page, the first after a start", round(took["fleet"][0], 2), "s")
        yield Figure("bare page, first useful paint", round(of["bare"], 2), "s")
        for name, goal in (("fleet", 1.3), ("cluster", 1.6)):
            yield Figure(f"{name} page, first useful paint", round(of[name], 2), "s")
            yield Figure(f"{name} page to the bare one", round(of[name] / of["bare"], 2), "times", goal)
        question = _asked(browser, url)
        browser.close()
        yield Figure("answer to one of 20 readers, p95", round(_p95_ms(question)), "ms", 200)
        workers = [peak_bytes(worker.pid) for worker in psutil.Process(pid).children()]
        yield Figure("a worker", round(max(workers) / _MB), "MB", 500)


def _painted(browser: Browser, address: str, drawn: str) -> float:
    """Seconds from the address to what a reader came for, in a profile without a cache."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    began = time.perf_counter()
    page.goto(address, wait_until="commit")
    page.locator(drawn).first.wait_for(timeout=_PATIENCE_MS)
    took = time.perf_counter() - began
    context.close()
    return took


def _asked(browser: Browser, url: str) -> Request:
    """What the browser asks for the fleet page, to be asked again."""
    found: list[Request] = []
    page: Page = browser.new_page()

    def keep(said: object) -> None:
        body = getattr(said, "post_data", None)
        if body and "fleet-grid" in body:
            sent = said.all_headers()  # type: ignore[attr-defined]
            own = ("cookie", TOKEN_HEADER.lower())
            headers = {"Content-Type": "application/json"} | {name: sent[name] for name in own}
            found.append(Request(f"{url}_dash-update-component", body.encode(), headers))

    page.on("requestfinished", keep)
    page.goto(url)
    page.locator(_FIRST_ROW).wait_for(timeout=_PATIENCE_MS)
    page.close()
    return found[-1]


def _p95_ms(question: Request) -> float:
    """Of all answers to readers who ask at once, again and again, after each worker has read."""

    def read(_: int) -> Sequence[float]:
        return [seconds(lambda: urlopen(question).read()) for _ in range(_QUESTIONS)]

    with ThreadPoolExecutor(_READERS) as readers:
        list(readers.map(read, range(_READERS)))
        took = sorted(one for some in readers.map(read, range(_READERS)) for one in some)
    return 1000 * took[len(took) * 95 // 100]


@contextmanager
def _ours(lake: Path) -> Iterator[tuple[str, int]]:
    """The pages' URL, and the server's process."""
    command = [_FLEETGAUGE, "dash", "--lake", str(lake), "--port", "0", "--workers", str(_WORKERS), "--json"]
    with _server(command) as server:
        assert server.stdout is not None
        yield json.loads(server.stdout.readline())["url"], server.pid


@contextmanager
def _bare() -> Iterator[str]:
    with _server([sys.executable, "-m", "tests.benchmarks._bare_page"]) as server:
        assert server.stdout is not None
        yield server.stdout.readline().decode().strip()


@contextmanager
def _server(command: Sequence[str]) -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        try:
            yield server
        finally:
            server.terminate()
