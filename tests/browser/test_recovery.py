"""The recovery page: with data, stale, empty and broken; in both colour schemes and by keyboard."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Page, expect

from fleetgauge_core import tables
from fleetgauge_dashboards.links import DisplayOptions, RecoveryView, TableView, Window, href
from fleetgauge_dashboards.served_fleets import ServedFleet
from tests.browser import recovery_lake
from tests.browser.accessibility import find_serious_violations
from tests.browser.conftest import OpenPage, ServeLake, Site
from tests.browser.lake import put, write
from tests.browser.recovery_lake import MIRRORS, PAIRS, REGIONS

RECOVERY = href(RecoveryView())


def _serve_shop(root: Path, serve_lake: ServeLake, at: datetime) -> Site:
    """Serve the lake as fleet ``shop`` with regions, mirrors and pairs, beside a fleet without them."""
    shown = ServedFleet("shop", str(root), regions=REGIONS, mirrors=MIRRORS, pairs=PAIRS)
    return serve_lake(root, at, beside=[shown])


@pytest.fixture(scope="module")
def lake_and_end(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, datetime]:
    """A lake, and the end of its newest minute."""
    root = tmp_path_factory.mktemp("recovery")
    times = write(root, datetime.now(UTC))
    recovery_lake.write(root, times.now)
    return root, times.now


@pytest.fixture(scope="module")
def shop(lake_and_end: tuple[Path, datetime], serve_lake: ServeLake) -> str:
    """The page's address without its query, half a minute after the newest minute."""
    root, until = lake_and_end
    return _serve_shop(root, serve_lake, until + timedelta(seconds=30)).url


@pytest.fixture(scope="module")
def late(lake_and_end: tuple[Path, datetime], serve_lake: ServeLake) -> str:
    """Three quarters of an hour later."""
    root, until = lake_and_end
    return _serve_shop(root, serve_lake, until + timedelta(minutes=45)).url


def _address(site: str, view: RecoveryView | None = None) -> str:
    display = DisplayOptions(fleet="shop")
    return f"{site}{href(RecoveryView(view.window if view else Window.DAY, display=display))}"


def _wait_for_charts(page: Page) -> None:
    expect(page.locator("#recovery-rpo .scatterlayer .trace").first).to_be_visible()
    expect(page.locator("#recovery-regions .scatterlayer .trace").first).to_be_visible()


def test_the_navigation_lists_recovery_after_alerts(shop: str, open_page: OpenPage) -> None:
    page = open_page(f"{shop}/?fleet=shop")
    expect(page.locator("#nav a")).to_have_text(
        [re.compile("^Fleet"), re.compile("^Alerts"), "Recovery", "Review", "Data quality"]
    )
    page.locator("#nav").get_by_role("link", name="Recovery").click()
    expect(page.locator("h1")).to_have_text("Recovery")
    expect(page.locator("#nav [aria-current=page]")).to_have_text("Recovery")
    assert page.url == f"{shop}/recovery?fleet=shop"
    expect(page).to_have_title("▲ 1 open · Recovery · Fleetgauge")


def test_each_pair_shows_an_answer_and_its_evidence(shop: str, open_page: OpenPage) -> None:
    page = open_page(_address(shop))
    _wait_for_charts(page)
    expect(page.locator("#recovery-stale")).to_be_empty()
    expect(page.locator("#recovery-cards")).to_contain_text("3 of 4")
    expect(page.locator("#recovery-cards")).to_contain_text("≤ 12 min 10 s")
    first, second = page.locator(".fg-failover").all()
    expect(first.locator("h3")).to_have_text("north-all to south-all")
    expect(first.locator(".fg-answer")).to_have_text("▲ NO")
    expect(first.locator(".fg-because li")).to_have_text(
        [
            "1 of 3 groups not ready",
            "mirror south to south-all has stalled",
            re.compile("^open finding: the mirror from south to south-all is 430 s behind"),
        ]
    )
    expect(second.locator(".fg-answer")).to_have_text("◌ UNKNOWN")
    expect(page.locator("#recovery-groups tbody tr").first).to_contain_text("billing")
    expect(page.locator("#recovery-drills tbody tr")).to_have_count(20)
    expect(page.locator("#recovery-weeks")).to_contain_text("✕ south to south-all")


def test_the_map_shows_regions_clusters_and_each_mirrors_rpo(shop: str, open_page: OpenPage) -> None:
    page = open_page(_address(shop))
    _wait_for_charts(page)
    texts = page.locator("#recovery-regions .annotation-text")
    expect(texts).to_contain_text(["eu-north", "eu-south", "north", "north-all", "south", "south-all"])
    expect(texts.filter(has_text="▲ stalled, ≤ 12 min 10 s")).to_have_count(1)
    expect(texts.filter(has_text=re.compile("^● ≤ "))).to_have_count(3)
    expect(page.locator("#recovery-regions .legendtext")).to_have_text(["● fresh", "▲ stalled"])


def test_time_without_data_is_hatched_in_the_rpo_chart(shop: str, open_page: OpenPage) -> None:
    page = open_page(_address(shop))
    _wait_for_charts(page)
    hatch = page.locator("#recovery-rpo .barlayer .point path")
    expect(hatch).to_have_count(1)
    gap, plot = (
        page.locator(f"#recovery-rpo {selector}").first.bounding_box()
        for selector in (".barlayer path", ".nsewdrag")
    )
    assert gap is not None
    assert plot is not None
    assert gap["y"] <= plot["y"] + 1
    assert gap["y"] + gap["height"] >= plot["y"] + plot["height"] - 1


def test_the_time_range_is_part_of_the_url(shop: str, open_page: OpenPage) -> None:
    page = open_page(_address(shop))
    page.locator("#recovery-window").get_by_role("link", name="last 1h").click()
    expect(page.locator("#recovery-window [aria-current=true]")).to_have_text("last 1h")
    assert page.url == f"{shop}/recovery?fleet=shop&window=1h"
    again = open_page(page.url)
    expect(again.locator("#recovery-window [aria-current=true]")).to_have_text("last 1h")
    _wait_for_charts(again)


def test_open_findings_are_a_table_that_links_back(shop: str, open_page: OpenPage) -> None:
    page = open_page(_address(shop))
    page.get_by_role("link", name="All open findings").click()
    expect(page.locator("h1")).to_have_text("Open findings")
    expect(page.locator("#numbers-title")).to_contain_text("2 rows")
    page.get_by_role("link", name="Back to the page").click()
    expect(page.locator("h1")).to_have_text("Recovery")


def test_each_part_has_a_table_a_csv_file_and_a_picture(shop: str, open_page: OpenPage) -> None:
    page = open_page(_address(shop))
    _wait_for_charts(page)
    for part in ("failovers", "mirrors", "rpo", "groups", "drills", "weeks"):
        expect(page.locator(f"#recovery-{part}-tools a")).to_have_text(["Table", "CSV"])
    with page.expect_download() as download:
        page.locator("#recovery-groups-tools").get_by_role("link", name="CSV").click()
    assert Path(download.value.path()).read_text().count("\n") == 6
    with page.expect_download() as download:
        page.locator("button[data-picture=recovery-regions]").click()
    assert Path(download.value.path()).read_bytes().startswith(b"\x89PNG")


def test_definitions_can_be_opened_by_keyboard(shop: str, open_page: OpenPage) -> None:
    page = open_page(_address(shop))
    page.get_by_role("button", name=re.compile("^Definition: Capacity headroom after failover")).first.focus()
    expect(page.get_by_role("tooltip")).to_contain_text("recovery.capacities")


def test_stale_data_shows_a_banner_and_unknown_answers(late: str, open_page: OpenPage) -> None:
    page = open_page(_address(late))
    _wait_for_charts(page)
    stale = page.locator("#recovery-stale")
    expect(stale).to_contain_text("STALE: no data from fleetgauge recover run since")
    expect(stale).to_contain_text("The values below are not current")
    expect(page.locator(".fg-answer")).to_have_text(["◌ UNKNOWN", "◌ UNKNOWN"])
    expect(page.locator("#recovery-regions .legendtext")).to_have_text(["◌ unknown"])
    # The time since the last report is hatched as well.
    expect(page.locator("#recovery-rpo .barlayer .point path")).to_have_count(2)


def test_a_lake_without_recovery_shows_the_next_steps_and_updates(
    tmp_path: Path, serve_lake: ServeLake, open_page: OpenPage
) -> None:
    times = write(tmp_path, datetime.now(UTC))
    page = open_page(f"{serve_lake(tmp_path, times.now + timedelta(seconds=30)).url}{RECOVERY}")
    expect(page.locator(".fg-empty")).to_contain_text("No recovery data yet")
    expect(page.locator(".fg-empty")).to_contain_text("fleetgauge recover run --config fleet.yaml")
    recovery_lake.write(tmp_path, times.now)
    expect(page.locator(".fg-answer").first).to_have_text("▲ NO", timeout=30_000)


def test_an_unreadable_table_shows_an_error(
    tmp_path: Path, serve_lake: ServeLake, open_page: OpenPage
) -> None:
    times = write(tmp_path, datetime.now(UTC))
    put(tmp_path, tables.DRILLS, [recovery_lake.drill(times.now, "billing")])
    (commit,) = (tmp_path / "recovery/drills/_delta_log").glob("*.json")
    commit.write_text("{broken")
    page = open_page(f"{serve_lake(tmp_path, times.now).url}{RECOVERY}")
    expect(page.locator(".fg-empty--bad")).to_contain_text("recovery/drills:")


@pytest.mark.parametrize(("width", "height"), [(1440, 900), (1920, 1080)])
def test_the_page_is_not_wider_than_the_screen(
    shop: str, open_page: OpenPage, width: int, height: int
) -> None:
    page = open_page(_address(shop), width=width, height=height)
    _wait_for_charts(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["page", "late", "table", "wall"])
def test_the_page_has_no_serious_accessibility_violation(
    shop: str, late: str, open_page: OpenPage, name: str, scheme: Literal["light", "dark"]
) -> None:
    recovery = RecoveryView(display=DisplayOptions("shop"))
    address = {
        "page": _address(shop),
        "late": _address(late),
        "table": f"{shop}{href(TableView(recovery, 'groups'))}",
        "wall": f"{shop}{href(RecoveryView(display=DisplayOptions('shop', wall=True)))}",
    }[name]
    page = open_page(address, scheme)
    expect(page.locator("h1")).to_be_visible()
    if name != "table":
        _wait_for_charts(page)
    expect(page.locator("#age")).to_contain_text("data age")
    assert find_serious_violations(page) == []


def test_the_page_follows_the_systems_dark_scheme(shop: str, open_page: OpenPage) -> None:
    page = open_page(_address(shop), scheme="dark")
    _wait_for_charts(page)
    expect(page.locator("#recovery-rpo .legendtext").first).to_have_css("fill", "rgb(227, 232, 238)")
