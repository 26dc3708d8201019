"""The pages below a path: their addresses have the prefix, and requests with and without it are served."""

import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_dashboards.app import create_app
from fleetgauge_dashboards.path_prefix import parse_prefix, remove_prefix
from fleetgauge_dashboards.security_headers import TOKEN_COOKIE, TOKEN_HEADER
from fleetgauge_dashboards.served_fleets import ServedFleet
from fleetgauge_dashboards.site_address import SiteAddress, TrustedProxies
from tests.browser.lake import write
from tests.correction_callback import CALLBACK
from tests.unit.dashboards.served import LOCAL_LOGIN, NOW
from tests.unit.dashboards.test_files import ORIGIN

PREFIX = "/ops/fleetgauge"
FORWARDED = {"X-Forwarded-Prefix": f"{PREFIX}/"}


@pytest.mark.parametrize(
    ("text", "prefix"),
    [
        ("/", ""),
        ("/fleetgauge", "/fleetgauge"),
        ("/fleetgauge/", "/fleetgauge"),
        ("/a/b-c_d.e~f/", "/a/b-c_d.e~f"),
    ],
)
def test_a_path_is_a_prefix_without_its_last_slash(text: str, prefix: str) -> None:
    assert parse_prefix(text) == prefix


@pytest.mark.parametrize(
    "text",
    [
        "",
        "fleetgauge",
        "//evil.example/",
        "/a//b",
        "/a/../b",
        "/./",
        "/..",
        "/a b",
        "/a%2Fb",
        "/a?b",
        '/a"b',
        "/a,/b",
        "/<b>",
        "/a\n",
        "/\xfc",
        "https://ops.example/a",
        "/alerts",
        "/operator",
        "/cluster/a",
        "/livez/",
        "/_dash-layout",
        f"/{300 * 'a'}",
    ],
)
def test_anything_else_is_no_prefix(text: str) -> None:
    assert parse_prefix(text) is None


@given(st.text("/.ab%?", max_size=12))
def test_a_prefix_is_removed_once_and_from_whole_segments_only(text: str) -> None:
    prefix = parse_prefix(text)
    if prefix:
        assert remove_prefix(f"{prefix}/cluster/a", prefix) == "/cluster/a"
        assert remove_prefix(prefix, prefix) == "/"
        assert remove_prefix(f"{prefix}x/a", prefix) == f"{prefix}x/a"
        assert remove_prefix("/cluster/a", prefix) == "/cluster/a"
        assert parse_prefix(f"{prefix}/") == prefix


def _open(root: Path, path: str = "") -> FlaskClient:
    site = SiteAddress(proxies=TrustedProxies.parse(["127.0.0.1"]), path=path)
    fleet = ServedFleet("fleet", str(root))
    return create_app([fleet], LOCAL_LOGIN, site=site, clock=lambda: NOW).server.test_client()


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lake")
    write(folder, NOW)
    return folder


@pytest.fixture(scope="module")
def at_root(root: Path) -> FlaskClient:
    return _open(root)


@pytest.fixture(scope="module")
def below(root: Path) -> FlaskClient:
    return _open(root, PREFIX)


def _list_addresses(client: FlaskClient, path: str, headers: dict[str, str] | None = None) -> list[str]:
    """Return all addresses in the HTML, and the one from which Dash's client derives others."""
    text = client.get(path, headers=headers).text
    (config,) = re.findall(r'<script id="_dash-config"[^>]*>(.*?)</script>', text)
    return [*re.findall(r'(?:src|href)="([^"]*)"', text), json.loads(config)["requests_pathname_prefix"]]


def test_all_addresses_of_the_index_page_follow_the_request(at_root: FlaskClient, below: FlaskClient) -> None:
    plain = _list_addresses(at_root, "/cluster/orders-eu")
    assert "/" in plain
    assert len(plain) > 10
    assert not any("prefix" in address for address in plain)
    assert all(address.startswith("/") for address in plain)
    expected = [f"{PREFIX}{address}" for address in plain]
    assert _list_addresses(below, f"{PREFIX}/cluster/orders-eu") == expected
    assert _list_addresses(below, "/cluster/orders-eu") == expected
    assert _list_addresses(at_root, "/cluster/orders-eu", FORWARDED) == expected


def test_everything_is_served_with_and_without_the_prefix(at_root: FlaskClient, below: FlaskClient) -> None:
    addresses = ["/", "/livez", "/readyz", "/metrics", "/csv?of=/quality&part=gates", "/review/2026-02-23.md"]
    addresses += ["/_dash-layout", "/_dash-dependencies", "/assets/fleetgauge.js"]
    for address in addresses:
        for client, headers in ((at_root, FORWARDED), (below, {})):
            for path in (address, f"{PREFIX}{address}"):
                with client.get(path, headers=headers) as response:
                    assert response.status_code == 200, (path, headers)
                    assert "--prefix--" not in response.text
    assert below.get(PREFIX).status_code == 200


def test_a_prefix_of_anybody_but_a_proxy_is_ignored(at_root: FlaskClient, root: Path) -> None:
    response = at_root.get("/", headers=FORWARDED, environ_base={"REMOTE_ADDR": "10.1.1.1"})
    assert "/ops/" not in response.text
    assert "/ops/" not in at_root.get("/", environ_base={"SCRIPT_NAME": PREFIX}).text


def test_an_unusable_prefix_of_a_proxy_is_ignored_and_logged_once(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    client = _open(root, PREFIX)
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            text = client.get("/", headers={"X-Forwarded-Prefix": "//evil.example"}).text
            assert "evil" not in text
            assert f'"{PREFIX}/_dash' in text
    assert [record.message for record in caplog.records if "X-Forwarded-Prefix" in record.message] == [
        "ignoring X-Forwarded-Prefix '//evil.example': it is no path for pages"
    ]


def test_the_cookie_is_sent_to_the_pages_alone(at_root: FlaskClient, below: FlaskClient) -> None:
    for client, path in ((at_root, "/"), (below, PREFIX)):
        client.delete_cookie(TOKEN_COOKIE, path=path)
        (cookie,) = client.get("/").headers.getlist("Set-Cookie")
        assert f"Path={path};" in f"{cookie};"


def _call(client: FlaskClient, path: str, pathname: str, headers: dict[str, str]) -> list[str]:
    """Return the links of the frame of a page at the browser's location."""
    dependencies: Any = client.get("/_dash-dependencies").json
    output = next(entry["output"] for entry in dependencies if "nav.children" in entry["output"])
    slots = [slot.rpartition(".")[::2] for slot in output.strip(".").split("...")]
    values = {"tick.n_intervals": 1, "url.pathname": pathname, "url.search": "", "reader-zone.data": "UTC"}
    body = {
        "output": output,
        "outputs": [{"id": component, "property": name} for component, name in slots],
        "inputs": [
            {"id": slot.partition(".")[0], "property": slot.partition(".")[2], "value": value}
            for slot, value in values.items()
        ],
        "changedPropIds": ["url.pathname"],
        "state": [],
    }
    token = {"Cookie": f"{TOKEN_COOKIE}=token", TOKEN_HEADER: "token"}
    # Cookies are given in the headers.
    client = client.application.test_client(use_cookies=False)
    response = client.post(f"{path}{CALLBACK}", json=body, headers=ORIGIN | token | headers)
    assert response.status_code == 200
    return list(_find_links(response.json))


def _find_links(value: Any) -> Iterator[str]:
    if isinstance(value, dict) and isinstance(value.get("href"), str):
        yield value["href"]
    for child in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _find_links(child)


def test_all_links_of_a_page_have_the_prefix_and_shared_results_keep_prefixes_apart(
    at_root: FlaskClient, below: FlaskClient
) -> None:
    for pathname in ("/", "/cluster/orders-eu", "/nothing"):
        plain = _call(at_root, "", pathname, {})
        expected = [f"{PREFIX}{address}" for address in plain]
        assert len(plain) > 4
        for links in (
            _call(below, PREFIX, f"{PREFIX}{pathname}", {}),
            _call(at_root, "", f"{PREFIX}{pathname}", FORWARDED),
            _call(at_root, PREFIX, f"{PREFIX}{pathname}", FORWARDED),
        ):
            assert links == expected
