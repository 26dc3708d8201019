"""axe finds nothing serious on any page, light or dark."""

from typing import Literal

import pytest
from playwright.sync_api import expect

from fleetgauge_dashboards.links import (
    AlertsView,
    BrokerView,
    ClusterView,
    DisplayOptions,
    FleetView,
    MinuteView,
    QualityView,
    ReviewView,
    TableView,
    View,
    WhyView,
    href,
)
from tests.browser.accessibility import find_serious_violations
from tests.browser.conftest import OpenPage, Site
from tests.browser.lake import ORDERS, LakeTimes

PAGES = {
    "fleet": lambda times: FleetView(),
    "cluster": lambda times: ClusterView(ORDERS),
    "broker": lambda times: BrokerView(ORDERS, 2),
    "minute": lambda times: MinuteView(ORDERS, times.hung_at),
    "why": lambda times: WhyView(ORDERS),
    "alerts": lambda times: AlertsView(),
    "review": lambda times: ReviewView(),
    "quality": lambda times: QualityView(),
    "table": lambda times: TableView(ClusterView(ORDERS), "latency"),
    "wall": lambda times: FleetView(display=DisplayOptions(wall=True)),
    "unknown": lambda times: ClusterView("nobody"),
}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_pages_have_no_serious_accessibility_violation(
    live: tuple[Site, LakeTimes], open_page: OpenPage, name: str, scheme: Literal["light", "dark"]
) -> None:
    site, times = live
    view: View = PAGES[name](times)
    page = open_page(f"{site.url}{href(view)}", scheme)
    expect(page.locator("h1, .fg-empty h2").first).to_be_visible()
    expect(page.locator("#age")).to_contain_text("data age")
    assert find_serious_violations(page) == []
