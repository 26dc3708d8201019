"""What happened in the minutes shown: findings, corrections and acts, each cut to them."""

import json
from datetime import datetime, timedelta
from typing import Any

from fleetgauge_core import tables
from fleetgauge_dashboards.links import Span
from fleetgauge_dashboards.reader import HealthEvent
from fleetgauge_dashboards.views.alerts import alerts
from fleetgauge_dashboards.views.bands import LONGEST_LABEL, What, corrected, done, found, left_out
from tests.unit.dashboards.frames import START, minute

HOUR = Span(START, minute(60))
LATER = minute(90)
EU = frozenset({("region", "eu")})


def _event(at: int, left: str, entered: str) -> HealthEvent:
    return HealthEvent(f"e{at}", "f", "orders-eu", 2, minute(at), left, entered, "BROKER_DOWN", "{}")


def _correction(starts: datetime, ends: datetime, **changed: Any) -> dict[str, Any]:
    own = {"correction_id": "c", "scope": "cluster", "cluster_id": "orders-eu", "reason": "upgrade"}
    return dict.fromkeys(tables.CORRECTIONS.names) | own | {"starts": starts, "ends": ends} | changed


def _action(starts: datetime, ends: datetime | None, **changed: Any) -> dict[str, Any]:
    own = {"action_id": "a", "kind": "demote", "cluster_id": "orders-eu", "broker_id": 2, "author": "ada"}
    return dict.fromkeys(tables.ACTIONS.names) | own | {"starts": starts, "ends": ends} | changed


def test_findings_are_cut_to_the_span_and_the_first_sign_stands_apart() -> None:
    events = alerts([_event(-5, "HEALTHY", "SUSPECT"), _event(2, "SUSPECT", "BROKER_DOWN")])
    suspected, named = found(events, "orders-eu", HOUR, LATER)
    assert (suspected.span, suspected.what) == (Span(START, minute(2)), What.SUSPICION)
    assert (named.span, named.label) == (Span(minute(2), minute(60)), "BROKER_DOWN broker 2")
    assert found(events, "payments-us", HOUR, LATER) == ()
    assert (
        found(events, "orders-eu", Span(START - timedelta(hours=2), START - timedelta(hours=1)), LATER) == ()
    )


def test_what_is_open_does_not_reach_into_the_future() -> None:
    events = alerts([_event(2, "HEALTHY", "BROKER_DOWN")])
    (band,) = found(events, "orders-eu", HOUR, minute(7))
    assert band.span == Span(minute(2), minute(7))


def test_a_correction_is_shown_where_it_counts() -> None:
    (band,) = corrected([_correction(minute(-10), minute(5))], "orders-eu", frozenset(), "UTC", HOUR)
    assert (band.span, band.label, band.what) == (
        Span(START, minute(5)),
        "not counted, upgrade",
        What.CORRECTION,
    )
    withdrawn = _correction(minute(-10), minute(5), withdrawn_at=minute(1))
    others = _correction(minute(0), minute(5), cluster_id="payments-us")
    assert corrected([withdrawn, others], "orders-eu", frozenset(), "UTC", HOUR) == ()


def test_a_correction_of_a_segment_is_its_clusters() -> None:
    own = {"scope": "segment", "cluster_id": None, "segment": "region", "segment_value": "eu"}
    row = _correction(minute(5), minute(9), **own)
    assert len(corrected([row], "orders-eu", EU, "UTC", HOUR)) == 1
    assert corrected([row], "orders-eu", frozenset(), "UTC", HOUR) == ()


def test_what_recurs_is_shown_each_time() -> None:
    row = _correction(minute(5) - timedelta(days=2), minute(9) - timedelta(days=2), recurs="daily")
    week = Span(START, START + timedelta(days=3))
    starts = [band.span.start for band in corrected([row], "orders-eu", frozenset(), "UTC", week)]
    assert starts == [minute(5), minute(5) + timedelta(days=1), minute(5) + timedelta(days=2)]


def test_what_is_left_out_of_a_single_broker_counts_for_the_others() -> None:
    rows = [
        _correction(minute(5), minute(9), broker_id=2, scope="broker"),
        _correction(minute(20), minute(21)),
    ]
    assert left_out(rows, "orders-eu", frozenset(), "UTC", HOUR) == (Span(minute(20), minute(21)),)


def test_acts_are_shown_until_they_were_over_and_refusals_are_none() -> None:
    refused = _action(minute(1), minute(2), detail=json.dumps({"outcome": "refused"}))
    remark = _action(minute(1), minute(1), kind="acknowledge")
    roll = _action(minute(10), None, kind="roll", broker_id=None)
    rows = [refused, remark, roll, _action(minute(3), minute(8), detail=json.dumps({"outcome": "undone"}))]
    assert [(band.label, band.span) for band in done(rows, "orders-eu", HOUR, LATER)] == [
        ("roll, ada", Span(minute(10), minute(60))),
        ("demote broker 2, ada", Span(minute(3), minute(8))),
    ]


def test_a_long_reason_is_cut() -> None:
    (band,) = corrected([_correction(minute(1), minute(2), reason=200 * "x")], "orders-eu", EU, "UTC", HOUR)
    assert len(band.label) == LONGEST_LABEL
    assert band.label.endswith("…")
