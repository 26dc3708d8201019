"""Who asks is whom a trusted proxy names, or nobody; without a login only this machine may write."""

from datetime import timedelta
from pathlib import Path

import pytest
from flask.testing import FlaskClient
from hypothesis import given
from hypothesis import strategies as st
from werkzeug.datastructures import Headers

from fleetgauge_core import tables
from fleetgauge_core.slo.weeks import WeekCalendar
from fleetgauge_dashboards.app import create_app
from fleetgauge_dashboards.identity import (
    Asked,
    NoLogin,
    Person,
    ProxyLogin,
    Role,
)
from fleetgauge_dashboards.links import ClusterView, Span, Window
from fleetgauge_dashboards.pages.alert_actions import remark
from fleetgauge_dashboards.pages.correction_form import correct
from fleetgauge_dashboards.pages.page import Context
from fleetgauge_dashboards.reader import read_once
from fleetgauge_dashboards.served_fleets import ShownFleet
from fleetgauge_dashboards.times import Times
from fleetgauge_dashboards.views.actions import acts
from fleetgauge_dashboards.views.incidents import incidents
from fleetgauge_dashboards.views.remarks import ACKNOWLEDGE, JUDGE, Judgement, acknowledged, judged
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


UTC_TIMES = Times("UTC")


def acknowledge(context: Context, alert_id: str, person: Person | None) -> str:
    return remark(context, alert_id, None, person, UTC_TIMES)


def test_an_operator_acknowledges_once_and_leaves_a_row(lake: Served) -> None:
    said = acknowledge(lake.context, "open-0", OPERATOR)
    assert said == f"● Acknowledged: BROKER_DOWN, {ORDERS} broker 2, as ada."
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
    assert acts(rows, week) == ()
    found = incidents(lake.context.lake.health_events(), acts(rows, week), {}, week)
    assert [one.acted_s for one in found if one.alert_id == "open-0"] == [None]


def test_an_operator_judges_and_may_judge_again(lake: Served) -> None:
    false_alarm, right = Judgement.FALSE_ALARM, Judgement.RIGHT
    said = remark(lake.context, "past-0", false_alarm, OPERATOR, UTC_TIMES)
    assert said == "● Judged false alarm: BROKER_DOWN, payments-us broker 1, as ada."
    again = remark(lake.context, "past-0", false_alarm, OPERATOR, UTC_TIMES)
    assert again == "● Already judged false alarm by ada, 2026-03-05 12:00:30 UTC."
    remark(lake.context, "past-0", right, Person("eve", Role.OPERATOR), UTC_TIMES)
    rows = read_once(str(lake.root), tables.ACTIONS).to_pylist()
    assert [row["kind"] for row in rows] == [JUDGE, JUDGE]
    # Both are of one moment here; whichever is read last counts, and a third settles it.
    assert judged([rows[0], rows[1] | {"starts": NOW + timedelta(hours=1)}]).keys() == {"past-0"}


def test_a_viewer_judges_nothing(lake: Served) -> None:
    said = remark(lake.context, "past-0", Judgement.RIGHT, VIEWER, UTC_TIMES)
    assert said == "✕ Not judged: bob is a viewer; an operator may."
    assert len(read_once(str(lake.root), tables.ACTIONS)) == 0


FIXED = ClusterView(ORDERS, shown=Span(NOW - timedelta(minutes=8), NOW))


@pytest.fixture
def correctable(lake: Served) -> Served:
    put(lake.root, tables.CORRECTIONS, [])
    return lake


def test_an_operator_takes_the_minutes_shown_out_of_the_levels(correctable: Served) -> None:
    said = correct(correctable.context, FIXED, 2, " disk\n swapped ", OPERATOR)
    (row,) = read_once(str(correctable.root), tables.CORRECTIONS).to_pylist()
    assert said == f"● Correction {row['correction_id']} counts with the stream's next batch, as ada's."
    assert (row["scope"], row["cluster_id"], row["broker_id"]) == ("broker", ORDERS, 2)
    assert (row["starts"], row["ends"]) == (NOW - timedelta(minutes=8), NOW)
    assert (row["reason"], row["author"]) == ("disk swapped", "ada")


@pytest.mark.parametrize(
    ("view", "broker", "reason", "person", "says"),
    [
        (FIXED, None, "why", VIEWER, "bob is a viewer"),
        (FIXED, None, "why", None, "nobody is a viewer"),
        (ClusterView(ORDERS, shown=Window.HOUR), None, "why", OPERATOR, "the minutes move on"),
        (FIXED, None, "  ", OPERATOR, "say why"),
        (ClusterView("nobody", shown=FIXED.shown), None, "why", OPERATOR, "there is no cluster nobody"),
        (FIXED, 77, "why", OPERATOR, "broker 77 has no minute"),
    ],
)
def test_what_cannot_be_taken_out_is_said(
    correctable: Served, view: ClusterView, broker: int | None, reason: str, person: Person | None, says: str
) -> None:
    said = correct(correctable.context, view, broker, reason, person)
    assert said.startswith("✕ Not taken out: ")
    assert says in said
    assert len(read_once(str(correctable.root), tables.CORRECTIONS)) == 0


def test_without_its_table_a_correction_is_refused_in_words(lake: Served) -> None:
    assert "ops/corrections: no such table" in correct(lake.context, FIXED, None, "why", OPERATOR)
