"""Each page shows the data of its lake, at a URL that opens the same view again."""

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from playwright.sync_api import Page, expect

from fleetgauge_core import tables
from fleetgauge_dashboards.served_fleets import ServedFleet
from tests.browser.conftest import OpenPage, ServeLake, Site
from tests.browser.lake import LakeTimes, put, write
from tests.exposition import samples

Live = tuple[Site, LakeTimes]


def _banners(page: Page) -> str:
    expect(page.locator("#banners .fg-banner").first).to_be_visible()
    return page.locator("#banners").inner_text()


def test_the_fleet_page_shows_data_age_alerts_and_the_worst_cluster_first(
    live: Live, open_page: OpenPage
) -> None:
    site, times = live
    page = open_page(site.url)
    expect(page.locator("#age")).to_contain_text("data age")
    expect(page.locator("#recent-coverage")).to_contain_text("(462 of 540)")
    assert "BROKER_DOWN: orders-eu broker 2" in _banners(page)
    expect(page.locator("h1")).to_have_text(f"Fleet, week of {times.week:%a %d %b %Y}")
    cards = page.locator("#fleet-cards")
    expect(cards).to_contain_text("24.6 ms")
    expect(cards).to_contain_text("43.1 ms")
    expect(cards).to_contain_text("p99 is the maximum of 2 clusters")
    expect(page.locator("#fleet-excluded")).to_have_text("Excluded, coverage below 90%: search-ap (71.5%)")
    first = page.locator(".ag-center-cols-container [row-index='0']")
    expect(first).to_contain_text("orders-eu")
    expect(first).to_contain_text("▲ BROKER_DOWN broker 2")
    expect(first).to_contain_text("99.934%")
    expect(page).to_have_title("▲ 1 open · Fleet · Fleetgauge")


def test_a_past_week_opens_from_the_menu_and_by_url(live: Live, open_page: OpenPage) -> None:
    site, times = live
    page = open_page(site.url)
    before = times.week - timedelta(days=14)
    page.get_by_text("Other week").click()
    page.get_by_role("navigation", name="Weeks").get_by_role("link", name=f"{before:%a %d %b %Y}").click()
    heading = f"Fleet, week of {before:%a %d %b %Y}"
    expect(page.locator("h1")).to_have_text(heading)
    assert page.url == f"{site.url}/?week={before}"
    again = open_page(page.url)
    expect(again.locator("h1")).to_have_text(heading)
    expect(again.locator(".fg-titlerow").first).to_contain_text("closed, revision 2")


def test_a_search_finds_clusters_and_is_part_of_the_url(live: Live, open_page: OpenPage) -> None:
    site, _ = live
    page = open_page(site.url)
    rows = page.locator(".ag-center-cols-container [row-index]")
    expect(rows).to_have_count(3)
    box = page.get_by_role("textbox", name="Search for clusters")
    box.fill("ORD")
    expect(rows).to_have_count(1)
    expect(page.locator("#fleet-found")).to_have_text("1 of 3 clusters")
    assert page.url == f"{site.url}/?q=ORD"
    again = open_page(page.url)
    expect(again.locator(".ag-center-cols-container [row-index]")).to_have_count(1)
    expect(again.get_by_role("textbox", name="Search for clusters")).to_have_value("ORD")
    box.fill("")
    expect(rows).to_have_count(3)
    expect(page).to_have_url(re.compile(r"/\??$"))


def test_a_table_of_many_clusters_has_pages(
    tmp_path: Path, serve_lake: ServeLake, open_page: OpenPage
) -> None:
    times = write(tmp_path, datetime.now(UTC))
    more = [
        {"cluster_id": f"c{n:04}", "week": times.week, "revision": 0, "closed": False, "coverage": 1.0}
        for n in range(700)
    ]
    put(tmp_path, tables.CLUSTER_WEEKS, more)
    page = open_page(serve_lake(tmp_path).url)
    expect(page.locator("#fleet-found")).to_have_text("the worst 500 of 703 clusters; search to find others")
    rows = page.locator(".ag-center-cols-container [row-index]")
    expect(rows).to_have_count(50)
    page.get_by_role("button", name="Next Page").click()
    expect(page.locator(".ag-center-cols-container [row-index='50']")).to_be_visible()
    page.get_by_role("textbox", name="Search for clusters").fill("c0699")
    expect(rows).to_have_count(1)
    expect(page.locator(".ag-paging-panel")).to_be_hidden()


def test_the_keyboard_reaches_the_table_and_opens_a_cluster(live: Live, open_page: OpenPage) -> None:
    site, _ = live
    page = open_page(site.url)
    expect(page.locator(".ag-center-cols-container [row-index='0']")).to_contain_text("orders-eu")
    for _ in range(50):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.closest('.ag-header') !== null"):
            break
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_contain_text("orders-eu, week of")
    assert page.url == f"{site.url}/cluster/orders-eu"


def test_focus_is_visible(live: Live, open_page: OpenPage) -> None:
    page = open_page(live[0].url)
    expect(page.locator("h1")).to_be_visible()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"


def test_a_cluster_shows_its_week_and_the_finding_on_its_minutes(live: Live, open_page: OpenPage) -> None:
    site, _ = live
    page = open_page(f"{site.url}/cluster/orders-eu")
    cards = page.locator("#cluster-cards")
    expect(cards).to_contain_text("43.1 ms")
    expect(cards).to_contain_text("objective: 99% of minutes ≤ 100 ms")
    expect(cards).to_contain_text("38 bad minutes")
    expect(page.locator("#cluster-span")).to_contain_text("bad minutes: 8")
    expect(page.locator("#cluster-latency .annotation-text")).to_contain_text(
        ["objective100 ms", "▲ BROKER_DOWN broker 2"]
    )
    expect(page.locator("#cluster-leader .legendtext")).to_contain_text(
        ["broker 1", "broker 2", "broker 2 failing"]
    )


def test_the_leg_is_part_of_the_url_and_unmeasured_time_is_shown(live: Live, open_page: OpenPage) -> None:
    site, _ = live
    page = open_page(f"{site.url}/cluster/payments-us")
    expect(page.locator("#cluster-span")).to_contain_text("not measured: 12 min")
    expect(page.locator("#cluster-heatmap .legendtext")).to_have_text(["not measured"])
    page.get_by_role("link", name="leader leg: each broker alone").click()
    expect(page.locator("#cluster-leg [aria-current]")).to_have_text("leader leg: each broker alone")
    assert page.url == f"{site.url}/cluster/payments-us?leg=leader"
    again = open_page(page.url)
    expect(again.locator("#cluster-leg [aria-current]")).to_have_text("leader leg: each broker alone")


def test_a_permanent_link_opens_the_same_time_range(live: Live, open_page: OpenPage) -> None:
    site, times = live
    start = times.hung_at - timedelta(minutes=30)
    span = f"from={start:%Y-%m-%dT%H:%M:%SZ}&to={times.now:%Y-%m-%dT%H:%M:%SZ}"
    page = open_page(f"{site.url}/cluster/orders-eu?{span}&leg=leader")
    time_range = f"{start:%Y-%m-%d %H:%M} to {times.now:%Y-%m-%d %H:%M} UTC, fixed"
    expect(page.locator("#cluster-span")).to_contain_text(time_range)
    expect(page.locator("#cluster-span")).to_contain_text("bad minutes: 8")


def test_a_drag_along_the_time_axis_changes_the_url(live: Live, open_page: OpenPage) -> None:
    page = open_page(f"{live[0].url}/cluster/orders-eu")
    plot = page.locator("#cluster-latency .nsewdrag").first
    expect(plot).to_be_visible()
    box = plot.bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * 0.3, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.6, middle, steps=8)
    page.mouse.up()
    expect(page).to_have_url(re.compile(r"\?from=[^&]+&to=[^&]+$"))
    expect(page.locator("#cluster-span")).to_contain_text("fixed")
    page.go_back()
    expect(page.locator("#cluster-span")).not_to_contain_text("fixed")


def test_the_alerts_page_shows_open_alerts_with_evidence_and_past_ones_on_demand(
    live: Live, open_page: OpenPage
) -> None:
    site, _ = live
    page = open_page(f"{site.url}/alerts")
    expect(page.locator("h1")).to_have_text("Alerts: 1 open")
    opened = page.locator(".fg-alert")
    expect(opened).to_contain_text("BROKER_DOWN: orders-eu broker 2")
    expect(opened.locator("pre").last).to_contain_text('"leader_leg_outstanding": 11')
    history = page.locator("#alerts-history")
    expect(history.locator("tbody tr")).to_have_count(2)
    history.get_by_role("link", name="Evidence ▾").first.click()
    expect(history.locator("pre")).to_have_count(3)
    assert page.url == f"{site.url}/alerts?alert=past-0"
    history.get_by_role("link", name="Cluster at that time").first.click()
    expect(page.locator("h1")).to_contain_text("payments-us, week of")
    expect(page).to_have_url(re.compile(r"/cluster/payments-us\?from=.*&to=.*&leg=leader$"))


def test_the_review_of_the_newest_ended_week_links_to_clusters(live: Live, open_page: OpenPage) -> None:
    site, times = live
    page = open_page(site.url)
    page.get_by_role("link", name="Review", exact=True).click()
    over = times.week - timedelta(days=7)
    expect(page.locator("h1")).to_have_text(f"Review, week of {over:%a %d %b %Y}")
    row = page.get_by_role("row").filter(has_text="Latency p99").first
    expect(row).to_contain_text("70.3 ms")
    page.locator("#review-text").get_by_role("link", name="orders-eu").first.click()
    expect(page.locator("h1")).to_have_text(f"orders-eu, week of {over:%a %d %b %Y}")
    page.go_back()
    expect(page.locator("h1")).to_have_text(f"Review, week of {over:%a %d %b %Y}")
    page.get_by_text("Other week").click()
    page.get_by_role("navigation", name="Weeks").get_by_role("link", name=f"{times.week:%a %d %b %Y}").click()
    expect(page.locator(".fg-titlerow").first).to_contain_text("open week, to date")
    assert page.url == f"{site.url}/review?week={times.week}"
    with page.expect_download() as download:
        page.get_by_role("link", name="Download HTML").click()
    assert download.value.suggested_filename == f"review-{times.week}.html"
    assert "BROKER_DOWN" in download.value.path().read_text(encoding="utf-8")


def test_an_unknown_cluster_shows_a_notice_with_similar_names(live: Live, open_page: OpenPage) -> None:
    page = open_page(f"{live[0].url}/cluster/..%2F..%2Fetc%2Fpasswd")
    expect(page.locator(".fg-empty")).to_contain_text("No cluster named ../../etc/passwd")
    page.get_by_role("link", name="orders-eu").click()
    expect(page.locator("h1")).to_contain_text("orders-eu")


def test_an_unknown_page_links_to_the_fleet(live: Live, open_page: OpenPage) -> None:
    page = open_page(f"{live[0].url}/elsewhere")
    page.get_by_role("link", name="Go to the fleet").click()
    expect(page.locator("h1")).to_contain_text("Fleet")


def test_the_colour_scheme_follows_the_system_until_switched(live: Live, open_page: OpenPage) -> None:
    page = open_page(live[0].url, scheme="dark")
    expect(page.locator("html")).to_have_attribute("data-mantine-color-scheme", "dark")
    expect(page.locator("#fleet-latency .legendtext").first).to_have_css("fill", "rgb(227, 232, 238)")
    page.get_by_role("button", name="Switch between dark and light").click()
    expect(page.locator("html")).to_have_attribute("data-mantine-color-scheme", "light")
    expect(page.locator("#fleet-latency .legendtext").first).to_have_css("fill", "rgb(27, 39, 51)")


@pytest.mark.parametrize(("width", "height"), [(1366, 768), (2560, 1440)])
@pytest.mark.parametrize("path", ["/", "/cluster/orders-eu", "/alerts", "/review"])
def test_no_page_is_wider_than_the_screen(
    live: Live, open_page: OpenPage, path: str, width: int, height: int
) -> None:
    page = open_page(f"{live[0].url}{path}", width=width, height=height)
    expect(page.locator("h1")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_definitions_can_be_opened_by_keyboard(live: Live, open_page: OpenPage) -> None:
    page = open_page(live[0].url)
    page.get_by_role("button", name=re.compile("^Definition: Latency p99 over clusters")).focus()
    expect(page.get_by_role("tooltip")).to_contain_text("by nearest rank")


def test_an_empty_lake_shows_the_next_steps(
    tmp_path: Path, serve_lake: ServeLake, open_page: OpenPage
) -> None:
    site = serve_lake(tmp_path / "none")
    for path in ("/", "/cluster/orders-eu", "/alerts", "/review"):
        page = open_page(f"{site.url}{path}")
        expect(page.locator(".fg-empty")).to_contain_text("No data yet")
        expect(page.locator(".fg-empty")).to_contain_text("fleetgauge probe --config fleet.yaml")
        expect(page.locator("#age")).to_have_text("no data yet")


def test_a_page_updates_when_data_arrives(tmp_path: Path, serve_lake: ServeLake, open_page: OpenPage) -> None:
    page = open_page(serve_lake(tmp_path).url)
    expect(page.locator(".fg-empty")).to_contain_text("No data yet")
    write(tmp_path, datetime.now(UTC))
    expect(page.locator("#fleet-cards")).to_contain_text("43.1 ms", timeout=15_000)
    expect(page.locator(".ag-center-cols-container [row-index='0']")).to_contain_text("orders-eu")


def test_stale_data_shows_a_banner(tmp_path: Path, serve_lake: ServeLake, open_page: OpenPage) -> None:
    write(tmp_path, datetime.now(UTC) - timedelta(minutes=12))
    page = open_page(serve_lake(tmp_path).url)
    # Another minute may pass while the page is loaded.
    assert re.search(r"STALE: no new data for 1[23] min", _banners(page))
    expect(page.locator("#age")).to_have_class(re.compile("fg-chip--bad"))
    expect(page.locator(".ag-center-cols-container")).to_contain_text(re.compile("◌ NO DATA for 1[23] min"))


def test_a_held_back_week_shows_a_banner_on_pages_of_weeks(
    tmp_path: Path, serve_lake: ServeLake, open_page: OpenPage
) -> None:
    times = write(tmp_path, datetime.now(UTC))
    since = times.now - timedelta(hours=2)
    expectation = "expect_column_values_to_be_between(week_availability_max)"
    verdict = {"suite": "gold", "success": False, "expectation": expectation, "at": since}
    weeks = [times.week, times.week + timedelta(days=7)]
    put(tmp_path, tables.QUALITY, [verdict | {"check_id": str(week), "week": week} for week in weeks])
    site = serve_lake(tmp_path)
    messages = [
        f"Week of {week:%a %d %b %Y} is held back since {since:%Y-%m-%d %H:%M:%S UTC}:" for week in weeks
    ]
    for path in ("/", "/cluster/orders-eu"):
        page = open_page(f"{site.url}{path}")
        banners = _banners(page)
        assert f"{messages[0]}\n{expectation}; the last good revision is shown" in banners
        assert f"{messages[1]}\n{expectation}; there is no good revision yet" in banners
    page = open_page(f"{site.url}/alerts")
    expect(page.locator("h1")).to_have_text("Alerts: 1 open")
    expect(page.locator("#banners")).not_to_contain_text("held back")


def test_an_unreadable_table_shows_an_error(
    tmp_path: Path, serve_lake: ServeLake, open_page: OpenPage
) -> None:
    write(tmp_path, datetime.now(UTC))
    for table in ("gold/cluster_weeks", "ops/health_events"):
        (commit,) = (tmp_path / table / "_delta_log").glob("*.json")
        commit.write_text("{broken")
    page = open_page(serve_lake(tmp_path).url)
    expect(page.locator(".fg-empty--bad")).to_contain_text("gold/cluster_weeks:")
    assert "Open alerts are unknown" in _banners(page)


def test_a_page_without_its_server_is_marked(live: Live, open_page: OpenPage) -> None:
    page = open_page(live[0].url)
    expect(page.locator("#age")).to_contain_text("data age")
    page.clock.install()
    page.reload()
    expect(page.locator("#age")).to_contain_text("data age")
    page.route(re.compile("/_dash-update-component"), lambda route: None)
    page.clock.run_for(40_000)
    expect(page.locator("#age")).to_contain_text("server not answering")


def _get(address: str) -> tuple[int, Any]:
    with urlopen(address, timeout=5) as response:
        return response.status, json.loads(response.read())


def test_readiness_reports_readable_tables(live: Live, tmp_path: Path, serve_lake: ServeLake) -> None:
    assert _get(f"{live[0].url}/livez") == (200, {"status": "ok"})
    status, health = _get(f"{live[0].url}/readyz")
    assert status == 200
    assert health["tables"]["gold/cluster_weeks"] == {"version": 0, "state": "readable", "error": None}
    assert (health["status"], health["data"]["fleet"]["state"]) == ("ok", "fresh")
    assert _get(f"{live[0].url}/readyz?strict")[0] == 200
    empty = serve_lake(tmp_path).url
    status, health = _get(f"{empty}/readyz")
    assert (status, health["status"]) == (200, "none")
    assert health["tables"]["gold/cluster_weeks"]["state"] == "absent"
    with pytest.raises(HTTPError, match="503"):
        _get(f"{empty}/readyz?strict")


def test_response_durations_are_counted_by_page(live: Live, open_page: OpenPage) -> None:
    site, _ = live
    expect(open_page(site.url).locator("h1")).to_be_visible()
    with urlopen(f"{site.url}/metrics") as response:
        counted = samples(response.read().decode(), "fleetgauge_dash_answer_duration_seconds_count")
    assert counted[("fleet",)] > 0


def test_links_stay_in_the_selected_fleet(
    live: Live, open_page: OpenPage, serve_lake: ServeLake, tmp_path: Path
) -> None:
    _, times = live
    write(tmp_path / "past", times.now - timedelta(days=21))
    past = ServedFleet("past", str(tmp_path / "past"), simulated=True)
    page = open_page(serve_lake(tmp_path / "empty", times.now, beside=[past]).url)
    expect(page.locator("#page")).to_contain_text("No data yet")

    page.locator("#fleets").get_by_role("link", name="past, simulated").click()
    expect(page.locator("h1")).to_contain_text("Fleet, week of")
    assert "SIMULATED. The data of past is synthetic" in _banners(page).replace("\n", " ")
    expect(page.locator("#fleets [aria-current=true]")).to_have_text("past, simulated")
    page.locator(".ag-center-cols-container [row-index='0'] a").click()
    expect(page.locator("h1")).to_contain_text("orders-eu, week of")
    page.get_by_role("link", name="Alerts of this cluster").click()
    expect(page.locator("h1")).to_contain_text("Alerts of orders-eu")
    page.get_by_role("link", name="Cluster at that time").first.click()
    expect(page.locator("h1")).to_contain_text("orders-eu, week of")
    page.locator("#nav").get_by_role("link", name="Fleet").click()
    expect(page.locator("h1")).to_contain_text("Fleet, week of")
    assert page.url.endswith("/?fleet=past")

    page.locator("#fleets").get_by_role("link", name="fleet", exact=True).click()
    expect(page.locator("#page")).to_contain_text("No data yet")
    expect(page.locator("#banners")).not_to_contain_text("SIMULATED")


def test_an_unknown_fleet_shows_a_notice(live: Live, open_page: OpenPage) -> None:
    site, _ = live
    page = open_page(f"{site.url}/?fleet=gone")
    expect(page.locator("#page")).to_contain_text("No fleet named gone")
    page.get_by_role("link", name="Go to the first fleet").click()
    expect(page.locator("h1")).to_contain_text("Fleet, week of")
