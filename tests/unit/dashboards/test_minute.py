"""A minute's page says what silver and bronze hold of it, sample by sample."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from shutil import rmtree

import pytest

from fleetgauge_core import tables
from fleetgauge_dashboards.links import Leg, MinuteView
from fleetgauge_dashboards.pages import minute
from fleetgauge_dashboards.pages.page import Notice
from fleetgauge_dashboards.reader import read_once
from fleetgauge_dashboards.units import milliseconds
from fleetgauge_dashboards.views.minute import SOURCES
from fleetgauge_dashboards.views.samples import held_minutes
from tests.browser.lake import ATTEMPTS, ORDERS, PAYMENTS, PAYMENTS_GAP, put
from tests.unit.dashboards.served import NOW, Served, said, served


@pytest.fixture
def lake(tmp_path: Path) -> Served:
    return served(tmp_path)


def test_the_numbers_are_silvers(lake: Served) -> None:
    rows = read_once(str(lake.root), tables.BROKER_MINUTES).to_pylist()
    for ago in (1, 8, 9, 77, 180):
        at = NOW - timedelta(minutes=ago)
        shown = said(lake.fill(minute.PAGE, MinuteView(ORDERS, at))["minute-table.children"])
        own = [row for row in rows if (row["cluster_id"], row["minute"]) == (ORDERS, at)]
        assert len(own) == 6
        for row in own:
            p50, p99 = (milliseconds(row[name]) for name in ("latency_p50_us", "latency_p99_us"))
            censored = milliseconds(row["latency_p99_censored_us"])
            counted = f"{row['succeeded']:,} of {row['attempted']:,}"
            failed = ", ".join(f"{code} {times}" for code, times in row["failures"] or ()) or "–"
            line = f"broker {row['broker_id']} {row['leg']} {counted} {failed} {p50} {p99} {censored}"
            assert line in shown


def test_each_sample_is_a_point_and_each_failure_a_cross(lake: Served) -> None:
    figure = lake.fill(minute.PAGE, MinuteView(ORDERS, lake.known.hung_at))["minute-client.figure"]
    points, crosses, p99 = figure.data
    assert len(points.y) == 3 * (ATTEMPTS - 20)
    assert list(crosses.y) == [10_000.0] * 60
    assert len([y for y in p99.y if y is not None]) == 6
    assert list(points.x) == sorted(points.x)


def test_the_worst_broker_comes_first_in_each_leg(lake: Served) -> None:
    shown = said(lake.fill(minute.PAGE, MinuteView(ORDERS, lake.known.hung_at))["minute-table.children"])
    assert shown.index("broker 2 leader") < shown.index("broker 1 leader")
    assert shown.index("broker 3 client") < shown.index("broker 2 leader")


def test_what_has_expired_says_so_and_keeps_the_minutes_numbers(lake: Served) -> None:
    at = NOW - timedelta(minutes=5)
    shown = lake.fill(minute.PAGE, MinuteView(PAYMENTS, at))
    assert shown["minute-source.children"] == SOURCES["expired"]
    assert shown["minute-charts.style"] == {"display": "none"}
    assert "3 of 3" in said(shown["minute-cards.children"])
    table = said(shown["minute-table.children"])
    rows = read_once(str(lake.root), tables.BROKER_MINUTES).to_pylist()
    own = [row for row in rows if (row["cluster_id"], row["minute"]) == (PAYMENTS, at)]
    assert len(own) == 6
    for row in own:
        us = (row[f"latency_{name}_us"] for name in ("p50", "p99", "p99_censored", "max"))
        counted = f"{row['succeeded']:,} of {row['attempted']:,}"
        line = f"broker {row['broker_id']} {row['leg']} {counted} – {' '.join(map(milliseconds, us))}"
        assert line in table
    client = [row for row in own if row["leg"] == "client"]
    slowest = max(client, key=lambda row: int(row["latency_p99_censored_us"]))
    assert table.index(f"broker {slowest['broker_id']} client") == table.index("broker ")


def test_a_minute_without_samples_says_who_was_not_measured(lake: Served) -> None:
    at = NOW - timedelta(minutes=PAYMENTS_GAP[0])
    shown = said(lake.fill(minute.PAGE, MinuteView(PAYMENTS, at))["minute-table.children"])
    assert shown.count("0 of 0 – – – not measured –") == 6


def test_evidence_outlives_the_records(lake: Served) -> None:
    at = NOW - timedelta(minutes=5)
    kept = {
        "cluster_id": ORDERS,
        "week": lake.known.week,
        "minute": at,
        "broker_id": 2,
        "leg": "client",
        "attempted": 100,
        "e2e_us": [1_000 * (k + 1) for k in range(99)],
        "failures": {"timed_out": 1},
        "why": "latency_p99_us",
    }
    put(lake.root, tables.EVIDENCE, [kept])
    rmtree(lake.root / tables.PROBE_MINUTES.path)
    shown = lake.fill(minute.PAGE, MinuteView(ORDERS, at))
    assert shown["minute-source.children"] == SOURCES["evidence"]
    line = "broker 2 client 99 of 100 timed_out 1 50.0 ms 99.0 ms 99.0 ms 99.0 ms, 98.0 ms"
    assert line in said(shown["minute-table.children"])


def test_a_minute_of_nobody_leads_on(lake: Served) -> None:
    for view in (MinuteView("nobody", NOW), MinuteView(ORDERS, NOW + timedelta(days=900))):
        answer = lake.fill(minute.PAGE, view)
        assert isinstance(answer, Notice)
        assert "Nothing is known of" in answer.title


def test_the_file_has_a_line_a_probe(lake: Served) -> None:
    view = MinuteView(ORDERS, lake.known.hung_at)
    legs = {leg: part.rows(view, lake.context).rows for leg in Leg if (part := minute.PAGE.part(leg))}
    assert [len(rows) for rows in legs.values()] == [3 * ATTEMPTS, 3 * ATTEMPTS]
    assert sum(row["outcome"] == "timed_out" for row in legs[Leg.CLIENT]) == 60
    assert sum(row["outcome"] == "timed_out" for row in legs[Leg.LEADER]) == 100
    every = [row for rows in legs.values() for row in rows]
    assert all((row["latency_us"] is None) == (row["outcome"] != "success") for row in every)


def test_a_minute_of_late_vantages_alone_has_not_expired(lake: Served) -> None:
    view = MinuteView(ORDERS, NOW - timedelta(minutes=5))
    late = Served(
        lake.root, lake.known, replace(lake.context, fleet=replace(lake.context.fleet, agent_late_us=-1))
    )
    assert late.fill(minute.PAGE, view)["minute-source.children"] == SOURCES["late"]


def test_of_a_half_expired_week_evidence_fills_in() -> None:
    def kept(at: int) -> dict[str, object]:
        sample = {"broker_id": 1, "leg": "client", "attempted": 100, "e2e_us": [at] * 100, "failures": {}}
        return {"minute": NOW + timedelta(minutes=at), **sample}

    silver = [{"minute": NOW + timedelta(minutes=at), "latency_p99_us": -1} for at in (2, 3)]
    held = held_minutes(silver, [kept(1), kept(2)])
    assert [(row["minute"], row["latency_p99_us"]) for row in held] == [
        (NOW + timedelta(minutes=at), us) for at, us in ((1, 1), (2, -1), (3, -1))
    ]
