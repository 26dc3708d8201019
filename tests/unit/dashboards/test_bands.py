"""Findings, corrections and actions are shown as bands, cut to the span."""

import json
from datetime import datetime, timedelta
from typing import Any

from fleetgauge_core import tables
from fleetgauge_core.contract import HealthEvent
from fleetgauge_dashboards.links import Span
from fleetgauge_dashboards.views.alerts import fold_alerts
from fleetgauge_dashboards.views.bands import (
    LONGEST_LABEL,
    BandKind,
    action_bands,
    change_bands,
    correction_bands,
    excluded_spans,
    finding_bands,
)
from tests.unit.dashboards.frames import START, minute

HOUR = Span(START, minute(60))
LATER = minute(90)
EU = frozenset({("region", "eu")})


def _event(at: int, left: str, entered: str) -> HealthEvent:
    return HealthEvent(f"e{at}", "f", "orders-eu", 2, minute(at), left, entered, "BROKER_DOWN", "{}")


def _correction(starts: datetime, ends: datetime, **changed: Any) -> dict[str, Any]:
    values = {"correction_id": "c", "scope": "cluster", "cluster_id": "orders-eu", "reason": "upgrade"}
    return (
        dict.fromkeys(tables.CORRECTIONS.column_names) | values | {"starts": starts, "ends": ends} | changed
    )


def _action(starts: datetime, ends: datetime | None, **changed: Any) -> dict[str, Any]:
    values = {"action_id": "a", "kind": "demote", "cluster_id": "orders-eu", "broker_id": 2, "author": "ada"}
    return dict.fromkeys(tables.ACTIONS.column_names) | values | {"starts": starts, "ends": ends} | changed


def test_finding_bands_are_cut_to_the_span_and_separate_the_suspicion() -> None:
    alerts = fold_alerts([_event(-5, "HEALTHY", "SUSPECT"), _event(2, "SUSPECT", "BROKER_DOWN")])
    suspected, opened = finding_bands(alerts, "orders-eu", HOUR, LATER)
    assert (suspected.span, suspected.kind) == (Span(START, minute(2)), BandKind.SUSPICION)
    assert (opened.span, opened.label) == (Span(minute(2), minute(60)), "BROKER_DOWN broker 2")
    assert finding_bands(alerts, "payments-us", HOUR, LATER) == ()
    assert (
        finding_bands(
            alerts, "orders-eu", Span(START - timedelta(hours=2), START - timedelta(hours=1)), LATER
        )
        == ()
    )


def test_an_open_band_ends_now() -> None:
    alerts = fold_alerts([_event(2, "HEALTHY", "BROKER_DOWN")])
    (band,) = finding_bands(alerts, "orders-eu", HOUR, minute(7))
    assert band.span == Span(minute(2), minute(7))


def test_a_correction_is_shown_only_for_its_cluster_and_not_when_withdrawn() -> None:
    (band,) = correction_bands([_correction(minute(-10), minute(5))], "orders-eu", frozenset(), "UTC", HOUR)
    assert (band.span, band.label, band.kind) == (
        Span(START, minute(5)),
        "excluded, upgrade",
        BandKind.CORRECTION,
    )
    withdrawn = _correction(minute(-10), minute(5), withdrawn_at=minute(1))
    other_cluster = _correction(minute(0), minute(5), cluster_id="payments-us")
    assert correction_bands([withdrawn, other_cluster], "orders-eu", frozenset(), "UTC", HOUR) == ()


def test_a_segment_correction_is_shown_for_its_clusters() -> None:
    segment = {"scope": "segment", "cluster_id": None, "segment": "region", "segment_value": "eu"}
    row = _correction(minute(5), minute(9), **segment)
    assert len(correction_bands([row], "orders-eu", EU, "UTC", HOUR)) == 1
    assert correction_bands([row], "orders-eu", frozenset(), "UTC", HOUR) == ()


def test_a_recurring_correction_is_shown_each_time() -> None:
    row = _correction(minute(5) - timedelta(days=2), minute(9) - timedelta(days=2), recurs="daily")
    week = Span(START, START + timedelta(days=3))
    starts = [band.span.start for band in correction_bands([row], "orders-eu", frozenset(), "UTC", week)]
    assert starts == [minute(5), minute(5) + timedelta(days=1), minute(5) + timedelta(days=2)]


def test_excluded_spans_contain_only_cluster_wide_corrections() -> None:
    rows = [
        _correction(minute(5), minute(9), broker_id=2, scope="broker"),
        _correction(minute(20), minute(21)),
    ]
    assert excluded_spans(rows, "orders-eu", frozenset(), "UTC", HOUR) == (Span(minute(20), minute(21)),)


def test_actions_are_shown_until_their_end_and_refusals_are_not_shown() -> None:
    refused = _action(minute(1), minute(2), detail=json.dumps({"outcome": "refused"}))
    remark = _action(minute(1), minute(1), kind="acknowledge")
    roll = _action(minute(10), None, kind="roll", broker_id=None)
    rows = [refused, remark, roll, _action(minute(3), minute(8), detail=json.dumps({"outcome": "undone"}))]
    assert [(band.label, band.span) for band in action_bands(rows, "orders-eu", HOUR, LATER)] == [
        ("roll, ada", Span(minute(10), minute(60))),
        ("demote broker 2, ada", Span(minute(3), minute(8))),
    ]


def test_a_long_reason_is_shortened() -> None:
    (band,) = correction_bands(
        [_correction(minute(1), minute(2), reason=200 * "x")], "orders-eu", EU, "UTC", HOUR
    )
    assert len(band.label) == LONGEST_LABEL
    assert band.label.endswith("…")


def change(kind: str, first: float, last: float | None, **values: Any) -> dict[str, Any]:
    names = ("broker_id", "segment", "segment_value", "title", "phase")
    times = {"starts": minute(first), "ends": None if last is None else minute(last)}
    row = {"change_id": f"{kind} {first}", "cluster_id": "orders-eu", "kind": kind, "at": minute(first)}
    return dict.fromkeys(names) | row | times | values


def test_changes_of_the_cluster_and_of_its_segments_are_marked_by_their_latest_record() -> None:
    rows = [
        change("reassignment", 5, None),
        change("reassignment", 5, 9, at=minute(9)),
        change("throttle", 10, None, broker_id=2),
        change("deploy", 20, 20, title="orders 2.4"),
        change("ticket", 30, 31, cluster_id=None, segment="region", segment_value="eu"),
        change("ticket", 40, 41, cluster_id=None, segment="region", segment_value="us"),
        change("deploy", 50, 51, cluster_id="payments-eu"),
        change("deploy", 52, 53),
        change("deploy", 52, 53, at=minute(54), phase="cancelled"),
    ]
    bands = change_bands(rows, "orders-eu", {("region", "eu")}, HOUR, minute(15))
    assert [(band.label, band.span) for band in bands] == [
        ("reassignment", Span(minute(5), minute(9))),
        ("throttle broker 2", Span(minute(10), minute(15))),
        ("deploy: orders 2.4", Span(minute(20), minute(21))),
        ("ticket", Span(minute(30), minute(31))),
    ]
    assert {band.kind for band in bands} == {BandKind.CHANGE}


def test_restarts_that_follow_each_other_are_one_band() -> None:
    rows = [
        change("broker_restarted", at, at + 0.5, broker_id=broker) for at, broker in ((5, 3), (9, 1), (40, 1))
    ]
    rows.append(change("broker_restarted", 2, 11, broker_id=2))
    bands = change_bands(rows, "orders-eu", set(), HOUR, LATER)
    assert [(band.label, band.span) for band in bands] == [
        ("restart of brokers 1, 2, 3", Span(minute(2), minute(11))),
        ("restart of broker 1", Span(minute(40), minute(41))),
    ]
