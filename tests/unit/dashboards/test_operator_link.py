"""The link for operators: its key becomes a cookie, without which a local user only reads."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from fleetgauge_core import tables
from fleetgauge_core.runtime.cli import InputError
from fleetgauge_dashboards.app import create_app
from fleetgauge_dashboards.cli import dash
from fleetgauge_dashboards.identity import LINK_ADVICE, Login, LoopbackLogin, ProxyLogin
from fleetgauge_dashboards.operator_key import KEY_VARIABLE, choose_key, format_operator_url, generate_key
from fleetgauge_dashboards.reader import read_once
from fleetgauge_dashboards.served_fleets import ServedFleet
from fleetgauge_dashboards.site_address import SiteAddress, TrustedProxies
from tests.browser.lake import put, write
from tests.correction_callback import CALLBACK, build_body, build_headers
from tests.unit.dashboards.served import LOCAL_LOGIN, NOW

KEY = LOCAL_LOGIN.key
HOST = "127.0.0.1:8050"
FIXED = "?from=2026-03-05T11:52Z&to=2026-03-05T12:00Z"


def _open(root: Path, login: Login = LOCAL_LOGIN, path: str = "") -> FlaskClient:
    site = SiteAddress(proxies=TrustedProxies.parse(["127.0.0.1"]), path=path)
    app = create_app([ServedFleet("fleet", str(root))], login, site=site, clock=lambda: NOW)
    # Cookies are given in the headers.
    return app.server.test_client(use_cookies=False)


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    write(tmp_path, NOW)
    put(tmp_path, tables.CORRECTIONS, [])
    return tmp_path


@pytest.fixture
def client(lake: Path) -> FlaskClient:
    return _open(lake)


def _follow(client: FlaskClient, key: str, host: str = HOST) -> TestResponse:
    return client.get("/operator", query_string={"key": key}, headers={"Host": host})


def _read_cookie(response: TestResponse) -> str:
    (cookie,) = response.headers.getlist("Set-Cookie")
    return cookie.partition(";")[0]


def _correct(client: FlaskClient, *cookies: str, host: str = HOST) -> str:
    """Correct as nginx 1.29.7 and newer pass it on: HTTP/1.1 over loopback, without a header of a proxy."""
    headers = {"Host": host} | build_headers(f"http://{host}", *cookies)
    response = client.post(CALLBACK, json=build_body(FIXED), headers=headers)
    assert response.status_code == 200
    return response.text


def test_the_link_redirects_to_the_pages_with_the_key_in_a_cookie(client: FlaskClient) -> None:
    response = _follow(client, KEY)
    assert (response.status_code, response.headers["Location"], response.text) == (303, "/", "")
    assert response.headers["Cache-Control"] == "no-store"
    (cookie,) = response.headers.getlist("Set-Cookie")
    assert cookie == f"fleetgauge_operator_8050={KEY}; HttpOnly; Path=/; SameSite=Strict"


def test_a_request_without_a_sign_of_a_proxy_writes_with_the_cookie_only(
    client: FlaskClient, lake: Path
) -> None:
    assert f"Not excluded: anonymous is a viewer: {LINK_ADVICE}." in _correct(client)
    assert len(read_once(str(lake), tables.CORRECTIONS)) == 0
    assert "by tester takes effect" in _correct(client, _read_cookie(_follow(client, KEY)))
    assert len(read_once(str(lake), tables.CORRECTIONS)) == 1


def test_a_cookie_with_another_key_writes_nothing(client: FlaskClient, lake: Path) -> None:
    other = _open(lake, LoopbackLogin("tester", "key-of-the-other"))
    assert LINK_ADVICE in _correct(client, _read_cookie(_follow(other, "key-of-the-other")))
    assert len(read_once(str(lake), tables.CORRECTIONS)) == 0


def test_servers_on_two_ports_keep_both_cookies(client: FlaskClient, lake: Path) -> None:
    other = _open(lake, LoopbackLogin("eve", "key-of-the-other"))
    hosts = (HOST, "127.0.0.1:8051")
    cookies = (
        _read_cookie(_follow(client, KEY, hosts[0])),
        _read_cookie(_follow(other, "key-of-the-other", hosts[1])),
    )
    assert len({cookie.partition("=")[0] for cookie in cookies}) == 2
    assert "by tester takes effect" in _correct(client, *cookies, host=hosts[0])
    assert "these minutes are excluded already" in _correct(other, *cookies, host=hosts[1])


@pytest.mark.parametrize("query", ["", "key=", "key=wrong", f"key={KEY}x", f"KEY={KEY}", "key=%FF", "key=ö"])
def test_a_wrong_or_missing_key_is_refused_in_one_line(client: FlaskClient, query: str) -> None:
    response = client.get(f"/operator?{query}")
    assert (response.status_code, response.text) == (403, f"wrong or missing key: {LINK_ADVICE}\n")
    assert "Set-Cookie" not in response.headers


def test_the_link_answers_get_and_head_only_and_under_own_names_only(client: FlaskClient) -> None:
    address = f"/operator?key={KEY}"
    assert client.head(address).status_code == 303
    for method in ("POST", "PUT", "OPTIONS"):
        response = client.open(address, method=method)
        assert (response.status_code, response.headers["Allow"]) == (405, "GET, HEAD")
        assert "Set-Cookie" not in response.headers
    assert client.get(address, headers={"Host": "evil.example"}).status_code == 421


def test_below_a_path_the_link_and_its_cookie_have_the_path(lake: Path) -> None:
    client = _open(lake, path="/ops")
    for path in ("/ops", ""):
        response = client.get(f"{path}/operator?key={KEY}")
        assert (response.status_code, response.headers["Location"]) == (303, "/ops/")
        assert "Path=/ops;" in response.headers["Set-Cookie"]


def test_by_https_the_cookie_is_secure(client: FlaskClient) -> None:
    response = client.get(f"/operator?key={KEY}", base_url=f"https://{HOST}")
    assert "Secure;" in response.headers["Set-Cookie"]


def test_with_a_login_by_a_proxy_there_is_no_link(lake: Path) -> None:
    client = _open(lake, ProxyLogin("X-User", TrustedProxies.parse(["127.0.0.1"]), frozenset({"ada"})))
    response = client.get(f"/operator?key={KEY}", headers={"X-User": "ada"})
    assert (response.status_code, response.text) == (404, "unknown address\n")


def test_a_key_is_the_environments_or_new(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    assert choose_key() != choose_key()
    for key in ("abcDEF012345-_xy", generate_key()):
        monkeypatch.setenv(KEY_VARIABLE, key)
        assert choose_key() == key


def test_the_link_is_below_the_path_of_the_pages() -> None:
    assert (
        format_operator_url("http://127.0.0.1:8050/ops/", "k") == "http://127.0.0.1:8050/ops/operator?key=k"
    )


@pytest.mark.parametrize(
    "key",
    [
        "",
        "hunter2",
        "hunter2-15-char",
        "hunter2-16-chars ",
        "hunter2-16-chärs",
        "hunter2;16;chars",
        "hunter2-16-chars\n",
    ],
)
def test_a_malformed_key_of_the_environment_is_refused(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setenv(KEY_VARIABLE, key)
    with pytest.raises(InputError, match=KEY_VARIABLE):
        choose_key()


def test_a_key_that_is_too_short_is_one_line_and_exit_code_2() -> None:
    result = CliRunner().invoke(dash, ["--lake", "x"], env={"COLUMNS": "200", KEY_VARIABLE: "hunter2"})
    assert (result.exit_code, result.output) == (
        2,
        f"fleetgauge: {KEY_VARIABLE}: needs at least 16 characters, which are letters, digits, - and _\n",
    )


@pytest.mark.parametrize(
    ("address", "headers"),
    [
        ("203.0.113.7", {"Host": HOST}),
        ("10.0.0.5", {"Host": "10.0.0.5:8050"}),
        ("127.0.0.1", {"Host": HOST, "X-Forwarded-For": "203.0.113.7"}),
        ("127.0.0.1", {"Host": HOST, "X-Forwarded-Prefix": "/ops"}),
    ],
)
def test_a_request_that_cannot_be_an_operators_gets_no_key(
    client: FlaskClient, address: str, headers: dict[str, str]
) -> None:
    environment = {"REMOTE_ADDR": address}
    response = client.get(f"/operator?key={KEY}", headers=headers, environ_base=environment)
    assert (response.status_code, response.headers.getlist("Set-Cookie")) == (403, [])
    assert "--user-header" in response.text


def test_a_stale_cookie_of_a_longer_path_does_not_hide_the_present_one(client: FlaskClient) -> None:
    name = "fleetgauge_operator_8050"
    assert LINK_ADVICE not in _correct(client, f"{name}=another", f"{name}={KEY}")
    assert LINK_ADVICE in _correct(client, f"{name}=another")
