"""The application over small lakes, and the distribution's Chromium looking at it."""

import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, Page, expect
from waitress.server import create_server

from fleetgauge_dashboards.app import THREADS, create_app
from fleetgauge_dashboards.pages.page import ShownFleet
from fleetgauge_dashboards.people import Login, NoLogin
from tests.browser.lake import Known, write
from tests.ports import free_port


class Site:
    """The application over fleets, served by threads of this process."""

    def __init__(self, fleets: Sequence[ShownFleet], clock: Callable[[], datetime], login: Login) -> None:
        app = create_app(fleets, login, clock=clock)
        self._server = create_server(app.server, host="127.0.0.1", port=free_port(), threads=THREADS)
        self.url = f"http://127.0.0.1:{self._server.effective_port}"
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.close()
        self._server.task_dispatcher.shutdown()
        self._thread.join(5)


# A busy machine draws late; a page that never draws is found all the same.
expect.set_options(timeout=20_000)

_AT_THE_MACHINE = NoLogin("tester")

Serve = Callable[..., Site]
Open = Callable[..., Page]


@pytest.fixture(scope="session")
def sites() -> Iterator[Serve]:
    """Serves a lake and fleets beside it, at a fixed time if one is given; everything ends with the run."""
    opened: list[Site] = []

    def serve(
        root: Path,
        at: datetime | None = None,
        beside: Sequence[ShownFleet] = (),
        login: Login = _AT_THE_MACHINE,
    ) -> Site:
        fleets = [ShownFleet("fleet", str(root)), *beside]
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
    ) -> Page:
        context = browser.new_context(
            color_scheme=scheme,
            viewport={"width": width, "height": height},
            extra_http_headers=headers or {},
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
