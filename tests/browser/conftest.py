"""Fixtures that serve the dashboards over small lakes and open their pages in Chromium."""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import BrowserContext, Page, Playwright, expect

from fleetgauge_dashboards.app import create_app
from fleetgauge_dashboards.identity import Login, LoopbackLogin
from fleetgauge_dashboards.served_fleets import ServedFleet
from tests.browser.lake import LakeTimes, end_within_one_week, write
from tests.chromium import launch_profile
from tests.serving import Serving


class Site(Serving):
    """A server of the dashboards for fleets, with its own clock."""

    def __init__(self, fleets: Sequence[ServedFleet], clock: Callable[[], datetime], login: Login) -> None:
        super().__init__(create_app(fleets, login, clock=clock).server)


# A page may have to wait for the lake while other tests use both cores.
expect.set_options(timeout=60_000)

LOCAL_LOGIN = LoopbackLogin("tester", "key-of-operators")

ServeLake = Callable[..., Site]
OpenPage = Callable[..., Page]


@pytest.fixture(scope="session")
def serve_lake() -> Iterator[ServeLake]:
    """A function that serves a lake and other fleets until the end of the run.

    ``at`` fixes the server's clock; ``behind`` is how far a running clock lags real time.
    """
    opened: list[Site] = []

    def serve(
        root: Path,
        at: datetime | None = None,
        beside: Sequence[ServedFleet] = (),
        login: Login = LOCAL_LOGIN,
        behind: timedelta = timedelta(0),
    ) -> Site:
        fleets = [ServedFleet("fleet", str(root)), *beside]
        opened.append(Site(fleets, lambda: at or datetime.now(UTC) - behind, login))
        return opened[-1]

    yield serve
    for site in opened:
        site.close()


@pytest.fixture(scope="session")
def live(tmp_path_factory: pytest.TempPathFactory, serve_lake: ServeLake) -> tuple[Site, LakeTimes]:
    """A lake whose newest minute ended half a minute ago, however long the tests take."""
    root = tmp_path_factory.mktemp("live")
    times = write(root, end_within_one_week(datetime.now(UTC)))
    return serve_lake(root, times.now + timedelta(seconds=30)), times


@pytest.fixture(scope="session")
def profile_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("profile")


@pytest.fixture(scope="module")
def profile(playwright: Playwright, profile_folder: Path) -> Iterator[BrowserContext]:
    """A browser per module, all with one profile: its compiled scripts halve the time to draw a page."""
    with launch_profile(playwright, profile_folder) as context:
        yield context


@pytest.fixture
def open_page(profile: BrowserContext) -> Iterator[OpenPage]:
    """A function that opens a page; errors and foreign requests fail the test at its end.

    What the pages store in the browser is deleted after the test.
    """
    problems: list[str] = []
    opened: list[tuple[Page, str]] = []

    def open_address(
        address: str,
        scheme: Literal["light", "dark"] = "light",
        width: int = 1366,
        height: int = 768,
        headers: dict[str, str] | None = None,
        zone: str = "UTC",
    ) -> Page:
        page = profile.new_page()
        profile.new_cdp_session(page).send("Emulation.setTimezoneOverride", {"timezoneId": zone})
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": height})
        page.set_extra_http_headers(headers or {})
        own = address.split("/", 3)[2]
        opened.append((page, f"http://{own}"))
        page.on("console", lambda m: problems.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", lambda r: problems.append(r.url) if _is_foreign(r.url, own) else None)
        page.goto(address)
        return page

    yield open_address
    for page, _ in opened:
        page.close()
    # A page that is still open would miss the cookie with its token, so this follows, from the blank page.
    devtools = profile.new_cdp_session(profile.pages[0])
    for _, origin in opened:
        stored = {"origin": origin, "storageTypes": "cookies,local_storage,indexeddb"}
        devtools.send("Storage.clearDataForOrigin", stored)
    devtools.detach()
    assert problems == []


def _is_foreign(url: str, own: str) -> bool:
    return not url.startswith((f"http://{own}/", "data:", "blob:"))
