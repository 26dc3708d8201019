"""Operators acknowledge, judge and correct, which all users see; viewers are rejected."""

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from playwright.sync_api import expect

from fleetgauge_core import tables
from fleetgauge_dashboards.identity import LINK_ADVICE, Login, ProxyLogin
from fleetgauge_dashboards.site_address import TrustedProxies
from tests.browser.conftest import LOCAL_LOGIN, OpenPage, ServeLake, Site
from tests.browser.lake import end_within_one_week, put, write
from tests.read_only import mounted_read_only

HEADER = "X-Forwarded-User"
PROXY_LOGIN = ProxyLogin(HEADER, TrustedProxies.parse(["127.0.0.1"]), frozenset({"ada"}))


@pytest.fixture
def site(tmp_path: Path, serve_lake: ServeLake) -> Site:
    return _serve(tmp_path, serve_lake)


def _serve(root: Path, serve_lake: ServeLake, login: Login = PROXY_LOGIN) -> Site:
    now = datetime.now(UTC)
    end = end_within_one_week(now)
    write(root, end)
    put(root, tables.ACTIONS, [])
    put(root, tables.CORRECTIONS, [])
    return serve_lake(root, login=login, behind=now - end)


def test_an_operators_acknowledgement_is_visible_to_all_users(site: Site, open_page: OpenPage) -> None:
    page = open_page(f"{site.url}/alerts", headers={HEADER: "ada"})
    page.get_by_role("button", name="Acknowledge", exact=True).click()
    expect(page.locator("#alerts-said")).to_have_text(
        "● Acknowledged: BROKER_DOWN, orders-eu broker 2, as ada."
    )
    expect(page.locator("#alerts-open")).to_contain_text("acknowledged by ada")
    expect(page.get_by_role("button", name="Acknowledge", exact=True)).to_have_count(0)
    other = open_page(site.url, headers={HEADER: "bob"})
    expect(other.locator("#banners")).to_contain_text("acknowledged by ada")


def test_a_viewers_acknowledgement_is_rejected(site: Site, open_page: OpenPage) -> None:
    page = open_page(f"{site.url}/alerts", headers={HEADER: "bob"})
    page.get_by_role("button", name="Acknowledge", exact=True).click()
    expect(page.locator("#alerts-said")).to_contain_text("Not acknowledged: bob is a viewer")
    expect(page.get_by_role("button", name="Acknowledge", exact=True)).to_have_count(1)


def test_a_local_user_becomes_an_operator_by_the_link(
    tmp_path: Path, serve_lake: ServeLake, open_page: OpenPage
) -> None:
    site = _serve(tmp_path, serve_lake, LOCAL_LOGIN)
    page = open_page(f"{site.url}/alerts")
    page.get_by_role("button", name="Acknowledge", exact=True).click()
    expect(page.locator("#alerts-said")).to_have_text(
        f"✕ Not acknowledged: anonymous is a viewer: {LINK_ADVICE}."
    )
    page.goto(f"{site.url}/operator?key={LOCAL_LOGIN.key}")
    expect(page).to_have_url(f"{site.url}/")
    page.get_by_role("navigation", name="Pages").get_by_role("link", name="Alerts").click()
    page.get_by_role("button", name="Acknowledge", exact=True).click()
    expect(page.locator("#alerts-said")).to_have_text(
        "● Acknowledged: BROKER_DOWN, orders-eu broker 2, as tester."
    )


def test_an_operators_judgement_updates_the_weeks_precision(site: Site, open_page: OpenPage) -> None:
    page = open_page(f"{site.url}/alerts?alert=past-0", headers={HEADER: "ada"})
    expect(page.locator("#alerts-cards")).to_contain_text("2 alerts not judged")
    page.get_by_role("button", name="It was a false alarm").click()
    expect(page.locator("#alerts-said")).to_contain_text("● Judged false alarm: BROKER_DOWN")
    expect(page.locator("#alerts-history")).to_contain_text("judged false alarm by ada")
    expect(page.locator("#alerts-cards")).to_contain_text("0.0%")
    page.get_by_role("button", name="It was right").click()
    expect(page.locator("#alerts-cards")).to_contain_text("100%")


def test_an_operator_excludes_the_displayed_minutes(site: Site, open_page: OpenPage) -> None:
    page = open_page(f"{site.url}/cluster/orders-eu", headers={HEADER: "ada"})
    page.get_by_text("Exclude the displayed minutes from the service levels").click()
    page.get_by_label("Reason").fill("disk swapped")
    page.get_by_role("button", name="Exclude", exact=True).click()
    expect(page.locator("#correct-said")).to_contain_text("Not excluded: the time range is not fixed")
    page.get_by_role("link", name="Permanent link to this time range").click()
    expect(page.locator("#cluster-span")).to_contain_text("fixed")
    page.get_by_role("button", name="Exclude", exact=True).click()
    expect(page.locator("#correct-said")).to_contain_text(
        "by ada takes effect with the next batch of fleetgauge stream."
    )
    expect(page.locator("#cluster-latency .annotation-text").last).to_contain_text("excluded, disk swapped")
    other = open_page(page.url, headers={HEADER: "bob"})
    other.get_by_text("Exclude the displayed minutes from the service levels").click()
    other.get_by_label("Reason").fill("me too")
    other.get_by_role("button", name="Exclude", exact=True).click()
    expect(other.locator("#correct-said")).to_contain_text("Not excluded: bob is a viewer")


def test_over_a_read_only_lake_the_buttons_are_disabled_with_the_reason(
    tmp_path: Path, serve_lake: ServeLake, open_page: OpenPage
) -> None:
    site = _serve(tmp_path, serve_lake)
    with mounted_read_only(tmp_path):
        page = open_page(f"{site.url}/alerts?alert=past-0", headers={HEADER: "ada"})
        for name in ("Acknowledge", "It was right", "It was a false alarm"):
            button = page.get_by_role("button", name=name, exact=True)
            expect(button).to_be_disabled()
            expect(button).to_have_accessible_description(re.compile("The lake is read-only here"))
        expect(page.locator("#alerts-title")).to_contain_text("The lake is read-only here")
        page.goto(f"{site.url}/cluster/orders-eu")
        page.get_by_text("Exclude the displayed minutes from the service levels").click()
        expect(page.get_by_role("button", name="Exclude", exact=True)).to_be_disabled()
        expect(page.locator("#correct-read-only")).to_have_text(
            "Not possible: the lake is read-only here; use fleetgauge correct add where the stream runs."
        )
