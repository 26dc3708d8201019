"""CSV files of page parts, and requests that the server rejects with a one-line message."""

import csv
import io
import json
from datetime import timedelta
from pathlib import Path
from shutil import rmtree

import pytest
from flask.testing import FlaskClient

from fleetgauge_core import __version__, tables
from fleetgauge_dashboards.app import create_app
from fleetgauge_dashboards.links import (
    AlertsView,
    BrokerView,
    ClusterView,
    FleetView,
    MinuteView,
    PageView,
    QualityView,
    WhyView,
    csv_href,
)
from fleetgauge_dashboards.reader import read_once
from fleetgauge_dashboards.security_headers import MAX_BODY_BYTES, TOKEN_COOKIE, TOKEN_HEADER
from fleetgauge_dashboards.serialization import format_csv
from fleetgauge_dashboards.served_fleets import ServedFleet
from tests.browser.lake import ORDERS, write
from tests.correction_callback import CALLBACK
from tests.exposition import samples
from tests.unit.dashboards.served import LOCAL_LOGIN, NOW

#: The address of the server that Flask's test client asks.
ORIGIN = {"Origin": "http://localhost"}


@pytest.fixture
def client(tmp_path: Path) -> FlaskClient:
    write(tmp_path, NOW)
    fleet = ServedFleet("fleet", str(tmp_path))
    return create_app([fleet], LOCAL_LOGIN, clock=lambda: NOW + timedelta(seconds=30)).server.test_client()


@pytest.mark.parametrize(
    ("view", "part", "rows"),
    [
        (MinuteView(ORDERS, NOW - timedelta(minutes=20)), "client", 300),
        (BrokerView(ORDERS, 1), "failures", 120),
        (BrokerView(ORDERS, 1), "leader", 60),
        (WhyView(ORDERS), "minutes", 180),
        (QualityView(), "gates", 3),
        (QualityView(), "losses", 1),
        (QualityView(), "refused", 4),
        (QualityView(), "revised", 1),
        (FleetView(), "latency", 6),
        (FleetView(), "availability", 6),
        (FleetView(), "causes", 3),
        (FleetView(search="ORDERS"), "clusters", 1),
        (FleetView(), "clusters", 3),
        (ClusterView(ORDERS), "latency", 60),
        (ClusterView(ORDERS), "heatmap", 180),
        (ClusterView(ORDERS), "leader", 180),
        (ClusterView(ORDERS), "skew", 60),
        (AlertsView(), "alerts", 3),
    ],
)
def test_a_part_of_a_page_is_served_as_csv(client: FlaskClient, view: PageView, part: str, rows: int) -> None:
    response = client.get(csv_href(view, part))
    assert (response.status_code, response.mimetype) == (200, "text/csv")
    assert response.headers["Content-Disposition"].startswith("attachment; filename=")
    assert len(list(csv.DictReader(io.StringIO(response.text)))) == rows


def test_a_brokers_failures_are_written_by_error(client: FlaskClient) -> None:
    rows = list(csv.DictReader(io.StringIO(client.get(csv_href(BrokerView(ORDERS, 2), "failures")).text)))
    assert {row["failures"] for row in rows} == {"", "timed_out=4", "timed_out=20", "timed_out=100"}


def test_the_csv_of_a_week_contains_its_silver_minutes(client: FlaskClient, tmp_path: Path) -> None:
    stored = read_once(str(tmp_path), tables.CLUSTER_MINUTES).to_pylist()
    expected = sorted((row for row in stored if row["cluster_id"] == ORDERS), key=lambda row: row["minute"])
    rows = list(csv.DictReader(io.StringIO(client.get(csv_href(WhyView(ORDERS), "minutes")).text)))
    assert [row["latency_p99_us"] for row in rows] == [str(row["latency_p99_us"]) for row in expected]
    assert [row["bad"] for row in rows] == [
        str(row["latency_p99_censored_us"] > 100_000).lower() for row in expected
    ]


@pytest.mark.parametrize(
    "of",
    [
        "",
        "/",
        "/table?of=/quality&part=gates",
        "/alerts",
        "file:///etc/passwd",
        "http://example.org/",
        "/cluster/../../../etc/passwd",
        "/cluster/c/minute/2026-03-05",
        "/quality?fleet=another",
        "\x00",
    ],
)
def test_an_unknown_page_or_part_is_not_found(client: FlaskClient, of: str) -> None:
    response = client.get("/csv", query_string={"of": of, "part": "gates"})
    assert (response.status_code, response.text) == (404, "unknown page, part or fleet\n")


def test_an_unreadable_table_is_reported_in_one_line(client: FlaskClient, tmp_path: Path) -> None:
    log = tmp_path / tables.QUALITY.path / "_delta_log"
    rmtree(log)
    log.mkdir()
    (log / "00000000000000000000.json").write_text("no log\n")
    response = client.get(csv_href(QualityView(), "gates"))
    assert response.status_code == 503
    assert response.text.startswith("ops/quality: ")
    assert response.text.count("\n") == 1


def test_formulas_are_escaped_in_csv_cells() -> None:
    text = format_csv(("a", "b"), [{"a": "=cmd|' /C calc'!A0", "b": -1}, {"a": "@x", "b": None}])
    assert text == "a,b\n'=cmd|' /C calc'!A0,-1\n'@x,\n"


def _callback_body(pathname: str = "/") -> dict[str, object]:
    return {
        "output": "page.children",
        "outputs": {"id": "page", "property": "children"},
        "inputs": [{"id": "url", "property": "pathname", "value": pathname}],
        "state": [{"id": "url", "property": "search", "value": ""}],
        "changedPropIds": ["url.pathname"],
    }


def _token(client: FlaskClient) -> dict[str, str]:
    """Return the CSRF header as an open page sends it."""
    client.get("/")
    cookie = client.get_cookie(TOKEN_COOKIE)
    assert cookie is not None
    return {TOKEN_HEADER: cookie.value}


def test_callbacks_of_the_servers_own_pages_are_accepted(client: FlaskClient) -> None:
    headers = ORIGIN | _token(client)
    assert client.post(CALLBACK, json=_callback_body(), headers=headers).status_code == 200


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/readyz?strict", "/metrics", "/"])
def test_head_is_answered_like_get_and_other_methods_with_405(client: FlaskClient, path: str) -> None:
    with client.get(path) as got, client.head(path) as head:
        assert (head.status_code, head.text) == (got.status_code, "")
        assert head.content_length == got.content_length > 0
        assert head.content_type == got.content_type
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PURGE"):
        response = client.open(path, method=method)
        assert (response.status_code, response.headers["Allow"]) == (405, "GET, HEAD")
        assert response.text == f"{method} is not allowed here: use GET, HEAD\n"


def test_a_callback_without_an_origin_is_rejected(client: FlaskClient) -> None:
    response = client.post(CALLBACK, json=_callback_body(), headers=_token(client))
    message = "no Origin header: send the address of the page, as browsers do\n"
    assert (response.status_code, response.text) == (403, message)


@pytest.mark.parametrize("token", [None, "", "guessed"])
def test_a_callback_without_a_valid_csrf_token_is_rejected(client: FlaskClient, token: str | None) -> None:
    message = "CSRF token missing or wrong: reload the page\n"
    headers = ORIGIN if token is None else ORIGIN | {TOKEN_HEADER: token}
    response = client.post(CALLBACK, json=_callback_body(), headers=headers)
    assert (response.status_code, response.text) == (403, message)
    client.get("/")
    response = client.post(CALLBACK, json=_callback_body(), headers=headers)
    assert (response.status_code, response.text) == (403, message)


def test_the_csrf_token_is_set_once_and_is_same_site(client: FlaskClient) -> None:
    cookies = client.get("/").headers.getlist("Set-Cookie")
    assert [cookie.partition("=")[0] for cookie in cookies] == [TOKEN_COOKIE]
    assert "SameSite=Strict" in cookies[0]
    assert client.get("/alerts").headers.getlist("Set-Cookie") == []


def test_a_malformed_callback_gets_a_one_line_error(client: FlaskClient) -> None:
    for body in ({}, {"output": 1}, {**_callback_body(), "state": []}):
        response = client.post(CALLBACK, json=body, headers=ORIGIN | _token(client))
        assert (response.status_code, response.text.count("\n")) == (500, 1)
        assert "Traceback" not in response.text


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://localhost.evil.example", "https://", "http://["]
)
def test_a_cross_site_callback_is_rejected(client: FlaskClient, origin: str) -> None:
    response = client.post(CALLBACK, json=_callback_body(), headers={"Origin": origin})
    assert (response.status_code, response.text) == (
        403,
        "cross-site request rejected: open the page from this server\n",
    )


def test_a_callback_that_is_not_json_is_rejected(client: FlaskClient) -> None:
    """A browser sends text/plain to other sites without a CORS preflight request."""
    body = json.dumps(_callback_body())
    response = client.post(CALLBACK, data=body, content_type="text/plain", headers=ORIGIN)
    assert (response.status_code, response.text) == (415, "unsupported content type: send application/json\n")


def test_an_oversized_callback_is_rejected(client: FlaskClient) -> None:
    body = _callback_body("/" + MAX_BODY_BYTES * "a")
    response = client.post(CALLBACK, json=body, headers=ORIGIN | _token(client))
    assert response.status_code == 413
    assert "Traceback" not in response.text


def test_every_response_has_a_policy_against_foreign_scripts(client: FlaskClient) -> None:
    for path in ("/", "/livez", "/assets/fleetgauge.js", "/csv", "/review/2026-03-02.html"):
        with client.get(path) as response:
            headers = response.headers
        policy = dict(part.split(" ", 1) for part in headers["Content-Security-Policy"].split("; "))
        assert policy["default-src"] == "'self'"
        assert "unsafe" not in policy["script-src"]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["X-Frame-Options"] == "DENY"


@pytest.mark.parametrize("name", ["X-Forwarded-User", "X-Forwarded-Host", "X-Original-URL"])
def test_a_forged_header_does_not_change_the_response(client: FlaskClient, name: str) -> None:
    unforged = client.get(csv_href(QualityView(), "gates"))
    forged = client.get(csv_href(QualityView(), "gates"), headers={name: "evil.example"})
    assert (forged.status_code, forged.text) == (unforged.status_code, unforged.text)


def test_a_part_without_rows_is_a_csv_with_only_a_header(client: FlaskClient) -> None:
    response = client.get(csv_href(MinuteView("c", NOW), "client"))
    assert (response.status_code, response.text.count("\n")) == (200, 1)


def test_metrics_contain_readability_and_age_of_the_tables(tmp_path: Path) -> None:
    write(tmp_path, NOW)
    (tmp_path / tables.QUALITY.path / "_delta_log" / "00000000000000000001.json").write_text("no commit\n")
    client = create_app(
        [ServedFleet("eu", str(tmp_path))], LOCAL_LOGIN, clock=lambda: NOW
    ).server.test_client()
    text = client.get("/metrics").text
    assert samples(text, "fleetgauge_build_info") == {("dash", __version__): 1}
    assert samples(text, "fleetgauge_dash_data_timestamp_seconds") == {("eu",): NOW.timestamp()}
    readable = samples(text, "fleetgauge_dash_table_readable")
    assert {table: value for (_, table), value in readable.items() if value != 1} == {"ops/quality": 0}
