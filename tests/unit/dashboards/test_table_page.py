"""The numbers behind each part as a table, and links to them on every page."""

from datetime import timedelta

import pytest

from fleetgauge_dashboards.app import PAGES
from fleetgauge_dashboards.links import (
    AlertsView,
    BrokerView,
    ClusterView,
    Drawn,
    FleetView,
    Lens,
    MinuteView,
    QualityView,
    RecoveryView,
    TableView,
    WhyView,
    href,
)
from fleetgauge_dashboards.pages.page import Notice, Page
from tests.browser import recovery_lake
from tests.browser.lake import ORDERS
from tests.unit.dashboards.served import NOW, Served, said, served

VIEWS: dict[str, Drawn] = {
    "fleet": FleetView(),
    "cluster": ClusterView(ORDERS),
    "broker": BrokerView(ORDERS, 2),
    "minute": MinuteView(ORDERS, NOW - timedelta(minutes=20)),
    "why": WhyView(ORDERS),
    "alerts": AlertsView(),
    "recovery": RecoveryView(),
    "quality": QualityView(),
}
NUMBERS = next(page for page in PAGES if page.view is TableView)
PARTS = [(page.name, part.name) for page in PAGES for part in page.parts]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Served:
    root = tmp_path_factory.mktemp("numbers")
    recovery_lake.write(root, NOW)
    return served(root)


@pytest.mark.parametrize(("name", "part"), PARTS)
def test_each_part_is_a_table(lake: Served, name: str, part: str) -> None:
    view = VIEWS[name]
    filled = lake.fill(NUMBERS, TableView(view, part))
    rows = filled["numbers-grid.rowData"]
    columns = [column["field"] for column in filled["numbers-grid.columnDefs"]]
    assert rows
    assert all(list(row) == columns for row in rows)
    assert all(isinstance(cell, str | int | float | bool | None) for row in rows for cell in row.values())
    assert f"{len(rows):,} row" in said(filled["numbers-title.children"])


def test_every_page_but_the_review_has_parts() -> None:
    assert {page.name for page in PAGES if not page.parts} == {"review", "numbers"}


@pytest.mark.parametrize("page", [page for page in PAGES if page.parts], ids=lambda page: page.name)
def test_where_tools_are_filled_there_is_a_place_for_them(page: Page) -> None:
    places = set(page.layout()._traverse_ids())  # dash has no other way to say it
    filled = {slot.partition(".")[0] for slot in page.tools(VIEWS[page.name])}
    assert filled <= {one.id for one in places if isinstance(one.id, str)}


def test_what_has_no_such_part_leads_back(lake: Served) -> None:
    answer = lake.fill(NUMBERS, TableView(FleetView(), "nothing"))
    assert isinstance(answer, Notice)


def test_the_lens_goes_along() -> None:
    of = ClusterView(ORDERS, lens=Lens("history", "Europe/Berlin"))
    assert "history" in href(TableView(of, "latency"))
    assert TableView(of, "latency").lens == of.lens
