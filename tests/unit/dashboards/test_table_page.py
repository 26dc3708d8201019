"""The table page shows the rows behind each part, and every page links to it."""

from datetime import timedelta

import pytest

from fleetgauge_dashboards.app import PAGES
from fleetgauge_dashboards.links import (
    AlertsView,
    BrokerView,
    ClusterView,
    DisplayOptions,
    FleetView,
    MinuteView,
    PageView,
    QualityView,
    RecoveryView,
    TableView,
    WhyView,
    href,
)
from fleetgauge_dashboards.pages.page import Page, PageNotice
from tests.browser import recovery_lake
from tests.browser.lake import ORDERS
from tests.unit.dashboards.served import NOW, LakeFixture, open_lake, visible_text

VIEWS: dict[str, PageView] = {
    "fleet": FleetView(),
    "cluster": ClusterView(ORDERS),
    "broker": BrokerView(ORDERS, 2),
    "minute": MinuteView(ORDERS, NOW - timedelta(minutes=20)),
    "why": WhyView(ORDERS),
    "alerts": AlertsView(),
    "recovery": RecoveryView(),
    "quality": QualityView(),
}
TABLE_PAGE = next(page for page in PAGES if page.view is TableView)
PARTS = [(page.name, part.name) for page in PAGES for part in page.parts]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> LakeFixture:
    root = tmp_path_factory.mktemp("numbers")
    recovery_lake.write(root, NOW)
    return open_lake(root)


@pytest.mark.parametrize(("name", "part"), PARTS)
def test_each_part_has_a_table(lake: LakeFixture, name: str, part: str) -> None:
    view = VIEWS[name]
    filled = lake.fill(TABLE_PAGE, TableView(view, part))
    rows = filled["numbers-grid.rowData"]
    columns = [column["field"] for column in filled["numbers-grid.columnDefs"]]
    assert rows
    assert all(list(row) == columns for row in rows)
    assert all(isinstance(cell, str | int | float | bool | None) for row in rows for cell in row.values())
    assert f"{len(rows):,} row" in visible_text(filled["numbers-title.children"])


def test_every_page_but_the_review_has_parts() -> None:
    assert {page.name for page in PAGES if not page.parts} == {"review", "numbers"}


@pytest.mark.parametrize("page", [page for page in PAGES if page.parts], ids=lambda page: page.name)
def test_every_part_with_tools_has_a_place_for_them(page: Page) -> None:
    # Dash has no public method for the ids of a layout.
    components = set(page.layout()._traverse_ids())
    filled = {slot.partition(".")[0] for slot in page.tools(VIEWS[page.name])}
    assert filled <= {component.id for component in components if isinstance(component.id, str)}


def test_an_unknown_part_shows_a_notice(lake: LakeFixture) -> None:
    answer = lake.fill(TABLE_PAGE, TableView(FleetView(), "nothing"))
    assert isinstance(answer, PageNotice)


def test_a_table_keeps_the_display_options_of_its_page() -> None:
    of = ClusterView(ORDERS, display=DisplayOptions("history", "Europe/Berlin"))
    assert "history" in href(TableView(of, "latency"))
    assert TableView(of, "latency").display == of.display
