"""Scripts in a lake or a URL are shown as text; a broken table is reported while the rest works."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from shutil import rmtree
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import urlopen

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from playwright.sync_api import expect

from fleetgauge_core import tables
from fleetgauge_dashboards.links import (
    AlertsView,
    BrokerView,
    ClusterView,
    FleetView,
    MinuteView,
    QualityView,
    ReviewView,
    TableView,
    View,
    WhyView,
    href,
)
from fleetgauge_dashboards.reader import LakeReader
from fleetgauge_dashboards.served_fleets import ServedFleet
from tests.browser.conftest import OpenPage, ServeLake, Site
from tests.browser.lake import ORDERS, put, write

HOSTILE = "<img src=x onerror=\"document.title='owned'\">'; DROP TABLE clusters;--"
EVERY_PAGE: tuple[View, ...] = (
    FleetView(),
    ClusterView(HOSTILE),
    BrokerView(HOSTILE, 1),
    MinuteView(HOSTILE, datetime(2026, 3, 5, 12, 0, tzinfo=UTC)),
    WhyView(HOSTILE),
    AlertsView(HOSTILE),
    ReviewView(),
    QualityView(),
    TableView(FleetView(), "clusters"),
)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory, serve_lake: ServeLake) -> Site:
    """A lake in which names, reasons and evidence are scripts."""
    root = tmp_path_factory.mktemp("hostile")
    times = write(root, datetime.now(UTC))
    week = {
        "cluster_id": HOSTILE,
        "week": times.week,
        "revision": 2,
        "revision_reason": HOSTILE,
        "closed": False,
    }
    put(root, tables.CLUSTER_WEEKS, [{**week, "coverage": 1.0, "computed_at": times.now}])
    at = times.now - timedelta(minutes=3)
    row = {"cluster_id": HOSTILE, "broker_id": 1, "leg": "client", "minute": at, "day": at.date()}
    failures = {HOSTILE: 3}
    counts = {"attempted": 100, "succeeded": 97, "latency_p99_us": 9, "latency_p99_censored_us": 9}
    put(root, tables.BROKER_MINUTES, [{**row, **counts, "measured": True, "failures": failures}])
    event = {"event_id": "hostile", "fingerprint": HOSTILE, "cluster_id": HOSTILE, "broker_id": 1, "at": at}
    states = {"from_state": "HEALTHY", "to_state": "BROKER_DOWN", "kind": HOSTILE, "evidence": HOSTILE}
    put(root, tables.HEALTH_EVENTS, [event | states])
    check = {"check_id": "hostile", "at": at, "batch": HOSTILE, "suite": HOSTILE, "expectation": HOSTILE}
    put(root, tables.QUALITY, [{**check, "success": False, "observed": HOSTILE}])
    put(root, tables.QUARANTINE, [{"source": "s", "value": b"", "reason": HOSTILE, "ingested_at": at}])
    return serve_lake(root, times.now + timedelta(seconds=30))


@pytest.mark.parametrize("view", EVERY_PAGE, ids=lambda view: type(view).__name__)
def test_a_script_in_a_name_is_shown_as_text(hostile: Site, open_page: OpenPage, view: View) -> None:
    page = open_page(f"{hostile.url}{href(view)}")
    expect(page.locator("h1, .fg-empty h2").first).to_be_visible()
    expect(page.locator("main")).to_contain_text("<img src=x")
    assert page.locator("img[src='x']").count() == 0
    assert page.title() != "owned"


@pytest.mark.parametrize(
    "address",
    [
        "/cluster/" + quote("../../../../etc/passwd", safe=""),
        "/cluster/c?week=' OR 1=1--&from=%00&to=%FF",
        "/cluster/c/minute/%2e%2e%2f",
        "/?week=2026-13-45&q=" + quote("<script>alert(1)</script>"),
        "/alerts?cluster=" + quote("' UNION SELECT 1") + "&alert=%2e%2e",
        "/?fleet=" + quote("file:///etc/passwd"),
        "/review?week=" + 3000 * "9",
        "/alerts?zone=" + quote("../../../etc/passwd"),
        "/?by=" + quote("' OR 1=1") + "&value=x",
        "/table?of=" + quote("file:///etc/passwd") + "&part=latency",
        "/table?of=" + quote("/table?of=/&part=latency") + "&part=latency",
    ],
)
def test_a_malicious_url_gets_a_notice(hostile: Site, open_page: OpenPage, address: str) -> None:
    page = open_page(hostile.url + address)
    expect(page.locator("h1, .fg-empty h2").first).to_be_visible()
    text = page.locator("main").inner_text()
    assert "root:" not in text
    assert "Traceback" not in text


#: The table that each page requires.
NEEDED = {
    FleetView(): tables.CLUSTER_WEEKS,
    ClusterView(ORDERS): tables.BROKER_MINUTES,
    BrokerView(ORDERS, 2): tables.BROKER_MINUTES,
    AlertsView(): tables.HEALTH_EVENTS,
    ReviewView(): tables.CLUSTER_WEEKS,
    QualityView(): tables.QUALITY,
    WhyView(ORDERS): tables.CLUSTER_MINUTES,
}


@pytest.mark.parametrize("view", NEEDED, ids=lambda view: type(view).__name__)
def test_a_corrupt_delta_log_shows_an_error_and_keeps_the_rendered_page(
    tmp_path: Path, serve_lake: ServeLake, open_page: OpenPage, view: View
) -> None:
    times = write(tmp_path, datetime.now(UTC))
    page = open_page(f"{serve_lake(tmp_path, times.now + timedelta(seconds=30)).url}{href(view)}")
    expect(page.locator("h1")).to_be_visible()
    heading = page.locator("h1").inner_text()
    log = tmp_path / NEEDED[view].path / "_delta_log"
    (log / "00000000000000000001.json").write_text("{ this is no commit\n")
    expect(page.locator(".fg-empty--bad")).to_contain_text(NEEDED[view].path)
    expect(page.locator("h1")).to_have_text(heading)
    expect(page.locator("h1")).to_be_visible()


@pytest.mark.parametrize("view", NEEDED, ids=lambda view: type(view).__name__)
def test_a_missing_table_shows_a_banner_on_a_working_page(
    tmp_path: Path, serve_lake: ServeLake, open_page: OpenPage, view: View
) -> None:
    times = write(tmp_path, datetime.now(UTC))
    rmtree(tmp_path / NEEDED[view].path)
    site, missing = serve_lake(tmp_path, times.now + timedelta(seconds=30)), NEEDED[view].path
    page = open_page(f"{site.url}{href(view)}")
    expect(page.locator("h1, .fg-empty h2").first).to_be_visible()
    assert "Traceback" not in page.locator("main").inner_text()
    if NEEDED[view] is not tables.QUALITY:
        expect(page.locator("#banners")).to_contain_text(f"{missing}: this table does not exist")
        with pytest.raises(HTTPError, match="503"):
            urlopen(f"{site.url}/readyz?strict", timeout=5)


def test_a_missing_alert_table_is_not_shown_as_no_alerts(
    tmp_path: Path, serve_lake: ServeLake, open_page: OpenPage
) -> None:
    times = write(tmp_path, datetime.now(UTC))
    rmtree(tmp_path / tables.HEALTH_EVENTS.path)
    site = serve_lake(tmp_path, times.now + timedelta(seconds=30))
    page = open_page(site.url)
    expect(page.locator(".ag-center-cols-container [row-index='0']")).to_contain_text("? alerts unknown")
    expect(open_page(f"{site.url}{href(ClusterView(ORDERS))}").locator("#cluster-cards")).to_contain_text(
        "ms"
    )
    alerts = open_page(f"{site.url}{href(AlertsView())}")
    expect(alerts.locator(".fg-empty--bad")).to_contain_text("ops/health_events: the table does not exist")
    expect(alerts.locator("main")).not_to_contain_text("No open alert")


def test_an_unreadable_fleet_does_not_show_another_fleets_values(
    tmp_path: Path, serve_lake: ServeLake, open_page: OpenPage
) -> None:
    times = write(tmp_path / "a", datetime.now(UTC))
    write(tmp_path / "b", datetime.now(UTC))
    log = tmp_path / "b" / tables.CLUSTER_WEEKS.path / "_delta_log"
    (log / "00000000000000000001.json").write_text("{ this is no commit\n")
    other = ServedFleet("b", str(tmp_path / "b"))
    page = open_page(serve_lake(tmp_path / "a", times.now + timedelta(seconds=30), beside=[other]).url)
    expect(page.locator("h1")).to_be_visible()
    page.get_by_role("navigation", name="Fleets").get_by_role("link", name="b").click()
    expect(page.locator(".fg-empty--bad")).to_contain_text(tables.CLUSTER_WEEKS.path)
    expect(page.locator("h1")).to_be_hidden()


def test_a_failing_page_shows_an_error_without_details(
    tmp_path: Path, serve_lake: ServeLake, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = write(tmp_path, datetime.now(UTC))
    monkeypatch.setattr(LakeReader, "latency_history", lambda *_: 1 // 0)
    page = open_page(serve_lake(tmp_path, times.now + timedelta(seconds=30)).url)
    expect(page.locator(".fg-empty--bad")).to_contain_text("This page could not be rendered")
    expect(page.locator("main")).not_to_contain_text("ZeroDivisionError")


def test_a_missing_column_is_shown_as_unknown(
    tmp_path: Path, serve_lake: ServeLake, open_page: OpenPage
) -> None:
    times = write(tmp_path, datetime.now(UTC))
    path = tmp_path / tables.CLUSTER_WEEKS.path
    rmtree(path)
    row = {"cluster_id": ORDERS, "week": times.week, "revision": 0, "latency_p99_us": 43_100}
    write_deltalake(str(path), pa.Table.from_pylist([row]))
    site = serve_lake(tmp_path, times.now + timedelta(seconds=30))
    page = open_page(f"{site.url}{href(ClusterView(ORDERS))}")
    expect(page.locator("#cluster-cards")).to_contain_text("43.1 ms")
    expect(page.locator("#cluster-cards")).to_contain_text("unknown")
    again = open_page(site.url)
    expect(again.locator(".ag-center-cols-container [row-index='0']")).to_contain_text("43.1 ms")
