"""Each chart as a table, CSV file and picture; segments of a fleet, and the view for a wall screen."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import expect

from fleetgauge_core import tables
from fleetgauge_dashboards.links import ClusterView, DisplayOptions, FleetView, Span, TableView, href
from fleetgauge_dashboards.served_fleets import ServedFleet
from tests.browser.conftest import OpenPage, ServeLake, Site
from tests.browser.lake import ORDERS, PAYMENTS, LakeTimes, put, write

Live = tuple[Site, LakeTimes]
PNG = b"\x89PNG\r\n\x1a\n"


def test_the_table_behind_a_chart_can_be_sorted_and_links_back(live: Live, open_page: OpenPage) -> None:
    site, _ = live
    page = open_page(f"{site.url}{href(ClusterView(ORDERS))}")
    page.locator("#cluster-latency-tools").get_by_role("link", name="latency as a table").click()
    expect(page.locator("h1")).to_have_text("Cluster-minutes")
    rows = page.locator(".ag-center-cols-container [row-index]")
    expect(rows.first).to_be_visible()
    expect(page.locator("#numbers-title")).to_contain_text("60 rows")
    page.get_by_role("columnheader", name="latency_p99_censored_us").click()
    page.get_by_role("columnheader", name="latency_p99_censored_us").click()
    expect(page.locator("[row-index='0'] [col-id='latency_p99_censored_us']")).to_have_text("10000000")
    again = open_page(page.url)
    expect(again.locator("#numbers-title")).to_contain_text("60 rows")
    page.get_by_role("link", name="Back to the page").click()
    expect(page.locator("h1")).to_contain_text(f"{ORDERS}, week of")


def test_links_keep_the_display_options_of_the_url(live: Live, open_page: OpenPage) -> None:
    site, times = live
    span = Span(times.now - timedelta(minutes=9), times.now - timedelta(minutes=2))
    view = ClusterView(ORDERS, times.week, span, display=DisplayOptions(zone="Europe/Berlin"))
    page = open_page(f"{site.url}{href(view)}")
    twin = page.locator("#cluster-latency-tools").get_by_role("link", name="latency as a table")
    expect(twin).to_have_attribute("href", href(TableView(view, "latency")))
    twin.click()
    expect(page.locator("#numbers-title")).to_contain_text("7 rows")
    back = page.get_by_role("link", name="Back to the page")
    expect(back).to_have_attribute("href", href(view))
    back.click()
    expect(page).to_have_url(f"{site.url}{href(view)}")
    odd = FleetView(search="a&b%c#d?e+f")
    searched = open_page(f"{site.url}{href(odd)}")
    zones = searched.get_by_role("navigation", name="Time zone")
    expect(zones.get_by_role("link", name="UTC")).to_have_attribute("href", href(odd))
    searched.get_by_role("link", name="View for a wall screen").click()
    expect(searched).to_have_url(f"{site.url}{href(replace(odd, display=DisplayOptions(wall=True)))}")


def test_a_chart_can_be_downloaded_as_png(live: Live, open_page: OpenPage) -> None:
    site, _ = live
    page = open_page(site.url)
    expect(page.locator("#fleet-latency .scatterlayer .trace").first).to_be_visible()
    with page.expect_download() as download:
        page.locator("[data-picture='fleet-latency']").click()
    assert download.value.suggested_filename == "fleet-latency.png"
    assert Path(download.value.path()).read_bytes().startswith(PNG)


def test_the_rows_behind_a_chart_can_be_downloaded_as_csv(live: Live, open_page: OpenPage) -> None:
    site, _ = live
    page = open_page(site.url)
    with page.expect_download() as download:
        page.locator("#fleet-latency-tools").get_by_role("link", name="CSV").click()
    assert download.value.suggested_filename == "fleet-latency.csv"
    assert Path(download.value.path()).read_text().count("\n") == 7


@pytest.fixture
def divided(tmp_path: Path, serve_lake: ServeLake) -> Site:
    times = write(tmp_path, datetime.now(UTC))
    rows = [
        {
            "week": times.week - timedelta(days=7 * back),
            "metric": metric,
            "segment": "region",
            "segment_value": value,
            "revision": 0,
            "median": number,
            "p90": number,
            "p99": number,
            "clusters": 1,
            "clusters_excluded": 0,
            "closed": back > 0,
        }
        for back in range(6)
        for value, factor in (("eu-west-1", 2.0), ("us-east-1", 1.0))
        for metric, number in (
            ("latency_p99_us", 21_500 * factor),
            ("availability_ratio", 1 - factor / 4_000),
        )
    ]
    put(tmp_path, tables.FLEET_WEEKS, rows)
    segments = {
        ORDERS: frozenset({("region", "eu-west-1"), ("kafka", "4.3.1")}),
        PAYMENTS: frozenset({("region", "us-east-1")}),
    }
    fleet = ServedFleet("shop", str(tmp_path), segments=segments)
    return serve_lake(tmp_path / "none", times.now + timedelta(seconds=30), beside=[fleet])


def test_segment_values_are_compared_and_link_to_their_clusters(divided: Site, open_page: OpenPage) -> None:
    page = open_page(f"{divided.url}{href(FleetView(display=DisplayOptions('shop')))}")
    first = page.locator(".ag-center-cols-container [row-index='0']")
    expect(first.locator("[col-id='version']")).to_have_text("4.3.1")
    page.get_by_role("navigation", name="Segment").get_by_role("link", name="by region").click()
    rows = page.get_by_role("region", name="By region").locator("tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text("43.0 ms")
    expect(page.locator("#fleet-latency .legendtext")).to_have_text(["eu-west-1", "us-east-1"])
    rows.get_by_role("link", name="us-east-1").click()
    expect(page.locator("h1")).to_contain_text("Fleet, region us-east-1, week of")
    expect(page.locator(".ag-center-cols-container [row-index]")).to_have_count(1)
    expect(page.locator("#fleet-cards")).to_contain_text("21.5 ms")
    expect(page).to_have_url(re.compile(r"by=region&value=us-east-1$"))
    again = open_page(page.url)
    expect(again.locator("h1")).to_contain_text("Fleet, region us-east-1")


def test_an_unknown_segment_shows_a_notice(divided: Site, open_page: OpenPage) -> None:
    page = open_page(f"{divided.url}{href(FleetView(by='planet', display=DisplayOptions('shop')))}")
    expect(page.locator(".fg-empty")).to_contain_text("No segment named planet")
    expect(page.locator(".fg-empty")).to_contain_text("region")


def test_a_wall_view_has_no_controls_and_escape_leaves_it(live: Live, open_page: OpenPage) -> None:
    site, _ = live
    page = open_page(
        f"{site.url}{href(FleetView(display=DisplayOptions(wall=True)))}", width=1920, height=1080
    )
    expect(page.locator("#fleet-cards")).to_contain_text("43.1 ms")
    expect(page.locator("#banners")).to_contain_text("BROKER_DOWN: orders-eu broker 2")
    expect(page.locator("#nav")).to_be_hidden()
    expect(page.locator(".fg-tools").first).to_be_hidden()
    assert page.evaluate("document.documentElement.scrollWidth") <= 1920
    page.keyboard.press("Escape")
    expect(page.locator("#nav")).to_be_visible()
    expect(page).to_have_url(f"{site.url}/")


def test_the_slash_key_opens_the_search_from_every_page(live: Live, open_page: OpenPage) -> None:
    site, _ = live
    page = open_page(f"{site.url}/alerts")
    expect(page.locator("h1")).to_contain_text("Alerts")
    page.keyboard.press("/")
    expect(page.locator("h1")).to_contain_text("Fleet, week of")
    expect(page.get_by_role("textbox", name="Search for clusters")).to_be_visible()
    page.keyboard.press("/")
    expect(page.get_by_role("textbox", name="Search for clusters")).to_be_focused()
