"""Who asks is whom a trusted proxy names, or nobody; without a login only this machine may write."""

from datetime import timedelta
from pathlib import Path

import pytest
from flask.testing import FlaskClient
from hypothesis import given
from hypothesis import strategies as st
from werkzeug.datastructures import Headers

from fleetgauge_dashboards.app import create_app
from fleetgauge_dashboards.pages.acknowledging import acknowledge
from fleetgauge_dashboards.pages.page import ShownFleet
from fleetgauge_dashboards.people import Asked, NoLogin, Person, ProxyLogin, Role
from fleetgauge_dashboards.reader import read_once
from fleetgauge_dashboards.views.acknowledged import ACKNOWLEDGE, acknowledged
from fleetgauge_dashboards.views.incidents import acts, incidents
from fleetgauge_pipelines import tables
from fleetgauge_pipelines.slo.weeks import WeekCalendar
from tests.browser.lake import ORDERS, put, write
from tests.unit.dashboards.served import NOW, Served, served

OPERATOR, VIEWER = Person("ada", Role.OPERATOR), Person("bob", Role.VIEWER)
LOGIN = ProxyLogin("X-Forwarded-User", frozenset({"10.0.0.9"}), frozenset({"ada"}))


def _asked(address: str | None, **headers: str) -> Asked:
    return Asked(Headers([(name.replace("_", "-"), value) for name, value in headers.items()]), address)


def test_a_trusted_proxy_says_who_it_is() -> None:
    assert LOGIN.person(_asked("10.0.0.9", X_Forwarded_User="ada")) == OPERATOR
    assert LOGIN.person(_asked("10.0.0.9", x_forwarded_user=" bob ")) == VIEWER


@pytest.mark.parametrize("address", ["10.0.0.8", "127.0.0.1", None])
def test_nobody_else_is_believed(address: str | None) -> None:
    assert LOGIN.person(_asked(address, X_Forwarded_User="ada")) is None


@given(st.text(st.characters(codec="latin-1", exclude_categories=["C"]), max_size=20))
def test_no_name_but_the_operators_own_is_an_operator(name: str) -> None:
    person = LOGIN.person(_asked("10.0.0.9", X_Forwarded_User=name))
    assert (person is not None and person.role is Role.OPERATOR) == (name.strip() == "ada")


@pytest.mark.parametrize(
    ("address", "host", "role"),
    [
        ("127.0.0.1", "127.0.0.1:8050", Role.OPERATOR),
        ("127.0.0.1", "localhost:8050", Role.OPERATOR),
        ("::1", "[::1]:8050", Role.OPERATOR),
        ("127.0.0.1", "evil.example:8050", Role.VIEWER),
        ("127.0.0.1", "", Role.VIEWER),
        ("127.0.0.1", "[", Role.VIEWER),
        ("192.168.0.7", "127.0.0.1:8050", Role.VIEWER),
    ],
)
def test_without_a_login_this_machine_alone_may_write(address: str, host: str, role: Role) -> None:
    assert NoLogin("ada").person(_asked(address, Host=host)).role is role


@pytest.fixture
def client(tmp_path: Path) -> FlaskClient:
    write(tmp_path, NOW)
    login = ProxyLogin("X-Forwarded-User", frozenset({"127.0.0.1"}), frozenset({"ada"}))
    return create_app([ShownFleet("fleet", str(tmp_path))], login, clock=lambda: NOW).server.test_client()


def test_a_stranger_sees_nothing_but_whether_the_server_lives(client: FlaskClient) -> None:
    for path in (
        "/",
        "/csv?of=/quality",
        "/review/2026-03-02.html",
        "/_dash-layout",
        "/assets/fleetgauge.js",
    ):
        answer = client.get(path)
        assert (answer.status_code, answer.text) == (401, "who are you? The proxy in front has not said\n")
    for path in ("/livez", "/readyz", "/metrics"):
        assert client.get(path).status_code == 200
    with client.get("/", headers={"X-Forwarded-User": "bob"}) as answer:
        assert answer.status_code == 200
    forged = {"X-Forwarded-User": "ada"}
    assert client.get("/", headers=forged, environ_base={"REMOTE_ADDR": "10.1.1.1"}).status_code == 401


@pytest.fixture
def lake(tmp_path: Path) -> Served:
    found = served(tmp_path)
    put(tmp_path, tables.ACTIONS, [])
    return found


def test_an_operator_acknowledges_once_and_leaves_a_row(lake: Served) -> None:
    said = acknowledge(lake.context, "open-0", OPERATOR)
    assert said == f"● Acknowledged BROKER_DOWN: {ORDERS} broker 2, as ada."
    (row,) = read_once(str(lake.root), tables.ACTIONS).to_pylist()
    assert (row["kind"], row["cluster_id"], row["broker_id"], row["author"]) == (
        ACKNOWLEDGE,
        ORDERS,
        2,
        "ada",
    )
    assert row["starts"] == NOW + timedelta(seconds=30)
    again = acknowledge(lake.context, "open-0", Person("eve", Role.OPERATOR))
    assert again == "● Already acknowledged by ada, 2026-03-05 12:00:30 UTC."
    assert len(read_once(str(lake.root), tables.ACTIONS)) == 1


@pytest.mark.parametrize("person", [VIEWER, None])
def test_a_viewer_is_refused_and_nothing_is_written(lake: Served, person: Person | None) -> None:
    assert acknowledge(lake.context, "open-0", person).startswith("✕ Not acknowledged: ")
    assert len(read_once(str(lake.root), tables.ACTIONS)) == 0


def test_what_cannot_be_acknowledged_is_said(lake: Served, tmp_path: Path) -> None:
    assert acknowledge(lake.context, "nothing", OPERATOR) == "✕ Not acknowledged: there is no such alert."
    without = served(tmp_path / "without")
    assert "ops/actions: no such table" in acknowledge(without.context, "open-0", OPERATOR)


def test_an_acknowledgement_is_the_first_and_any_row_is_borne() -> None:
    row = {"kind": ACKNOWLEDGE, "starts": NOW, "author": "ada", "detail": '{"alert_id": "a"}'}
    later = {**row, "starts": NOW + timedelta(minutes=1), "author": "bob"}
    broken = [{**row, "detail": detail} for detail in (None, "", "no json", "[]", "{}", '{"alert_id": 3}')]
    found = acknowledged([later, *broken, row, {**row, "kind": "roll", "detail": '{"alert_id": "b"}'}])
    assert {alert: one.author for alert, one in found.items()} == {"a": "ada"}


def test_in_the_review_it_is_no_mitigation(lake: Served) -> None:
    acknowledge(lake.context, "open-0", OPERATOR)
    rows = read_once(str(lake.root), tables.ACTIONS).to_pylist()
    week = WeekCalendar("UTC", "monday").of(NOW)
    (act,) = acts(rows, week)
    assert (act.kind, act.author, act.outcome) == (ACKNOWLEDGE, "ada", None)
    found = incidents(lake.context.lake.health_events(), [act], week)
    assert [one.acted_s for one in found if one.alert_id == "open-0"] == [None]
