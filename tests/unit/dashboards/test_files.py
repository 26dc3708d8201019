"""Files of numbers, and what the server refuses: each answer is one clear line."""

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
from fleetgauge_dashboards.identity import NoLogin
from fleetgauge_dashboards.links import (
    AlertsView,
    BrokerView,
    ClusterView,
    Drawn,
    FleetView,
    MinuteView,
    QualityView,
    WhyView,
    csv_href,
)
from fleetgauge_dashboards.reader import read_once
from fleetgauge_dashboards.security_headers import LONGEST_BODY, TOKEN_COOKIE, TOKEN_HEADER
from fleetgauge_dashboards.serialization import csv_text
from fleetgauge_dashboards.served_fleets import ShownFleet
from tests.browser.lake import ORDERS, write
from tests.exposition import samples
from tests.unit.dashboards.served import NOW

CALLBACK = "/_dash-update-component"


@pytest.fixture
def client(tmp_path: Path) -> FlaskClient:
    write(tmp_path, NOW)
    fleet = ShownFleet("fleet", str(tmp_path))
    return create_app(
        [fleet], NoLogin("tester"), clock=lambda: NOW + timedelta(seconds=30)
    ).server.test_client()


@pytest.mark.parametrize(
    ("view", "part", "rows"),
    [
        (MinuteView(ORDERS, NOW - timedelta(minutes=20)), "client", 300),
        (BrokerView(ORDERS, 1), "failures", 120),
        (BrokerView(ORDERS, 1), "leader", 60),
        (WhyView(ORDERS), "minutes", 180),
        (QualityView(), "gates", 2),
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
def test_a_pages_numbers_come_as_a_file(client: FlaskClient, view: Drawn, part: str, rows: int) -> None:
    answer = client.get(csv_href(view, part))
    assert (answer.status_code, answer.mimetype) == (200, "text/csv")
    assert answer.headers["Content-Disposition"].startswith("attachment; filename=")
    assert len(list(csv.DictReader(io.StringIO(answer.text)))) == rows


def test_a_brokers_failures_are_written_by_reason(client: FlaskClient) -> None:
    found = list(csv.DictReader(io.StringIO(client.get(csv_href(BrokerView(ORDERS, 2), "failures")).text)))
    assert {row["failures"] for row in found} == {"", "timed_out=4", "timed_out=20", "timed_out=100"}


def test_the_file_of_a_week_is_silvers_minutes(client: FlaskClient, tmp_path: Path) -> None:
    held = read_once(str(tmp_path), tables.CLUSTER_MINUTES).to_pylist()
    own = sorted((row for row in held if row["cluster_id"] == ORDERS), key=lambda row: row["minute"])
    found = list(csv.DictReader(io.StringIO(client.get(csv_href(WhyView(ORDERS), "minutes")).text)))
    assert [row["latency_p99_us"] for row in found] == [str(row["latency_p99_us"]) for row in own]
    assert [row["bad"] for row in found] == [
        str(row["latency_p99_censored_us"] > 100_000).lower() for row in own
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
def test_what_has_no_numbers_is_not_found(client: FlaskClient, of: str) -> None:
    answer = client.get("/csv", query_string={"of": of, "part": "gates"})
    assert (answer.status_code, answer.text) == (404, "there are no such numbers\n")


def test_a_table_that_cannot_be_read_is_said(client: FlaskClient, tmp_path: Path) -> None:
    log = tmp_path / tables.QUALITY.path / "_delta_log"
    rmtree(log)
    log.mkdir()
    (log / "00000000000000000000.json").write_text("no log\n")
    answer = client.get(csv_href(QualityView(), "gates"))
    assert answer.status_code == 503
    assert answer.text.startswith("ops/quality: ")
    assert answer.text.count("\n") == 1


def test_a_cell_is_no_formula() -> None:
    written = csv_text(("a", "b"), [{"a": "=cmd|' /C calc'!A0", "b": -1}, {"a": "@x", "b": None}])
    assert written == "a,b\n'=cmd|' /C calc'!A0,-1\n'@x,\n"


def _question(pathname: str = "/") -> dict[str, object]:
    return {
        "output": "page.children",
        "outputs": {"id": "page", "property": "children"},
        "inputs": [{"id": "url", "property": "pathname", "value": pathname}],
        "state": [{"id": "url", "property": "search", "value": ""}],
        "changedPropIds": ["url.pathname"],
    }


def _token(client: FlaskClient) -> dict[str, str]:
    """As a page that is open sends it."""
    client.get("/")
    cookie = client.get_cookie(TOKEN_COOKIE)
    assert cookie is not None
    return {TOKEN_HEADER: cookie.value}


def test_its_own_pages_are_answered(client: FlaskClient) -> None:
    token = _token(client)
    own = {"Origin": "http://localhost"} | token
    assert client.post(CALLBACK, json=_question(), headers=own).status_code == 200
    assert client.post(CALLBACK, json=_question(), headers=token).status_code == 200


@pytest.mark.parametrize("token", [None, "", "guessed"])
def test_a_question_without_its_pages_token_is_refused(client: FlaskClient, token: str | None) -> None:
    said = "this question came without its page's token: load the page anew\n"
    headers = {} if token is None else {TOKEN_HEADER: token}
    answer = client.post(CALLBACK, json=_question(), headers=headers)
    assert (answer.status_code, answer.text) == (403, said)
    client.get("/")
    answer = client.post(CALLBACK, json=_question(), headers=headers)
    assert (answer.status_code, answer.text) == (403, said)


def test_a_token_is_kept_and_stays_on_this_site(client: FlaskClient) -> None:
    given = client.get("/").headers.getlist("Set-Cookie")
    assert [one.partition("=")[0] for one in given] == [TOKEN_COOKIE]
    assert "SameSite=Strict" in given[0]
    assert client.get("/alerts").headers.getlist("Set-Cookie") == []


def test_a_malformed_question_is_one_line(client: FlaskClient) -> None:
    for broken in ({}, {"output": 1}, {**_question(), "state": []}):
        answer = client.post(CALLBACK, json=broken, headers=_token(client))
        assert (answer.status_code, answer.text.count("\n")) == (500, 1)
        assert "Traceback" not in answer.text


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://localhost.evil.example", "https://", "http://["]
)
def test_another_sites_question_is_refused(client: FlaskClient, origin: str) -> None:
    answer = client.post(CALLBACK, json=_question(), headers={"Origin": origin})
    assert (answer.status_code, answer.text) == (403, "this server answers its own pages only\n")


def test_a_form_is_no_question(client: FlaskClient) -> None:
    """What a browser sends to other sites without asking them first."""
    answer = client.post(CALLBACK, data=json.dumps(_question()), content_type="text/plain")
    assert (answer.status_code, answer.text) == (415, "a question is sent as application/json\n")


def test_an_overlong_question_is_refused(client: FlaskClient) -> None:
    answer = client.post(CALLBACK, json=_question("/" + LONGEST_BODY * "a"), headers=_token(client))
    assert answer.status_code == 413
    assert "Traceback" not in answer.text


def test_every_answer_forbids_foreign_scripts(client: FlaskClient) -> None:
    for path in ("/", "/livez", "/assets/fleetgauge.js", "/csv", "/review/2026-03-02.html"):
        with client.get(path) as answer:
            headers = answer.headers
        policy = dict(part.split(" ", 1) for part in headers["Content-Security-Policy"].split("; "))
        assert policy["default-src"] == "'self'"
        assert "unsafe" not in policy["script-src"]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["X-Frame-Options"] == "DENY"


@pytest.mark.parametrize("name", ["X-Forwarded-User", "X-Forwarded-Host", "X-Original-URL", "Host"])
def test_a_forged_header_changes_nothing(client: FlaskClient, name: str) -> None:
    plain = client.get(csv_href(QualityView(), "gates"))
    forged = client.get(csv_href(QualityView(), "gates"), headers={name: "evil.example"})
    assert (forged.status_code, forged.text) == (plain.status_code, plain.text)


def test_of_nothing_there_is_a_file_with_a_head(client: FlaskClient) -> None:
    answer = client.get(csv_href(MinuteView("c", NOW), "client"))
    assert (answer.status_code, answer.text.count("\n")) == (200, 1)


def test_metrics_say_what_is_readable_and_how_old(tmp_path: Path) -> None:
    write(tmp_path, NOW)
    (tmp_path / tables.QUALITY.path / "_delta_log" / "00000000000000000001.json").write_text("no commit\n")
    client = create_app(
        [ShownFleet("eu", str(tmp_path))], NoLogin("tester"), clock=lambda: NOW
    ).server.test_client()
    text = client.get("/metrics").text
    assert samples(text, "fleetgauge_build_info") == {("dash", __version__): 1}
    assert samples(text, "fleetgauge_dash_data_timestamp_seconds") == {("eu",): NOW.timestamp()}
    readable = samples(text, "fleetgauge_dash_table_readable")
    assert {table: value for (_, table), value in readable.items() if value != 1} == {"ops/quality": 0}
