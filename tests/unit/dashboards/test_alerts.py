"""Changes of state fold into alerts."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from fleetgauge_core import tables
from fleetgauge_dashboards.links import AlertsView, ClusterView, Leg, Span, href, parse
from fleetgauge_dashboards.pages import alerts as alerts_page
from fleetgauge_dashboards.pages.page import Notice
from fleetgauge_dashboards.reader import HealthEvent
from fleetgauge_dashboards.views.alerts import alerts, still_open
from tests.browser.lake import ORDERS, put
from tests.unit.dashboards.served import NOW, said, served

START = datetime(2026, 3, 2, 10, tzinfo=UTC)


def change(
    second: int,
    left: str,
    entered: str,
    fingerprint: str = "f",
    broker: int | None = 2,
    kind: str = "BROKER_DOWN",
) -> HealthEvent:
    return HealthEvent(
        event_id=f"{fingerprint}-{second}",
        fingerprint=fingerprint,
        cluster_id="orders-eu",
        broker_id=broker,
        at=START + timedelta(seconds=second),
        from_state=left,
        to_state=entered,
        kind=kind,
        evidence="{}",
    )


def test_a_finding_is_open_from_its_name_until_it_clears() -> None:
    begin = [change(0, "HEALTHY", "SUSPECT"), change(6, "SUSPECT", "BROKER_DOWN")]
    (opened,) = alerts(begin)
    assert opened.is_open
    assert opened.opened == START + timedelta(seconds=6)
    (ended,) = alerts([*begin, change(90, "BROKER_DOWN", "HEALTHY")])
    assert ended.cleared == START + timedelta(seconds=90)
    assert still_open([ended]) == ()


def test_a_suspicion_is_no_alert_and_is_forgotten_when_it_passes() -> None:
    (suspicion,) = alerts([change(0, "HEALTHY", "SUSPECT")])
    assert suspicion.is_suspicion
    assert not suspicion.is_open
    assert alerts([change(0, "HEALTHY", "SUSPECT"), change(5, "SUSPECT", "HEALTHY")]) == ()


def test_a_finding_may_change_its_kind_and_its_fingerprint() -> None:
    (alert,) = alerts(
        [
            change(0, "HEALTHY", "BROKER_SLOW", "slow", kind="BROKER_SLOW"),
            change(30, "BROKER_SLOW", "BROKER_DOWN", "down"),
            change(60, "BROKER_DOWN", "HEALTHY", "down"),
        ]
    )
    assert (alert.kind, alert.cleared) == ("BROKER_DOWN", START + timedelta(seconds=60))


def test_findings_of_two_brokers_stay_apart_in_any_order_of_arrival() -> None:
    events = [change(1, "HEALTHY", "BROKER_DOWN", "b", 3), change(0, "HEALTHY", "BROKER_DOWN", "a", 2)]
    assert [alert.broker_id for alert in alerts(events)] == [3, 2]


def test_an_end_without_a_beginning_is_not_an_alert() -> None:
    assert alerts([change(0, "BROKER_DOWN", "HEALTHY")]) == ()


def test_a_link_shows_the_leader_leg_around_the_alert_at_absolute_times() -> None:
    (alert,) = alerts([change(0, "HEALTHY", "BROKER_DOWN"), change(60, "BROKER_DOWN", "HEALTHY")])
    path, _, query = href(alert.view()).partition("?")
    span = Span(START - timedelta(minutes=15), START + timedelta(minutes=16))
    assert parse(path, query) == ClusterView("orders-eu", shown=span, leg=Leg.LEADER)


def test_a_link_to_an_alert_of_weeks_stays_within_what_a_page_draws() -> None:
    (alert,) = alerts([change(0, "HEALTHY", "BROKER_DOWN"), change(30 * 86_400, "BROKER_DOWN", "HEALTHY")])
    view = parse(*href(alert.view()).split("?"))
    assert isinstance(view, ClusterView)
    assert isinstance(view.shown, Span)


def test_a_link_to_an_old_alert_shows_it_and_to_none_says_so(tmp_path: Path) -> None:
    lake = served(tmp_path)
    events = [
        {
            "event_id": f"{number}-{state}",
            "fingerprint": f"f{number}",
            "cluster_id": ORDERS,
            "broker_id": 1,
            "at": NOW - timedelta(days=number, seconds=state == "BROKER_DOWN"),
            "from_state": "HEALTHY" if state == "BROKER_DOWN" else "BROKER_DOWN",
            "to_state": state,
            "kind": "BROKER_DOWN",
            "evidence": json.dumps({"number": number}),
        }
        for number in range(1, alerts_page.HISTORY + 6)
        for state in ("BROKER_DOWN", "HEALTHY")
    ]
    put(tmp_path, tables.HEALTH_EVENTS, events)
    oldest = alerts_page.HISTORY + 5
    asked = AlertsView(alert_id=f"{oldest}-BROKER_DOWN")
    shown = said(lake.fill(alerts_page.PAGE, asked)["alerts-history.children"])
    assert f'"number": {oldest}' in shown
    assert f'"number": {oldest - 1}' not in shown
    nobody = lake.fill(alerts_page.PAGE, AlertsView(alert_id="nobody"))
    assert isinstance(nobody, Notice)
    assert nobody.title == "No alert nobody"
