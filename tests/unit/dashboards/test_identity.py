"""Only a trusted proxy's header identifies users; without one only local requests with the key may write."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from flask.testing import FlaskClient
from hypothesis import given
from hypothesis import strategies as st
from werkzeug.datastructures import Headers

from fleetgauge_core import tables
from fleetgauge_core.slo.weeks import WeekCalendar
from fleetgauge_core.tables import ActionKind
from fleetgauge_dashboards.app import create_app
from fleetgauge_dashboards.identity import (
    LINK_ADVICE,
    LoopbackLogin,
    ProxyLogin,
    RequestOrigin,
    Role,
    User,
    explain_denial,
    name_operator_cookie,
    restrict_to_own_pages,
)
from fleetgauge_dashboards.links import ClusterView, Span, Window
from fleetgauge_dashboards.pages.alert_actions import record_remark
from fleetgauge_dashboards.pages.correction_form import record_correction
from fleetgauge_dashboards.pages.page import PageContext
from fleetgauge_dashboards.reader import read_once
from fleetgauge_dashboards.served_fleets import ServedFleet
from fleetgauge_dashboards.site_address import SiteAddress, TrustedProxies
from fleetgauge_dashboards.times import TimeFormat
from fleetgauge_dashboards.views.actions import select_actions_of_week
from fleetgauge_dashboards.views.alert_remarks import (
    AlertJudgement,
    select_acknowledgements,
    select_judgements,
)
from fleetgauge_dashboards.views.incidents import list_incidents
from tests.browser.lake import ORDERS, put, write
from tests.unit.dashboards.served import NOW, LakeFixture, open_lake

OPERATOR, VIEWER = User("ada", Role.OPERATOR), User("bob", Role.VIEWER)
KEY_LOGIN = LoopbackLogin("ada", "key-of-operators")
LOGIN = ProxyLogin("X-Forwarded-User", TrustedProxies.parse(["10.0.0.9"]), frozenset({"ada"}))


def _origin(address: str | None, **headers: str) -> RequestOrigin:
    return RequestOrigin(
        Headers([(name.replace("_", "-"), value) for name, value in headers.items()]), address
    )


def _origin_with_key(address: str | None, **headers: str) -> RequestOrigin:
    origin = _origin(address, **headers)
    origin.headers["Cookie"] = f"{name_operator_cookie(origin.headers)}={KEY_LOGIN.key}"
    return origin


def test_a_trusted_proxy_identifies_the_user() -> None:
    assert LOGIN.identify(_origin("10.0.0.9", X_Forwarded_User="ada")) == OPERATOR
    assert LOGIN.identify(_origin("10.0.0.9", x_forwarded_user=" bob ")) == VIEWER


@pytest.mark.parametrize("address", ["10.0.0.8", "127.0.0.1", None])
def test_the_header_of_any_other_peer_is_ignored(address: str | None) -> None:
    assert LOGIN.identify(_origin(address, X_Forwarded_User="ada")) is None


@given(st.text(st.characters(codec="latin-1", exclude_categories=["C"]), max_size=20))
def test_only_a_listed_operator_gets_the_operator_role(name: str) -> None:
    user = LOGIN.identify(_origin("10.0.0.9", X_Forwarded_User=name))
    assert (user is not None and user.role is Role.OPERATOR) == (name.strip() == "ada")


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
def test_with_the_key_only_loopback_requests_get_the_operator_role(
    address: str, host: str, role: Role
) -> None:
    origin = _origin_with_key(address, Host=host)
    user = KEY_LOGIN.identify(origin)
    assert user.role is role
    assert role is Role.OPERATOR or "only users of the machine" in (explain_denial(user) or "")


@pytest.mark.parametrize(
    "cookie",
    [
        "",
        "fleetgauge_operator_8050=",
        "fleetgauge_operator_8050=key-of-operator",
        "fleetgauge_operator_8050=key-of-operators-and-more",
        "fleetgauge_operator_8050=key-of-\xf6perators",
        "fleetgauge_operator_8051=key-of-operators",
        "fleetgauge_operator_80=key-of-operators",
        "key-of-operators",
    ],
)
def test_without_the_key_in_its_cookie_a_local_user_is_a_viewer(cookie: str) -> None:
    user = KEY_LOGIN.identify(_origin("127.0.0.1", Host="127.0.0.1:8050", Cookie=cookie))
    assert explain_denial(user) == f"anonymous is a viewer: {LINK_ADVICE}."


def test_the_cookies_of_servers_on_other_ports_are_kept_apart() -> None:
    other = LoopbackLogin("ada", "key-of-the-other")
    cookies = "fleetgauge_operator_8050=key-of-operators; fleetgauge_operator_80=key-of-the-other"
    for login, host, role in (
        (KEY_LOGIN, "127.0.0.1:8050", Role.OPERATOR),
        (KEY_LOGIN, "127.0.0.1", Role.VIEWER),
        (other, "127.0.0.1", Role.OPERATOR),
        (other, "127.0.0.1:8050", Role.VIEWER),
    ):
        assert login.identify(_origin("127.0.0.1", Host=host, Cookie=cookies)).role is role


def test_the_key_is_not_in_the_text_of_the_login() -> None:
    assert "key-of-operators" not in repr(KEY_LOGIN)


@pytest.mark.parametrize(
    "header",
    [
        "X-Forwarded-For",
        "x-forwarded-host",
        "X-Forwarded-Proto",
        "X-Forwarded-Prefix",
        "X-Forwarded-User",
        "X-Real-IP",
        "Forwarded",
        "Via",
        "CF-Connecting-IP",
    ],
)
def test_behind_a_proxy_without_a_login_nobody_is_a_local_user(header: str) -> None:
    user = KEY_LOGIN.identify(_origin_with_key("127.0.0.1", Host="127.0.0.1:8050", **{header: "x"}))
    assert user.role is Role.VIEWER
    assert "--user-header" in (explain_denial(user) or "")


def test_a_request_by_http_1_0_came_through_a_proxy() -> None:
    origin = _origin_with_key("127.0.0.1", Host="127.0.0.1:8050")
    assert KEY_LOGIN.identify(replace(origin, protocol="HTTP/1.0")).role is Role.VIEWER


def test_an_operator_writes_only_from_the_servers_own_pages() -> None:
    site = SiteAddress(frozenset({"ops.example"}), TrustedProxies.parse(["10.0.0.9"]))

    def write_role(address: str = "10.0.0.9", **headers: str) -> Role:
        return restrict_to_own_pages(OPERATOR, _origin(address, **headers), site).role

    assert write_role(Host="dash:8050", Origin="https://ops.example") is Role.OPERATOR
    assert write_role(Host="pages.example:443", Origin="https://pages.example") is Role.OPERATOR
    assert write_role(Host="dash:8050", Origin="https://a.example") is Role.VIEWER
    assert write_role(Host="dash:8050") is Role.VIEWER
    outer = {"Host": "dash:8050", "Origin": "https://a.example", "X_Forwarded_Host": "a.example"}
    assert write_role(**outer) is Role.OPERATOR
    assert write_role("10.0.0.8", **outer) is Role.VIEWER
    denied = restrict_to_own_pages(OPERATOR, _origin("10.0.0.9", Host="d", Origin="https://a.example"), site)
    assert "https://a.example" in (explain_denial(denied) or "")
    assert "--allow-host" in (explain_denial(denied) or "")


@pytest.fixture
def client(tmp_path: Path) -> FlaskClient:
    write(tmp_path, NOW)
    login = ProxyLogin("X-Forwarded-User", TrustedProxies.parse(["127.0.0.1"]), frozenset({"ada"}))
    return create_app([ServedFleet("fleet", str(tmp_path))], login, clock=lambda: NOW).server.test_client()


def test_an_unidentified_request_reaches_only_health_and_metrics(client: FlaskClient) -> None:
    for path in (
        "/",
        "/csv?of=/quality",
        "/review/2026-03-02.html",
        "/_dash-layout",
        "/assets/fleetgauge.js",
    ):
        response = client.get(path)
        message = "not authenticated: the reverse proxy sent no user name\n"
        assert (response.status_code, response.text) == (401, message)
    for path in ("/livez", "/readyz", "/metrics"):
        assert client.get(path).status_code == 200
    with client.get("/", headers={"X-Forwarded-User": "bob"}) as response:
        assert response.status_code == 200
    forged = {"X-Forwarded-User": "ada"}
    assert client.get("/", headers=forged, environ_base={"REMOTE_ADDR": "10.1.1.1"}).status_code == 401


@pytest.fixture
def lake(tmp_path: Path) -> LakeFixture:
    lake = open_lake(tmp_path)
    put(tmp_path, tables.ACTIONS, [])
    return lake


UTC_TIMES = TimeFormat("UTC")


def acknowledge(context: PageContext, alert_id: str, user: User | None) -> str:
    return record_remark(context, alert_id, None, user, UTC_TIMES)


def test_an_operators_acknowledgement_is_recorded_once(lake: LakeFixture) -> None:
    message = acknowledge(lake.context, "open-0", OPERATOR)
    assert message == f"● Acknowledged: BROKER_DOWN, {ORDERS} broker 2, as ada."
    (row,) = read_once(str(lake.root), tables.ACTIONS).to_pylist()
    assert (row["kind"], row["cluster_id"], row["broker_id"], row["author"]) == (
        ActionKind.ACKNOWLEDGE,
        ORDERS,
        2,
        "ada",
    )
    assert row["starts"] == NOW + timedelta(seconds=30)
    again = acknowledge(lake.context, "open-0", User("eve", Role.OPERATOR))
    assert again == "● Already acknowledged by ada, 2026-03-05 12:00:30 UTC."
    assert len(read_once(str(lake.root), tables.ACTIONS)) == 1


@pytest.mark.parametrize("user", [VIEWER, None])
def test_a_viewers_acknowledgement_is_rejected_and_not_written(lake: LakeFixture, user: User | None) -> None:
    assert acknowledge(lake.context, "open-0", user).startswith("✕ Not acknowledged: ")
    assert len(read_once(str(lake.root), tables.ACTIONS)) == 0


def test_a_failed_acknowledgement_returns_the_reason(lake: LakeFixture, tmp_path: Path) -> None:
    assert (
        acknowledge(lake.context, "nothing", OPERATOR)
        == "✕ Not acknowledged: no alert has this id; reload the page."
    )
    without = open_lake(tmp_path / "without")
    assert "ops/actions: no such table" in acknowledge(without.context, "open-0", OPERATOR)


def test_the_first_acknowledgement_counts_and_malformed_rows_are_ignored() -> None:
    row = {"kind": ActionKind.ACKNOWLEDGE, "starts": NOW, "author": "ada", "detail": '{"alert_id": "a"}'}
    later = {**row, "starts": NOW + timedelta(minutes=1), "author": "bob"}
    broken = [{**row, "detail": detail} for detail in (None, "", "no json", "[]", "{}", '{"alert_id": 3}')]
    acknowledgements = select_acknowledgements(
        [later, *broken, row, {**row, "kind": "roll", "detail": '{"alert_id": "b"}'}]
    )
    assert {alert: remark.author for alert, remark in acknowledgements.items()} == {"a": "ada"}


def test_an_acknowledgement_is_no_mitigation_in_the_review(lake: LakeFixture) -> None:
    acknowledge(lake.context, "open-0", OPERATOR)
    rows = read_once(str(lake.root), tables.ACTIONS).to_pylist()
    week = WeekCalendar("UTC", "monday").week_at(NOW)
    assert select_actions_of_week(rows, week) == ()
    incidents = list_incidents(
        lake.context.lake.health_events(), select_actions_of_week(rows, week), {}, week
    )
    assert [incident.acted_s for incident in incidents if incident.alert_id == "open-0"] == [None]


def test_an_operator_judges_and_may_change_the_judgement(lake: LakeFixture) -> None:
    false_alarm, right = AlertJudgement.FALSE_ALARM, AlertJudgement.RIGHT
    message = record_remark(lake.context, "past-0", false_alarm, OPERATOR, UTC_TIMES)
    assert message == "● Judged false alarm: BROKER_DOWN, payments-us broker 1, as ada."
    again = record_remark(lake.context, "past-0", false_alarm, OPERATOR, UTC_TIMES)
    assert again == "● Already judged false alarm by ada, 2026-03-05 12:00:30 UTC."
    record_remark(lake.context, "past-0", right, User("eve", Role.OPERATOR), UTC_TIMES)
    rows = read_once(str(lake.root), tables.ACTIONS).to_pylist()
    assert [row["kind"] for row in rows] == [ActionKind.JUDGE, ActionKind.JUDGE]
    # Both rows have the same time, so that the last one read counts; a later row decides.
    assert select_judgements([rows[0], rows[1] | {"starts": NOW + timedelta(hours=1)}]).keys() == {"past-0"}


def test_a_viewers_judgement_is_rejected(lake: LakeFixture) -> None:
    message = record_remark(lake.context, "past-0", AlertJudgement.RIGHT, VIEWER, UTC_TIMES)
    assert message == "✕ Not judged: bob is a viewer; this needs the operator role."
    assert len(read_once(str(lake.root), tables.ACTIONS)) == 0


FIXED = ClusterView(ORDERS, shown=Span(NOW - timedelta(minutes=8), NOW))


@pytest.fixture
def correctable(lake: LakeFixture) -> LakeFixture:
    put(lake.root, tables.CORRECTIONS, [])
    return lake


def test_an_operator_excludes_the_displayed_minutes(correctable: LakeFixture) -> None:
    message = record_correction(correctable.context, FIXED, 2, " disk\n swapped ", OPERATOR)
    (row,) = read_once(str(correctable.root), tables.CORRECTIONS).to_pylist()
    assert (
        message
        == f"● Correction {row['correction_id']} by ada takes effect with the next batch of fleetgauge "
        "stream."
    )
    assert (row["scope"], row["cluster_id"], row["broker_id"]) == ("broker", ORDERS, 2)
    assert (row["starts"], row["ends"]) == (NOW - timedelta(minutes=8), NOW)
    assert (row["reason"], row["author"]) == ("disk swapped", "ada")


@pytest.mark.parametrize(
    ("view", "broker", "reason", "user", "expected"),
    [
        (FIXED, None, "why", VIEWER, "bob is a viewer"),
        (FIXED, None, "why", None, "an unidentified user is a viewer"),
        (ClusterView(ORDERS, shown=Window.HOUR), None, "why", OPERATOR, "the time range is not fixed"),
        (FIXED, None, "  ", OPERATOR, "give a reason"),
        (ClusterView("nobody", shown=FIXED.shown), None, "why", OPERATOR, "there is no cluster nobody"),
        (FIXED, 77, "why", OPERATOR, "broker 77 was not measured"),
    ],
)
def test_a_rejected_correction_returns_the_reason(
    correctable: LakeFixture,
    view: ClusterView,
    broker: int | None,
    reason: str,
    user: User | None,
    expected: str,
) -> None:
    message = record_correction(correctable.context, view, broker, reason, user)
    assert message.startswith("✕ Not excluded")
    assert expected in message
    assert len(read_once(str(correctable.root), tables.CORRECTIONS)) == 0


def test_minutes_that_are_excluded_already_are_rejected(correctable: LakeFixture) -> None:
    record_correction(correctable.context, FIXED, None, "why", OPERATOR)
    message = record_correction(correctable.context, FIXED, 2, "again", OPERATOR)
    assert message.startswith(
        "✕ Not excluded, for it would have no effect: these minutes are excluded already"
    )
    assert len(read_once(str(correctable.root), tables.CORRECTIONS)) == 1


def test_a_correction_without_its_table_is_rejected(lake: LakeFixture) -> None:
    assert "ops/corrections: no such table" in record_correction(lake.context, FIXED, None, "why", OPERATOR)
