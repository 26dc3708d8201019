"""A broker's page: its own minutes and failures, and nothing of its neighbours."""

from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from fleetgauge_core import tables
from fleetgauge_dashboards.links import BrokerView, Leg, Span
from fleetgauge_dashboards.pages import broker
from fleetgauge_dashboards.pages.page import Notice
from fleetgauge_dashboards.reader import read_once
from fleetgauge_dashboards.views.broker import broker_minutes
from tests.browser.lake import HUNG_FOR, MINUTE, ORDERS, PAYMENTS, SEARCH
from tests.unit.dashboards.served import NOW, Served, said, served

HOUR = Span(NOW - timedelta(hours=1), NOW)


@pytest.fixture
def lake(tmp_path: Path) -> Served:
    return served(tmp_path)


def test_numbers_are_sums_over_the_minutes_shown(lake: Served) -> None:
    shown = said(lake.fill(broker.PAGE, BrokerView(ORDERS, 2, HOUR))["broker-cards.children"])
    failed = 20 + 4 * (HUNG_FOR - 1)
    assert f"{6_000 - failed:,} of 6,000 probes" in shown
    assert f"{6_000 - 100 * HUNG_FOR:,} of 6,000 probes" in shown
    assert "0 of 60" in shown


def test_both_legs_are_drawn_as_silver_has_them(lake: Served) -> None:
    rows = read_once(str(lake.root), tables.BROKER_MINUTES).to_pylist()
    filled = lake.fill(broker.PAGE, BrokerView(ORDERS, 2, HOUR))
    for leg in Leg:
        own = sorted(
            (row["minute"], row["latency_p99_us"], row["latency_p99_censored_us"])
            for row in rows
            if (row["cluster_id"], row["broker_id"], row["leg"]) == (ORDERS, 2, leg)
            and HOUR.start <= row["minute"] < HOUR.end
        )
        _, censored, p99, _ = filled[f"broker-{leg}.figure"].data
        assert list(p99.y) == [None if us is None else us / 1000 for _, us, _ in own]
        assert list(censored.y) == [us / 1000 for *_, us in own]


def test_failures_are_stacked_by_leg_and_reason(lake: Served) -> None:
    figure = lake.fill(broker.PAGE, BrokerView(ORDERS, 2, HOUR))["broker-failures.figure"]
    assert {(bar.name, sum(bar.y)) for bar in figure.data if bar.type == "bar"} == {
        ("client: timed_out", 20 + 4 * (HUNG_FOR - 1)),
        ("leader: timed_out", 100 * HUNG_FOR),
    }
    quiet = lake.fill(broker.PAGE, BrokerView(PAYMENTS, 2, HOUR))["broker-failures.figure"]
    assert [trace.type for trace in quiet.data] == ["scatter"]
    assert quiet.layout.annotations[0].text == "No probe failed."


def test_a_coarser_step_keeps_the_worst_and_sums_failures(lake: Served) -> None:
    long = Span(NOW - timedelta(days=2), NOW)
    rows = lake.context.lake.broker_detail(ORDERS, 2, long)
    model = broker_minutes(rows, 2, long)
    assert model.grid.step_min == 10
    client, leader = model.legs
    assert sum(sum(counts) for counts in leader.failures.values()) == 100 * HUNG_FOR
    own = [us for us in rows["latency_p99_us"].to_pylist() if us is not None]
    assert max(ms for leg in (client, leader) for ms in leg.p99_ms if ms is not None) == max(own) / 1000


def test_a_gap_is_a_gap(lake: Served) -> None:
    model = broker_minutes(lake.context.lake.broker_detail(PAYMENTS, 1, HOUR), 1, HOUR)
    start, end = (NOW - timedelta(minutes=back) for back in (41, 29))
    assert model.legs[0].gaps == (Span(start, end),)


def test_its_history_is_its_own(lake: Served) -> None:
    history = lake.fill(broker.PAGE, BrokerView(ORDERS, 2, HOUR))["broker-history.children"]
    assert "▲ open for 8 min" in said(history)
    none = lake.fill(broker.PAGE, BrokerView(SEARCH, 1, HOUR))["broker-history.children"]
    assert "Nothing was ever found of this broker." in said(none)


def test_led_by_another_is_counted(lake: Served) -> None:
    rows = lake.context.lake.broker_detail(ORDERS, 2, HOUR)
    numbers = broker_minutes(rows, 1, HOUR).numbers  # as if broker 1 were the home that broker 2 led
    assert (numbers[-1].value, numbers[-1].notes) == ("60 of 60", ("by broker 2",))


def test_an_unknown_broker_is_said_to_be_unknown(lake: Served) -> None:
    for view in (BrokerView(ORDERS, 77, HOUR), BrokerView("nobody", 1, HOUR)):
        assert isinstance(lake.fill(broker.PAGE, view), Notice)


def test_the_file_has_both_legs_minutes(lake: Served) -> None:
    part = broker.PAGE.part("failures")
    assert part is not None
    assert len(part.rows(BrokerView(ORDERS, 2, HOUR), lake.context).rows) == 120


def test_reasons_say_where_to_look_and_since_when(lake: Served) -> None:
    rows = lake.context.lake.broker_detail(ORDERS, 2, HOUR).to_pylist()
    for row in rows:
        row["failures"] = [
            ("NOT_LEADING" if row["leg"] == "leader" else code, n) for code, n in row["failures"]
        ]
    table = pa.Table.from_pylist(rows, schema=lake.context.lake.broker_detail(ORDERS, 2, HOUR).schema)
    led, late = broker_minutes(table, 2, HOUR).reasons
    assert (led.code, led.says, led.probes) == (
        "NOT_LEADING",
        "the broker was out of sync or silent, and could not lead",
        {Leg.CLIENT: 0, Leg.LEADER: 100 * HUNG_FOR},
    )
    assert (late.code, late.says) == ("timed_out", "–")
    assert (led.first, led.last) == (NOW - HUNG_FOR * MINUTE, NOW - MINUTE)
    shown = said(lake.fill(broker.PAGE, BrokerView(PAYMENTS, 2, HOUR))["broker-reasons.children"])
    assert shown == "No probe failed in the minutes shown."


def test_what_failed_in_a_minute_of_few_attempts_is_drawn_too(lake: Served) -> None:
    rows = lake.context.lake.broker_detail(ORDERS, 2, HOUR)
    few = [row | {"measured": False} for row in rows.to_pylist()]
    model = broker_minutes(pa.Table.from_pylist(few, schema=rows.schema), 2, HOUR)
    assert {leg.leg: sum(leg.failures["timed_out"]) for leg in model.legs} == {
        Leg.CLIENT: 20 + 4 * (HUNG_FOR - 1),
        Leg.LEADER: 100 * HUNG_FOR,
    }
