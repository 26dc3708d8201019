"""A broker's page shows its own minutes, failures and alerts."""

from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from fleetgauge_core import tables
from fleetgauge_core.contract import Leg
from fleetgauge_dashboards.links import (
    BrokerView,
    Span,
)
from fleetgauge_dashboards.pages import broker
from fleetgauge_dashboards.pages.page import PageNotice
from fleetgauge_dashboards.reader import read_once
from fleetgauge_dashboards.views.broker import build_broker_detail
from tests.browser.lake import HUNG_FOR, MINUTE, ORDERS, PAYMENTS, SEARCH
from tests.unit.dashboards.served import NOW, LakeFixture, open_lake, visible_text

HOUR = Span(NOW - timedelta(hours=1), NOW)


@pytest.fixture
def lake(tmp_path: Path) -> LakeFixture:
    return open_lake(tmp_path)


def test_key_figures_are_sums_over_the_minutes_shown(lake: LakeFixture) -> None:
    shown = visible_text(lake.fill(broker.PAGE, BrokerView(ORDERS, 2, HOUR))["broker-cards.children"])
    failed = 20 + 4 * (HUNG_FOR - 1)
    assert f"{6_000 - failed:,} of 6,000 probes" in shown
    assert f"{6_000 - 100 * HUNG_FOR:,} of 6,000 probes" in shown
    assert "0 of 60" in shown


def test_both_legs_are_drawn_with_the_values_of_silver(lake: LakeFixture) -> None:
    rows = read_once(str(lake.root), tables.BROKER_MINUTES).to_pylist()
    filled = lake.fill(broker.PAGE, BrokerView(ORDERS, 2, HOUR))
    for leg in Leg:
        broker_minutes = sorted(
            (row["minute"], row["latency_p99_us"], row["latency_p99_censored_us"])
            for row in rows
            if (row["cluster_id"], row["broker_id"], row["leg"]) == (ORDERS, 2, leg)
            and HOUR.start <= row["minute"] < HOUR.end
        )
        _, censored, p99, _ = filled[f"broker-{leg}.figure"].data
        assert list(p99.y) == [None if us is None else us / 1000 for _, us, _ in broker_minutes]
        assert list(censored.y) == [us / 1000 for *_, us in broker_minutes]


def test_failures_are_stacked_by_leg_and_reason(lake: LakeFixture) -> None:
    figure = lake.fill(broker.PAGE, BrokerView(ORDERS, 2, HOUR))["broker-failures.figure"]
    assert {(bar.name, sum(bar.y)) for bar in figure.data if bar.type == "bar"} == {
        ("client: timed_out", 20 + 4 * (HUNG_FOR - 1)),
        ("leader: timed_out", 100 * HUNG_FOR),
    }
    quiet = lake.fill(broker.PAGE, BrokerView(PAYMENTS, 2, HOUR))["broker-failures.figure"]
    assert [trace.type for trace in quiet.data] == ["scatter"]
    assert quiet.layout.annotations[0].text == "No failed probes."


def test_a_coarser_step_keeps_the_worst_and_sums_failures(lake: LakeFixture) -> None:
    long = Span(NOW - timedelta(days=2), NOW)
    rows = lake.context.lake.broker_detail(ORDERS, 2, long)
    model = build_broker_detail(rows, 2, long)
    assert model.grid.step_min == 10
    client, leader = model.legs
    assert sum(sum(counts) for counts in leader.failures.values()) == 100 * HUNG_FOR
    p99s_us = [us for us in rows["latency_p99_us"].to_pylist() if us is not None]
    assert max(ms for leg in (client, leader) for ms in leg.p99_ms if ms is not None) == max(p99s_us) / 1000


def test_an_unmeasured_period_is_a_gap(lake: LakeFixture) -> None:
    model = build_broker_detail(lake.context.lake.broker_detail(PAYMENTS, 1, HOUR), 1, HOUR)
    start, end = (NOW - timedelta(minutes=back) for back in (41, 29))
    assert model.legs[0].gaps == (Span(start, end),)


def test_the_alert_history_contains_only_this_broker(lake: LakeFixture) -> None:
    history = lake.fill(broker.PAGE, BrokerView(ORDERS, 2, HOUR))["broker-history.children"]
    assert "▲ open for 8 min" in visible_text(history)
    empty_history = lake.fill(broker.PAGE, BrokerView(SEARCH, 1, HOUR))["broker-history.children"]
    assert "This broker has never had an alert." in visible_text(empty_history)


def test_minutes_led_by_another_broker_are_counted(lake: LakeFixture) -> None:
    rows = lake.context.lake.broker_detail(ORDERS, 2, HOUR)
    key_figures = build_broker_detail(
        rows, 1, HOUR
    ).key_figures  # As if broker 1 were the home that broker 2 led for.
    assert (key_figures[-1].value, key_figures[-1].notes) == ("60 of 60", ("by broker 2",))


def test_an_unknown_broker_shows_a_notice(lake: LakeFixture) -> None:
    for view in (BrokerView(ORDERS, 77, HOUR), BrokerView("nobody", 1, HOUR)):
        assert isinstance(lake.fill(broker.PAGE, view), PageNotice)


def test_the_downloaded_file_has_the_minutes_of_both_legs(lake: LakeFixture) -> None:
    part = broker.PAGE.get_part("failures")
    assert part is not None
    assert len(part.read_rows(BrokerView(ORDERS, 2, HOUR), lake.context).rows) == 120


def test_failure_reasons_say_where_to_look_and_since_when(lake: LakeFixture) -> None:
    rows = lake.context.lake.broker_detail(ORDERS, 2, HOUR).to_pylist()
    for row in rows:
        row["failures"] = [
            ("NOT_LEADING" if row["leg"] == "leader" else code, count) for code, count in row["failures"]
        ]
    table = pa.Table.from_pylist(rows, schema=lake.context.lake.broker_detail(ORDERS, 2, HOUR).schema)
    not_leading, timed_out = build_broker_detail(table, 2, HOUR).reasons
    assert (not_leading.code, not_leading.meaning, not_leading.failed_probes) == (
        "NOT_LEADING",
        "the home broker was out of sync or did not answer, so it could not lead",
        {Leg.CLIENT: 0, Leg.LEADER: 100 * HUNG_FOR},
    )
    assert (timed_out.code, timed_out.meaning) == ("timed_out", "–")
    assert (not_leading.first, not_leading.last) == (NOW - HUNG_FOR * MINUTE, NOW - MINUTE)
    shown = visible_text(lake.fill(broker.PAGE, BrokerView(PAYMENTS, 2, HOUR))["broker-reasons.children"])
    assert shown == "No probe failed in this time range."


def test_a_failure_of_the_agents_own_is_not_drawn_and_says_what_to_do(lake: LakeFixture) -> None:
    rows = lake.context.lake.broker_detail(ORDERS, 2, HOUR)
    own = [
        row | {"attempted": 0, "succeeded": 0, "measured": False, "failures": [("INVALID_RECORD", 100)]}
        for row in rows.to_pylist()
    ]
    alone = [own[0] | {"attempted": 100}]
    model = build_broker_detail(pa.Table.from_pylist([*own[1:], *alone], schema=rows.schema), 2, HOUR)
    assert sum(sum(counts) for leg in model.legs for counts in leg.failures.values()) == 100
    uncounted, counted = model.reasons
    assert uncounted.meaning.startswith("not measured: the probe topic is missing, or its settings reject")
    assert counted.meaning == "this broker refused while others accepted"
    assert sum(counted.failed_probes.values()) == 100


def test_failures_in_an_unmeasured_minute_are_drawn(lake: LakeFixture) -> None:
    rows = lake.context.lake.broker_detail(ORDERS, 2, HOUR)
    few = [row | {"measured": False} for row in rows.to_pylist()]
    model = build_broker_detail(pa.Table.from_pylist(few, schema=rows.schema), 2, HOUR)
    assert {leg.leg: sum(leg.failures["timed_out"]) for leg in model.legs} == {
        Leg.CLIENT: 20 + 4 * (HUNG_FOR - 1),
        Leg.LEADER: 100 * HUNG_FOR,
    }
