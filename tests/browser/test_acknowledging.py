"""An operator acknowledges, a viewer is refused; all who look see who has taken it on."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import expect

from fleetgauge_dashboards.people import ProxyLogin
from fleetgauge_pipelines import tables
from tests.browser.conftest import Open, Serve, Site
from tests.browser.lake import put, write

HEADER = "X-Forwarded-User"


@pytest.fixture
def site(tmp_path: Path, sites: Serve) -> Site:
    known = write(tmp_path, datetime.now(UTC))
    put(tmp_path, tables.ACTIONS, [])
    login = ProxyLogin(HEADER, frozenset({"127.0.0.1"}), frozenset({"ada"}))
    return sites(tmp_path, known.now + timedelta(seconds=30), login=login)


def test_an_operator_acknowledges_and_all_see_it(site: Site, look: Open) -> None:
    page = look(f"{site.url}/alerts", headers={HEADER: "ada"})
    page.get_by_role("button", name="Acknowledge").click()
    expect(page.locator("#alerts-said")).to_have_text(
        "● Acknowledged BROKER_DOWN: orders-eu broker 2, as ada."
    )
    expect(page.locator("#alerts-open")).to_contain_text("acknowledged by ada")
    expect(page.get_by_role("button", name="Acknowledge")).to_have_count(0)
    other = look(site.url, headers={HEADER: "bob"})
    expect(other.locator("#banners")).to_contain_text("acknowledged by ada")


def test_a_viewer_is_refused(site: Site, look: Open) -> None:
    page = look(f"{site.url}/alerts", headers={HEADER: "bob"})
    page.get_by_role("button", name="Acknowledge").click()
    expect(page.locator("#alerts-said")).to_contain_text("Not acknowledged: bob is a viewer")
    expect(page.get_by_role("button", name="Acknowledge")).to_have_count(1)
