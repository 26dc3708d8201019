"""Times are shown in the time zone of the fleet, in UTC or in that of the browser; the URL has the zone."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import expect

from fleetgauge_dashboards.links import ClusterView, DisplayOptions, MinuteView, Span, href
from fleetgauge_dashboards.served_fleets import ServedFleet
from tests.browser.conftest import OpenPage, ServeLake, Site
from tests.browser.lake import ORDERS, LakeTimes, write


@pytest.fixture
def berlin(tmp_path: Path, serve_lake: ServeLake) -> tuple[Site, LakeTimes]:
    """A fleet whose weeks are in the time zone of Berlin."""
    times = write(tmp_path, datetime.now(UTC))
    fleet = ServedFleet("berlin", str(tmp_path), week_zone="Europe/Berlin")
    return serve_lake(tmp_path / "none", times.now + timedelta(seconds=30), beside=[fleet]), times


def test_times_are_in_the_fleets_time_zone_by_default(
    berlin: tuple[Site, LakeTimes], open_page: OpenPage
) -> None:
    site, times = berlin
    at = times.now - timedelta(minutes=4)
    page = open_page(
        f"{site.url}{href(MinuteView(ORDERS, at, display=DisplayOptions('berlin')))}", zone="America/New_York"
    )
    own = at.astimezone(ZoneInfo("Europe/Berlin"))
    expect(page.locator("h1")).to_have_text(f"{ORDERS}, minute {own:%a %d %b %Y %H:%M %Z}")
    zones = page.get_by_role("navigation", name="Time zone")
    expect(zones.get_by_role("link")).to_have_text(["Europe/Berlin", "UTC", "America/New_York"])
    expect(zones.locator("[aria-current=true]")).to_have_text("Europe/Berlin")
    zones.get_by_role("link", name="America/New_York").click()
    there = at.astimezone(ZoneInfo("America/New_York"))
    expect(page.locator("h1")).to_have_text(f"{ORDERS}, minute {there:%a %d %b %Y %H:%M %Z}")
    expect(page).to_have_url(re.compile(r"\?fleet=berlin&zone=America/New_York$"))
    page.get_by_role("link", name="Cluster at that time").click()
    expect(page.locator("#cluster-span")).to_contain_text(" America/New_York, fixed")
    expect(page.locator("#clock")).to_have_text(re.compile(r"^\d\d:\d\d:\d\d$"))


def test_a_url_keeps_its_time_zone_in_every_browser(
    berlin: tuple[Site, LakeTimes], open_page: OpenPage
) -> None:
    site, times = berlin
    span = Span(times.now - timedelta(minutes=30), times.now)
    view = ClusterView(ORDERS, shown=span, display=DisplayOptions("berlin", "Asia/Kathmandu"))
    for reader in ("UTC", "Europe/Berlin"):
        page = open_page(f"{site.url}{href(view)}", zone=reader)
        start = span.start.astimezone(ZoneInfo("Asia/Kathmandu"))
        expect(page.locator("#cluster-span")).to_contain_text(f"{start:%Y-%m-%d %H:%M} to")
        labels = page.locator("#cluster-latency .xtick text")
        expect(labels.first).to_be_visible()
        quarter = {f"{start + timedelta(minutes=n):%H:%M}" for n in range(31)} | {
            f"{start + timedelta(minutes=n):%a %d %b}" for n in range(31)
        }
        assert set(labels.all_text_contents()) <= quarter


def test_a_drag_selects_the_same_minutes_in_every_time_zone(
    berlin: tuple[Site, LakeTimes], open_page: OpenPage
) -> None:
    site, times = berlin
    span = Span(times.now - timedelta(minutes=60), times.now)
    selected_spans = []
    for zone in ("UTC", "Australia/Lord_Howe"):
        view = ClusterView(ORDERS, shown=span, display=DisplayOptions("berlin", zone))
        page = open_page(f"{site.url}{href(view)}")
        plot = page.locator("#cluster-latency .nsewdrag").first
        expect(page.locator("#cluster-latency .scatterlayer .trace").first).to_be_visible()
        box = plot.bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + box["width"] * 0.25, box["y"] + 40)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 40, steps=8)
        page.mouse.up()
        expect(page).not_to_have_url(f"{site.url}{href(view)}")
        address = re.search(r"from=[^&]+&to=[^&]+", page.url)
        assert address is not None
        selected_spans.append(address[0])
    assert selected_spans[0] == selected_spans[1]
