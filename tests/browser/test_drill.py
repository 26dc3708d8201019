"""Navigation from the fleet to a single sample, by mouse and by keyboard; each step has a URL."""

import csv
import io
import re
from datetime import timedelta
from pathlib import Path

from playwright.sync_api import Page, expect

from fleetgauge_dashboards.links import BrokerView, ClusterView, MinuteView, QualityView, Span, WhyView, href
from tests.browser.conftest import OpenPage, Site
from tests.browser.lake import ORDERS, PAYMENTS, LakeTimes

Live = tuple[Site, LakeTimes]


def test_from_the_fleet_to_a_sample_in_three_clicks(live: Live, open_page: OpenPage) -> None:
    site, times = live
    page = open_page(site.url)
    page.get_by_role("link", name=ORDERS, exact=True).click()
    expect(page.locator("h1")).to_contain_text(f"{ORDERS}, week of")
    at = times.now - timedelta(minutes=1)
    page.get_by_role("link", name=f"{at:%Y-%m-%d %H:%M}", exact=True).click()
    expect(page.locator("h1")).to_have_text(f"{ORDERS}, minute {at:%a %d %b %Y %H:%M} UTC")
    rows = page.locator("#minute-table tbody tr")
    expect(rows).to_have_count(6)
    expect(page.locator("#minute-client .scatterlayer .trace").first).to_be_visible()
    assert page.url == f"{site.url}{href(MinuteView(ORDERS, at))}"
    again = open_page(page.url)
    expect(again.locator("#minute-table tbody tr")).to_have_count(6)
    again.get_by_role("link", name="‹ previous minute").click()
    expect(again.locator("h1")).to_contain_text(f"{at - timedelta(minutes=1):%H:%M} UTC")


def test_a_click_on_a_point_opens_its_minute(live: Live, open_page: OpenPage) -> None:
    site, times = live
    span = Span(times.now - timedelta(minutes=20), times.now)
    page = open_page(site.url + href(ClusterView(ORDERS, shown=span)))
    _wait_for_charts(page)
    _click_on_a_point(page, 10 / 20)
    at = times.now - timedelta(minutes=10)
    expect(page.locator("h1")).to_have_text(f"{ORDERS}, minute {at:%a %d %b %Y %H:%M} UTC")
    page.go_back()
    expect(page.locator("h1")).to_contain_text(f"{ORDERS}, week of")


def test_a_click_on_a_point_of_many_minutes_zooms_in(live: Live, open_page: OpenPage) -> None:
    site, times = live
    span = Span(times.now - timedelta(hours=20), times.now)
    page = open_page(site.url + href(ClusterView(ORDERS, shown=span)))
    _wait_for_charts(page)
    _click_on_a_point(page, 19 / 20)
    expect(page).to_have_url(re.compile(r"from=.*&to="))
    expect(page.locator("#cluster-span")).not_to_contain_text("each point")


def test_the_explanation_links_to_the_deciding_minutes(live: Live, open_page: OpenPage) -> None:
    site, times = live
    page = open_page(f"{site.url}{href(ClusterView(ORDERS))}")
    page.get_by_role("link", name="Explain this week").click()
    expect(page.locator("h1")).to_contain_text("explained")
    text = page.locator("#why-text")
    expect(text).to_contain_text("180 minutes, rank ceil(0.99 x 180) = 179")
    expect(text).to_contain_text("With failures included, a failed probe counts as 10,000 ms")
    page.get_by_role("link", name=f"{times.hung_at:%Y-%m-%d %H:%M}").first.click()
    expect(page.locator("h1")).to_contain_text(f"{ORDERS}, minute")


def test_the_minutes_of_a_week_can_be_downloaded(live: Live, open_page: OpenPage) -> None:
    site, _ = live
    page = open_page(f"{site.url}{href(WhyView(ORDERS))}")
    with page.expect_download() as download:
        page.get_by_role("link", name="Minutes as CSV").click()
    lines = list(csv.DictReader(io.StringIO(Path(download.value.path()).read_text())))
    assert len(lines) == 180
    assert sum(line["bad"] == "true" for line in lines) == 8


def test_a_broker_page_shows_both_legs_failures_and_alerts(live: Live, open_page: OpenPage) -> None:
    site, _ = live
    page = open_page(f"{site.url}{href(ClusterView(ORDERS))}")
    page.locator("#cluster-brokers").get_by_role("link", name="broker 2").click()
    expect(page.locator("h1")).to_have_text(f"{ORDERS}, broker 2")
    for chart, layer in (("client", "scatter"), ("leader", "scatter"), ("failures", "bar")):
        expect(page.locator(f"#broker-{chart} .{layer}layer .trace").first).to_be_visible()
    expect(page.locator("#broker-history")).to_contain_text("▲ open for 8 min")
    page.get_by_role("link", name="last 6h").click()
    expect(page).to_have_url(f"{site.url}{href(BrokerView(ORDERS, 2))}?window=6h")


def test_expired_samples_are_reported(live: Live, open_page: OpenPage) -> None:
    site, times = live
    page = open_page(f"{site.url}{href(MinuteView(PAYMENTS, times.now - timedelta(minutes=3)))}")
    expect(page.locator("#minute-source")).to_contain_text("The samples have expired")
    expect(page.locator("#minute-cards")).to_contain_text("3 of 3")
    expect(page.locator("#minute-charts")).to_be_hidden()


def test_data_quality_shows_checks_and_quarantined_records(live: Live, open_page: OpenPage) -> None:
    site, _ = live
    page = open_page(site.url)
    page.get_by_role("link", name="Data quality").click()
    expect(page).to_have_url(f"{site.url}{href(QualityView())}")
    expect(page.locator("#quality-gates tbody tr").first).to_contain_text("▲ fails")
    expect(page.locator("#quality-cards")).to_contain_text("2 of 3")
    expect(page.locator("#quality-refused .barlayer .trace").first).to_be_visible()


def test_a_sample_can_be_reached_by_keyboard(live: Live, open_page: OpenPage) -> None:
    site, _ = live
    page = open_page(f"{site.url}{href(ClusterView(ORDERS))}")
    expect(page.locator("#cluster-minutes tbody tr")).to_have_count(8)
    _tab_to(page, "#cluster-minutes a")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_contain_text(f"{ORDERS}, minute")


def _tab_to(page: Page, selector: str) -> None:
    for _ in range(80):
        page.keyboard.press("Tab")
        if page.evaluate(f"document.activeElement.matches('{selector}')"):
            return
    raise AssertionError(f"no tab stop at {selector}")


def _click_on_a_point(page: Page, share: float) -> None:
    """Click at that share of the chart's width, once the hover label of the point is visible."""
    plot = page.locator("#cluster-latency .nsewdrag").first
    box = plot.bounding_box()
    assert box is not None
    plot.hover(position={"x": box["width"] * share, "y": box["height"] * 0.9})
    expect(page.locator("#cluster-latency .hoverlayer .legend").first).to_be_visible()
    page.mouse.down()
    page.mouse.up()


def _wait_for_charts(page: Page) -> None:
    """Wait until nothing moves any more: the elements above a chart are loaded by a separate request."""
    expect(page.locator("#banners .fg-banner").first).to_be_visible()
    expect(page.locator("#cluster-latency .scatterlayer .trace").first).to_be_visible()
    expect(page.locator("#cluster-budget .scatterlayer .trace").first).to_be_visible()
