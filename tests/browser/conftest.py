"""The application over small lakes, and the distribution's Chromium looking at it."""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, Page, expect

from fleetgauge_dashboards.app import create_app
from fleetgauge_dashboards.identity import Login, LoopbackLogin
from fleetgauge_dashboards.served_fleets import ServedFleet
from tests.browser.lake import Known, write
from tests.serving import Serving


class Site(Serving):
    """The application over fleets, at a fixed time."""

    def __init__(self, fleets: Sequence[ServedFleet], clock: Callable[[], datetime], login: Login) -> None:
        super().__init__(create_app(fleets, login, clock=clock).server)


# A busy machine draws late; a page that never draws is found all the same.
expect.set_options(timeout=20_000)

_AT_THE_MACHINE = LoopbackLogin("tester")

Serve = Callable[..., Site]
Open = Callable[..., Page]


@pytest.fixture(scope="session")
def sites() -> Iterator[Serve]:
    """Serves a lake and fleets beside it, at a fixed time if one is given; everything ends with the run."""
    opened: list[Site] = []

    def serve(
        root: Path,
        at: datetime | None = None,
        beside: Sequence[ServedFleet] = (),
        login: Login = _AT_THE_MACHINE,
    ) -> Site:
        fleets = [ServedFleet("fleet", str(root)), *beside]
        opened.append(Site(fleets, lambda: at or datetime.now(UTC), login))
        return opened[-1]

    yield serve
    for site in opened:
        site.close()


@pytest.fixture(scope="session")
def live(tmp_path_factory: pytest.TempPathFactory, sites: Serve) -> tuple[Site, Known]:
    """A lake whose newest minute ended half a minute ago, however long the tests take."""
    root = tmp_path_factory.mktemp("live")
    known = write(root, datetime.now(UTC))
    return sites(root, known.now + timedelta(seconds=30)), known


@pytest.fixture
def look(browser: Browser) -> Iterator[Open]:
    """Opens pages in a fresh profile; afterwards none may have complained or asked anyone else."""
    complaints: list[str] = []
    contexts: list[Any] = []

    def look_at(
        address: str,
        scheme: Literal["light", "dark"] = "light",
        width: int = 1366,
        height: int = 768,
        headers: dict[str, str] | None = None,
        zone: str = "UTC",
    ) -> Page:
        context = browser.new_context(
            color_scheme=scheme,
            viewport={"width": width, "height": height},
            extra_http_headers=headers or {},
            timezone_id=zone,
        )
        contexts.append(context)
        page = context.new_page()
        own = address.split("/", 3)[2]
        page.on("console", lambda m: complaints.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda r: complaints.append(r.url) if _foreign(r.url, own) else None)
        page.goto(address)
        return page

    yield look_at
    for context in contexts:
        context.close()
    assert complaints == []


def _foreign(url: str, own: str) -> bool:
    return not url.startswith((f"http://{own}/", "data:", "blob:"))
