"""axe finds nothing serious on any page, light or dark."""

from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
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
from tests.browser.conftest import Open, Site
from tests.browser.lake import ORDERS, Known

PAGES = {
    "fleet": lambda known: FleetView(),
    "cluster": lambda known: ClusterView(ORDERS),
    "broker": lambda known: BrokerView(ORDERS, 2),
    "minute": lambda known: MinuteView(ORDERS, known.hung_at),
    "why": lambda known: WhyView(ORDERS),
    "alerts": lambda known: AlertsView(),
    "review": lambda known: ReviewView(),
    "quality": lambda known: QualityView(),
    "table": lambda known: TableView(ClusterView(ORDERS), "latency"),
    "wall": lambda known: FleetView(display=DisplayOptions(wall=True)),
    "nothing": lambda known: ClusterView("nobody"),
}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_pages_have_no_serious_accessibility_violation(
    live: tuple[Site, Known], look: Open, name: str, scheme: Literal["light", "dark"]
) -> None:
    site, known = live
    view: View = PAGES[name](known)
    page = look(f"{site.url}{href(view)}", scheme)
    expect(page.locator("h1, .fg-empty h2").first).to_be_visible()
    expect(page.locator("#age")).to_contain_text("data age")
    found = Axe().run(page).response["violations"]
    serious = [
        f"{one['id']}: {one['help']}: {', '.join(str(node['target']) for node in one['nodes'][:5])}"
        for one in found
        if one["impact"] in ("serious", "critical")
    ]
    assert serious == []
