"""A minute's page shows what silver and bronze hold about it, sample by sample."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from shutil import rmtree

import pytest

from fleetgauge_core import tables
from fleetgauge_core.contract import Leg
from fleetgauge_dashboards.links import (
    MinuteView,
)
from fleetgauge_dashboards.pages import minute
from fleetgauge_dashboards.pages.page import PageNotice
from fleetgauge_dashboards.reader import read_once
from fleetgauge_dashboards.units import format_milliseconds
from fleetgauge_dashboards.views.minute import SOURCE_TEXTS
from fleetgauge_dashboards.views.samples import available_minutes
from tests.browser.lake import ATTEMPTS, ORDERS, PAYMENTS, PAYMENTS_GAP, put
from tests.unit.dashboards.served import NOW, LakeFixture, open_lake, visible_text


@pytest.fixture
def lake(tmp_path: Path) -> LakeFixture:
    return open_lake(tmp_path)


def test_the_table_shows_the_values_of_silver(lake: LakeFixture) -> None:
    rows = read_once(str(lake.root), tables.BROKER_MINUTES).to_pylist()
    for age_min in (1, 8, 9, 77, 180):
        at = NOW - timedelta(minutes=age_min)
        shown = visible_text(lake.fill(minute.PAGE, MinuteView(ORDERS, at))["minute-table.children"])
        rows_of_minute = [row for row in rows if (row["cluster_id"], row["minute"]) == (ORDERS, at)]
        assert len(rows_of_minute) == 6
        for row in rows_of_minute:
            p50, p99 = (format_milliseconds(row[name]) for name in ("latency_p50_us", "latency_p99_us"))
            censored = format_milliseconds(row["latency_p99_censored_us"])
            counted = f"{row['succeeded']:,} of {row['attempted']:,}"
            failed = (
                ", ".join(f"{code} {failed_count}" for code, failed_count in row["failures"] or ()) or "–"
            )
            line = f"broker {row['broker_id']} {row['leg']} {counted} {failed} {p50} {p99} {censored}"
            assert line in shown


def test_each_sample_is_a_point_and_each_failure_a_cross(lake: LakeFixture) -> None:
    figure = lake.fill(minute.PAGE, MinuteView(ORDERS, lake.known.hung_at))["minute-client.figure"]
    points, crosses, p99 = figure.data
    assert len(points.y) == 3 * (ATTEMPTS - 20)
    assert list(crosses.y) == [10_000.0] * 60
    assert len([y for y in p99.y if y is not None]) == 6
    assert list(points.x) == sorted(points.x)


def test_the_worst_broker_comes_first_in_each_leg(lake: LakeFixture) -> None:
    shown = visible_text(
        lake.fill(minute.PAGE, MinuteView(ORDERS, lake.known.hung_at))["minute-table.children"]
    )
    assert shown.index("broker 2 leader") < shown.index("broker 1 leader")
    assert shown.index("broker 3 client") < shown.index("broker 2 leader")


def test_expired_samples_are_reported_and_the_minutes_numbers_remain(lake: LakeFixture) -> None:
    at = NOW - timedelta(minutes=5)
    shown = lake.fill(minute.PAGE, MinuteView(PAYMENTS, at))
    assert shown["minute-source.children"] == SOURCE_TEXTS["expired"]
    assert shown["minute-charts.style"] == {"display": "none"}
    assert "3 of 3" in visible_text(shown["minute-cards.children"])
    table = visible_text(shown["minute-table.children"])
    rows = read_once(str(lake.root), tables.BROKER_MINUTES).to_pylist()
    rows_of_minute = [row for row in rows if (row["cluster_id"], row["minute"]) == (PAYMENTS, at)]
    assert len(rows_of_minute) == 6
    for row in rows_of_minute:
        us = (row[f"latency_{name}_us"] for name in ("p50", "p99", "p99_censored", "max"))
        counted = f"{row['succeeded']:,} of {row['attempted']:,}"
        line = f"broker {row['broker_id']} {row['leg']} {counted} – {' '.join(map(format_milliseconds, us))}"
        assert line in table
    client = [row for row in rows_of_minute if row["leg"] == "client"]
    slowest = max(client, key=lambda row: int(row["latency_p99_censored_us"]))
    assert table.index(f"broker {slowest['broker_id']} client") == table.index("broker ")


def test_a_minute_without_samples_lists_the_unmeasured_brokers(lake: LakeFixture) -> None:
    at = NOW - timedelta(minutes=PAYMENTS_GAP[0])
    shown = visible_text(lake.fill(minute.PAGE, MinuteView(PAYMENTS, at))["minute-table.children"])
    assert shown.count("0 of 0 – – – not measured –") == 6


def test_evidence_is_shown_after_the_records_expired(lake: LakeFixture) -> None:
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
    assert shown["minute-source.children"] == SOURCE_TEXTS["evidence"]
    line = "broker 2 client 99 of 100 timed_out 1 50.0 ms 99.0 ms 99.0 ms 99.0 ms, 98.0 ms"
    assert line in visible_text(shown["minute-table.children"])


def test_an_unknown_minute_shows_a_notice(lake: LakeFixture) -> None:
    for view in (MinuteView("nobody", NOW), MinuteView(ORDERS, NOW + timedelta(days=900))):
        answer = lake.fill(minute.PAGE, view)
        assert isinstance(answer, PageNotice)
        assert "No data of" in answer.title


def test_the_downloaded_file_has_a_row_for_each_probe(lake: LakeFixture) -> None:
    view = MinuteView(ORDERS, lake.known.hung_at)
    legs = {
        leg: part.read_rows(view, lake.context).rows for leg in Leg if (part := minute.PAGE.get_part(leg))
    }
    assert [len(rows) for rows in legs.values()] == [3 * ATTEMPTS, 3 * ATTEMPTS]
    assert sum(row["outcome"] == "timed_out" for row in legs[Leg.CLIENT]) == 60
    assert sum(row["outcome"] == "timed_out" for row in legs[Leg.LEADER]) == 100
    all_rows = [row for rows in legs.values() for row in rows]
    assert all((row["latency_us"] is None) == (row["outcome"] != "success") for row in all_rows)


def test_a_minute_with_only_late_vantages_is_not_reported_as_expired(lake: LakeFixture) -> None:
    view = MinuteView(ORDERS, NOW - timedelta(minutes=5))
    late = LakeFixture(
        lake.root, lake.known, replace(lake.context, fleet=replace(lake.context.fleet, agent_late_us=-1))
    )
    assert late.fill(minute.PAGE, view)["minute-source.children"] == SOURCE_TEXTS["late"]


def test_evidence_fills_in_for_expired_minutes() -> None:
    def evidence_row(at: int) -> dict[str, object]:
        sample = {"broker_id": 1, "leg": "client", "attempted": 100, "e2e_us": [at] * 100, "failures": {}}
        return {"minute": NOW + timedelta(minutes=at), **sample}

    silver = [{"minute": NOW + timedelta(minutes=at), "latency_p99_us": -1} for at in (2, 3)]
    available = available_minutes(silver, [evidence_row(1), evidence_row(2)])
    assert [(row["minute"], row["latency_p99_us"]) for row in available] == [
        (NOW + timedelta(minutes=at), us) for at, us in ((1, 1), (2, -1), (3, -1))
    ]
