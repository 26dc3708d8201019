"""State changes are folded into alerts."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from fleetgauge_core import tables
from fleetgauge_core.contract import HealthEvent, Leg
from fleetgauge_dashboards.links import (
    AlertsView,
    ClusterView,
    Span,
    href,
    parse_view,
)
from fleetgauge_dashboards.pages import alerts as alerts_page
from fleetgauge_dashboards.pages.page import PageNotice
from fleetgauge_dashboards.times import TimeFormat
from fleetgauge_dashboards.views.alerts import fold_alerts, select_open_alerts
from tests.browser.lake import ORDERS, put
from tests.unit.dashboards.served import NOW, open_lake, visible_text

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


def test_an_alert_is_open_from_its_opening_event_until_it_clears() -> None:
    opening_events = [change(0, "HEALTHY", "SUSPECT"), change(6, "SUSPECT", "BROKER_DOWN")]
    (open_alert,) = fold_alerts(opening_events)
    assert open_alert.is_open
    assert open_alert.opened_at == START + timedelta(seconds=6)
    (cleared_alert,) = fold_alerts([*opening_events, change(90, "BROKER_DOWN", "HEALTHY")])
    assert cleared_alert.cleared_at == START + timedelta(seconds=90)
    assert select_open_alerts([cleared_alert]) == ()


def test_an_alert_that_ends_because_its_cluster_was_removed_is_told_from_one_that_recovers() -> None:
    opening = change(0, "HEALTHY", "BROKER_DOWN")
    end = change(90, "BROKER_DOWN", "HEALTHY")
    texts = {}
    for evidence in ("{}", '{"watched": true}', '{"watched": false}', "[]", "no JSON"):
        (alert,) = fold_alerts([opening, replace(end, evidence=evidence)])
        texts[evidence] = alert.format_end(TimeFormat("UTC"))
    removed = texts.pop('{"watched": false}')
    assert set(texts.values()) == {"2026-03-02 10:01:30 UTC"}
    assert removed == "2026-03-02 10:01:30 UTC, cluster removed"
    (open_alert,) = fold_alerts([opening])
    assert not open_alert.is_removed
    assert open_alert.format_end(TimeFormat("UTC")) == "–"


def test_a_suspicion_is_not_open_and_is_dropped_when_it_clears() -> None:
    (suspicion,) = fold_alerts([change(0, "HEALTHY", "SUSPECT")])
    assert suspicion.is_suspected
    assert not suspicion.is_open
    assert fold_alerts([change(0, "HEALTHY", "SUSPECT"), change(5, "SUSPECT", "HEALTHY")]) == ()


def test_an_alert_may_change_its_kind_and_its_fingerprint() -> None:
    (alert,) = fold_alerts(
        [
            change(0, "HEALTHY", "BROKER_SLOW", "slow", kind="BROKER_SLOW"),
            change(30, "BROKER_SLOW", "BROKER_DOWN", "down"),
            change(60, "BROKER_DOWN", "HEALTHY", "down"),
        ]
    )
    assert (alert.kind, alert.cleared_at) == ("BROKER_DOWN", START + timedelta(seconds=60))


def test_alerts_of_two_brokers_stay_separate_in_any_order_of_arrival() -> None:
    events = [change(1, "HEALTHY", "BROKER_DOWN", "b", 3), change(0, "HEALTHY", "BROKER_DOWN", "a", 2)]
    assert [alert.broker_id for alert in fold_alerts(events)] == [3, 2]


def test_a_clearing_event_without_an_opening_event_is_not_an_alert() -> None:
    assert fold_alerts([change(0, "BROKER_DOWN", "HEALTHY")]) == ()


def test_a_link_shows_the_leader_leg_around_the_alert_at_absolute_times() -> None:
    (alert,) = fold_alerts([change(0, "HEALTHY", "BROKER_DOWN"), change(60, "BROKER_DOWN", "HEALTHY")])
    path, _, query = href(alert.view()).partition("?")
    span = Span(START - timedelta(minutes=15), START + timedelta(minutes=16))
    assert parse_view(path, query) == ClusterView("orders-eu", shown=span, leg=Leg.LEADER)


def test_a_link_to_an_alert_that_lasted_weeks_fits_the_longest_span() -> None:
    (alert,) = fold_alerts(
        [change(0, "HEALTHY", "BROKER_DOWN"), change(30 * 86_400, "BROKER_DOWN", "HEALTHY")]
    )
    view = parse_view(*href(alert.view()).split("?"))
    assert isinstance(view, ClusterView)
    assert isinstance(view.shown, Span)


def test_a_link_to_an_old_alert_shows_it_and_to_an_unknown_one_shows_a_notice(tmp_path: Path) -> None:
    lake = open_lake(tmp_path)
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
        for number in range(1, alerts_page.MAX_HISTORY + 6)
        for state in ("BROKER_DOWN", "HEALTHY")
    ]
    put(tmp_path, tables.HEALTH_EVENTS, events)
    oldest = alerts_page.MAX_HISTORY + 5
    view = AlertsView(alert_id=f"{oldest}-BROKER_DOWN")
    shown = visible_text(lake.fill(alerts_page.PAGE, view)["alerts-history.children"])
    assert f'"number": {oldest}' in shown
    assert f'"number": {oldest - 1}' not in shown
    notice = lake.fill(alerts_page.PAGE, AlertsView(alert_id="nobody"))
    assert isinstance(notice, PageNotice)
    assert notice.title == "No alert with id nobody"
