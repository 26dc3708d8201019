"""The pages behind a real nginx: below a path, with its default Host header, and with users that it names."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import Page, expect

from fleetgauge_core import tables
from tests.browser.conftest import OpenPage
from tests.browser.lake import ORDERS, put, write
from tests.correction_callback import CALLBACK, build_body, build_headers
from tests.nginx import run_nginx

PREFIX = "/fleetgauge"
#: What nginx does when it is told nothing but where the pages are.
PLAIN = "location / {{ proxy_pass {local}; }}"
#: The same as nginx 1.29.7 and newer understands it: nothing tells the request from a local one.
SILENT = f"{PLAIN[:-2]}proxy_http_version 1.1; proxy_set_header Connection ''; }}}}"
#: It removes the prefix, and passes on the name of its upstream as Host.
STRIPPING = (
    "location {prefix}/ {{ proxy_pass {local}; proxy_set_header X-Forwarded-Prefix {prefix}; }}"
    "location {prefix}x/ {{ return 404; }}"
)
#: It keeps the prefix and names the user; the pages know the prefix by --path.
KEEPING = (
    "location {prefix}/ {{ proxy_pass {login}; proxy_set_header Host $http_host; "
    "proxy_set_header X-Forwarded-User ada; }}"
)


@dataclass(frozen=True, slots=True)
class Sites:
    """The URLs of nginx by what it does; the log of the pages without a login, their link for operators."""

    plain: str
    silent: str
    stripping: str
    keeping: str
    log: Path
    operator_url: str


@contextmanager
def _serve(lake: Path, log: Path, arguments: Sequence[str]) -> Iterator[dict[str, str]]:
    """Yield the URLs that `fleetgauge dash` prints."""
    command = [sys.executable, "-m", "fleetgauge_core", "dash", "--lake", str(lake), "--port", "0", "--json"]
    with (
        log.open("w") as stderr,
        subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE, stderr=stderr) as process,
    ):
        try:
            assert process.stdout is not None
            yield json.loads(process.stdout.readline())
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sites]:
    root = tmp_path_factory.mktemp("nginx")
    lake = root / "lake"
    write(lake, datetime.now(UTC))
    put(lake, tables.ACTIONS, [])
    put(lake, tables.CORRECTIONS, [])
    with ExitStack() as stack:
        local = stack.enter_context(_serve(lake, root / "local.log", ()))
        arguments = ("--path", f"{PREFIX}/", "--user-header", "X-Forwarded-User", "--operator", "ada")
        login = stack.enter_context(_serve(lake, root / "login.log", arguments))
        addresses = {"local": _origin(local["url"]), "login": _origin(login["url"]), "prefix": PREFIX}
        # A slash after the upstream's address tells nginx to remove the prefix.
        stripping = STRIPPING.format(**addresses | {"local": local["url"]})
        servers = [text.format(**addresses) for text in (PLAIN, SILENT, KEEPING)]
        plain, silent, keeping, stripping_url = stack.enter_context(run_nginx(root, [*servers, stripping]))
        yield Sites(
            plain,
            silent,
            stripping_url + PREFIX,
            keeping + PREFIX,
            root / "local.log",
            local["operator_url"],
        )


def _origin(url: str) -> str:
    return "/".join(url.split("/")[:3])


def _record_paths(page: Page) -> list[str]:
    paths: list[str] = []
    page.on("request", lambda request: paths.append(f"/{request.url.split('/', 3)[3]}"))
    return paths


@pytest.mark.parametrize("name", ["stripping", "keeping"])
def test_pages_below_a_path_load_link_and_download_below_it(
    sites: Sites, open_page: OpenPage, name: str
) -> None:
    url = getattr(sites, name)
    page = open_page(f"{url}/")
    paths = _record_paths(page)
    page.reload()
    row = page.locator(".ag-center-cols-container [row-index]", has_text=ORDERS)
    row.get_by_role("link", name=ORDERS).click()
    expect(page.locator("h1")).to_contain_text(f"{ORDERS}, week of")
    expect(page.locator("#cluster-heatmap .js-plotly-plot .main-svg").first).to_be_visible()
    assert page.url.startswith(f"{url}/cluster/{ORDERS}")
    with page.expect_download() as download:
        page.locator("#cluster-latency-tools").get_by_role("link", name="CSV").click()
    assert Path(download.value.path()).read_text().startswith("minute,")
    page.locator("#cluster-latency-tools").get_by_role("link", name="latency as a table").click()
    expect(page.locator("#numbers-title")).to_contain_text("Cluster-minutes")
    page.get_by_role("link", name="Back to the page").click()
    expect(page.locator("h1")).to_contain_text(f"{ORDERS}, week of")
    # Outside of the fleet page this key goes to it.
    page.keyboard.press("/")
    expect(page.locator("h1")).to_contain_text("Fleet, week of")
    page.get_by_role("textbox", name="Search for clusters").fill("orders")
    expect(page).to_have_url(re.compile(rf"{url}/\?q=orders$"))
    page.get_by_role("navigation", name="Pages").get_by_role("link", name="Review").click()
    expect(page.locator("h1")).to_contain_text("Review, week of")
    for link in page.locator("a[href]").all():
        assert (link.get_attribute("href") or "").startswith((f"{PREFIX}/", "#"))
    with page.expect_download() as download:
        page.get_by_role("link", name="Download Markdown").click()
    assert Path(download.value.path()).read_text().startswith("# ")
    page.goto(f"{url}/nothing")
    page.get_by_role("link", name="Go to the fleet").click()
    expect(page.locator("h1")).to_contain_text("Fleet, week of")
    assert {path for path in paths if not path.startswith(f"{PREFIX}/")} == set()
    for path in ("livez", "readyz", "metrics"):
        with urlopen(f"{url}/{path}", timeout=20) as response:
            assert response.status == 200


@pytest.mark.parametrize("name", ["plain", "stripping"])
def test_with_nginxs_default_host_everybody_reads_and_nobody_writes(
    sites: Sites, open_page: OpenPage, name: str
) -> None:
    page = open_page(f"{getattr(sites, name)}/alerts")
    expect(page.locator("h1")).to_contain_text("Alerts")
    page.get_by_role("button", name="Acknowledge", exact=True).click()
    expect(page.locator("#alerts-said")).to_contain_text("Not acknowledged: anonymous is a viewer: ")
    expect(page.locator("#alerts-said")).to_contain_text("--user-header")
    log = sites.log.read_text()
    assert log.count("--user-header is missing") == 1
    assert "Traceback" not in log


def _correct(url: str, headers: dict[str, str]) -> str:
    body = build_body("?from=2026-11-20T00:00Z&to=2026-11-20T00:10Z")
    with urlopen(Request(f"{url}{CALLBACK}", json.dumps(body).encode(), headers), timeout=20) as response:
        return str(response.read().decode())


@pytest.mark.parametrize(
    ("name", "advice"),
    [("plain", "a reverse proxy passed the request on"), ("silent", "open the link for operators")],
)
def test_a_forged_request_through_nginx_writes_nothing(sites: Sites, name: str, advice: str) -> None:
    """It has the token of the page, and the address of the pages themselves as Origin."""
    headers = build_headers(_origin(sites.operator_url))
    url = getattr(sites, name)
    assert f"Not excluded: anonymous is a viewer: {advice}" in _correct(url, headers)
    del headers["Origin"]
    with pytest.raises(HTTPError, match="403"):
        _correct(url, headers)


def test_a_request_with_the_key_writes_if_nothing_tells_of_the_proxy(sites: Sites) -> None:
    port, key = urlsplit(sites.operator_url).port, sites.operator_url.partition("key=")[2]
    headers = build_headers(_origin(sites.operator_url), f"fleetgauge_operator_{port}={key}")
    assert "Not excluded, for it would have no effect" in _correct(sites.silent, headers)
    assert "Not excluded: anonymous is a viewer" in _correct(sites.plain, headers)


def test_an_operator_that_nginx_names_writes_below_the_path(sites: Sites, open_page: OpenPage) -> None:
    page = open_page(f"{sites.keeping}/alerts")
    page.get_by_role("button", name="Acknowledge", exact=True).click()
    expect(page.locator("#alerts-said")).to_contain_text("● Acknowledged: BROKER_DOWN")
