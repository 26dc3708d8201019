"""Pages are served under the server's own names and IP addresses; health and metrics under any."""

import logging
from pathlib import Path

import pytest
from flask.testing import FlaskClient
from hypothesis import given
from hypothesis import strategies as st
from werkzeug.datastructures import Headers

from fleetgauge_dashboards.app import create_app
from fleetgauge_dashboards.identity import Login, ProxyLogin
from fleetgauge_dashboards.security_headers import TOKEN_COOKIE, TOKEN_HEADER
from fleetgauge_dashboards.served_fleets import ServedFleet
from fleetgauge_dashboards.site_address import (
    SiteAddress,
    TrustedProxies,
    is_loopback,
    normalize_address,
    parse_host,
)
from tests.browser.lake import write
from tests.correction_callback import CALLBACK
from tests.unit.dashboards.served import LOCAL_LOGIN, NOW
from tests.unit.dashboards.test_files import _callback_body

SITE = SiteAddress(frozenset({"ops.example"}), TrustedProxies.parse(["127.0.0.1"]))
names = st.from_regex(r"[a-z]{1,9}(\.[a-z]{1,9}){0,2}", fullmatch=True)


@pytest.mark.parametrize(
    "host",
    [
        "",
        "localhost",
        "LOCALHOST.:8050",
        "fleet.localhost:8050",
        "127.0.0.1:8050",
        "10.1.2.3:8050",
        "[::1]:8050",
        "[fe80::1]",
        "ops.example",
        "Ops.Example.:443",
    ],
)
def test_an_own_name_and_any_ip_address_are_own_hosts(host: str) -> None:
    assert SITE.is_own_host(Headers({"Host": host}))


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8050",
        "ops.example.evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "notlocalhost",
        "evil@127.0.0.1",
        "127.0.0.1@evil.example",
        "127.0.0.1/evil",
        "2130706433",
        "[",
        "[::1",
        "a b",
        "localhost:x",
        "localhost:99999",
        "\xe9vil.example",
    ],
)
def test_any_other_name_is_not(host: str) -> None:
    assert not SITE.is_own_host(Headers({"Host": host}))


@given(st.text(max_size=60))
def test_any_header_can_be_checked(text: str) -> None:
    host = parse_host(text)
    assert host is None or host == host.lower()
    is_loopback(text)
    normalize_address(text)


@given(names, st.sampled_from(["http", "https"]), st.none() | st.integers(1, 65535))
def test_an_origin_equals_its_host_whether_or_not_the_default_port_is_written(
    name: str, scheme: str, port: int | None
) -> None:
    default = {"http": 80, "https": 443}[scheme]
    for host in (name, name.upper(), f"{name}:{default}"):
        headers = Headers({"Host": host, "Origin": f"{scheme}://{name}{f':{port}' if port else ''}"})
        assert SITE.is_own_origin(headers, None) == (port in (None, default))


@pytest.mark.parametrize(
    "origin", ["", "null", "https://", "http://[", "file://", "ops.example", "//localhost"]
)
def test_an_opaque_or_malformed_origin_is_not_own(origin: str) -> None:
    assert not SITE.is_own_origin(Headers({"Host": "localhost", "Origin": origin}), "127.0.0.1")


def _open(root: Path, login: Login) -> FlaskClient:
    write(root, NOW)
    fleet = ServedFleet("fleet", str(root))
    return create_app([fleet], login, site=SITE, clock=lambda: NOW).server.test_client()


@pytest.fixture
def client(tmp_path: Path) -> FlaskClient:
    return _open(tmp_path, LOCAL_LOGIN)


@pytest.mark.parametrize(
    "path", ["/", "/_dash-layout", "/csv?of=/quality&part=gates", "/assets/fleetgauge.js"]
)
def test_a_page_under_a_foreign_name_gets_421_and_the_remedy(client: FlaskClient, path: str) -> None:
    response = client.get(path, headers={"Host": "evil.example:8050"})
    assert response.status_code == 421
    assert "--allow-host evil.example " in response.text
    assert response.text.count("\n") == 1
    with client.get(path, headers={"Host": "ops.example"}) as own:
        assert own.status_code == 200


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/metrics"])
def test_health_and_metrics_are_served_under_any_name(client: FlaskClient, path: str) -> None:
    assert client.get(path, headers={"Host": "fleetgauge-dash"}).status_code == 200


def test_with_a_login_the_proxy_may_pass_on_any_host(tmp_path: Path) -> None:
    client = _open(tmp_path, ProxyLogin("X-User", TrustedProxies.parse(["127.0.0.1"]), frozenset()))
    headers = {"X-User": "ada", "Host": "pages.internal"}
    assert client.get("/", headers=headers).status_code == 200
    assert client.get("/", headers={"Host": "pages.internal"}).status_code == 401


def test_pages_behind_a_proxy_that_passes_its_own_host_are_read_only(
    client: FlaskClient, caplog: pytest.LogCaptureFixture
) -> None:
    token = {"Cookie": f"{TOKEN_COOKIE}=token", TOKEN_HEADER: "token"}
    foreign = {"Origin": "https://ops.elsewhere", "Host": "127.0.0.1:8050"} | token
    proxied = foreign | {"X-Forwarded-For": "203.0.113.9"}
    # Cookies are given in the headers.
    client = client.application.test_client(use_cookies=False)
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            response = client.post(CALLBACK, json=_callback_body(), headers=proxied)
            assert response.status_code == 200
    assert [record.message for record in caplog.records if "--user-header" in record.message] == [
        "a reverse proxy passes requests on, but --user-header is missing: its users only read"
    ]
    assert client.post(CALLBACK, json=_callback_body(), headers=foreign).status_code == 403


@pytest.mark.parametrize(
    ("proxies", "address", "is_included"),
    [
        (["10.0.0.9"], "10.0.0.9", True),
        (["10.0.0.9"], "::ffff:10.0.0.9", True),
        (["::ffff:10.0.0.9"], "10.0.0.9", True),
        (["10.0.0.9"], "10.0.0.10", False),
        (["10.0.0.0/8", "fd00::/8"], "10.255.0.1", True),
        (["10.0.0.0/8", "fd00::/8"], "fd12::1", True),
        (["10.0.0.0/8", "fd00::/8"], "11.0.0.1", False),
        (["::/0"], "10.0.0.9", False),
        (["0.0.0.0/0"], None, False),
        (["0.0.0.0/0"], "unix:", False),
        ([], "127.0.0.1", False),
    ],
)
def test_a_proxy_is_trusted_by_its_address_or_network(
    proxies: list[str], address: str | None, is_included: bool
) -> None:
    assert TrustedProxies.parse(proxies).includes(address) is is_included
