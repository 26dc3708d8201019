"""The review as a page's components and as files to take away."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from dash.development.base_component import Component
from flask.testing import FlaskClient

from fleetgauge_dashboards.app import create_app
from fleetgauge_dashboards.identity import NoLogin
from fleetgauge_dashboards.pages.markdown_components import marked
from fleetgauge_dashboards.report.blocks import text
from fleetgauge_dashboards.served_fleets import ShownFleet
from tests.unit.dashboards.terminal.test_report import END, WEEK, write

HOSTILE = "<img src=x onerror=alert(1)> [a](javascript:alert(2)) | `b`"


def said(component: object) -> str:
    """All text, as a reader meets it."""
    if isinstance(component, Component):
        return said(getattr(component, "children", None))
    if isinstance(component, list | tuple):
        return "".join(map(said, component))
    return "" if component is None else str(component)


def named(components: list[Component], name: str) -> list[Component]:
    found = [one for one in components if type(one).__name__ == name]
    for one in components:
        inside = getattr(one, "children", None)
        inside = inside if isinstance(inside, list) else [inside]
        found += named([part for part in inside if isinstance(part, Component)], name)
    return found


def test_markdown_becomes_components() -> None:
    shown = marked("## A\n\nb **c** `d` [e](</f?g=h>)\n\n| i | j |\n| --- | ---: |\n| 1 | 2 |\n\n- k\n")
    assert [type(one).__name__ for one in shown] == ["H2", "P", "Div", "Ul"]
    assert said(shown) == "Ab c d eij12k"
    assert [one.href for one in named(shown, "A")] == ["/f?g=h"]
    assert [one.className for one in named(shown, "Td")] == [None, "fg-number"]


def test_text_stays_text() -> None:
    shown = marked(f"| a |\n| --- |\n| {text(HOSTILE)} |\n\n{text(HOSTILE)}\n\n{HOSTILE}")
    assert said(named(shown, "Td")) == HOSTILE
    assert said(shown).count("<img src=x onerror=alert(1)>") == 3
    assert named(shown, "A") == named(shown, "Img") == []


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> FlaskClient:
    root = tmp_path_factory.mktemp("review")
    write(root / "a")
    write(root / "b")
    fleets = [ShownFleet("a", str(root / "a")), ShownFleet("b <i>", str(root / "b"))]
    return create_app(
        fleets, NoLogin("tester"), clock=lambda: datetime(2026, 3, 20, tzinfo=UTC)
    ).server.test_client()


def test_the_file_is_what_the_command_writes(client: FlaskClient) -> None:
    found = client.get(f"/review/{WEEK}.html")
    assert found.headers["Content-Disposition"] == f'attachment; filename="review-{WEEK}.html"'
    assert "<title>a: week of 2026-03-02</title>" in found.text
    assert "<td>orders-eu</td>" in found.text
    words = client.get(f"/review/{WEEK}.md?fleet=b%20%3Ci%3E")
    assert words.mimetype == "text/markdown"
    assert words.text.startswith("# Weekly reliability review: b \\<i\\>\n")


@pytest.mark.parametrize(
    "address",
    [
        "/review/2020-01-06.html",
        "/review/%3Cscript%3E.md",
        f"/review/{WEEK}.html?fleet=c",
        f"/review/{'9' * 5000}.html",
    ],
)
def test_a_week_that_is_not_there_is_not_found(client: FlaskClient, address: str) -> None:
    found = client.get(address)
    assert (found.status_code, found.mimetype, found.text) == (404, "text/plain", "there is no such week\n")


@pytest.mark.parametrize("address", [f"/review/{WEEK}.pdf", "/review/..%2F..%2Fetc%2Fpasswd.html"])
def test_any_other_address_is_a_page_of_the_application(client: FlaskClient, address: str) -> None:
    found = client.get(address)
    assert 'id="react-entry-point"' in found.text
    assert "Content-Disposition" not in found.headers


def test_a_broken_table_is_one_line(tmp_path: Path) -> None:
    write(tmp_path)
    for commit in (tmp_path / "gold/cluster_weeks/_delta_log").glob("*.json"):
        commit.write_text("{broken")
    client = create_app(
        [ShownFleet("a", str(tmp_path))], NoLogin("tester"), clock=lambda: END
    ).server.test_client()
    found = client.get(f"/review/{WEEK}.html")
    assert (found.status_code, found.mimetype) == (503, "text/plain")
    assert found.text.startswith("gold/cluster_weeks: ")
    assert found.text.count("\n") == 1
