"""The review as components of a page and as downloads."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from dash.development.base_component import Component
from flask.testing import FlaskClient

from fleetgauge_dashboards.app import create_app
from fleetgauge_dashboards.pages.markdown_components import convert_markdown
from fleetgauge_dashboards.report.markdown_blocks import escape
from fleetgauge_dashboards.served_fleets import ServedFleet
from tests.unit.dashboards.served import LOCAL_LOGIN
from tests.unit.dashboards.terminal.test_report import END, WEEK, write

HOSTILE = "<img src=x onerror=alert(1)> [a](javascript:alert(2)) | `b`"


def visible_text(component: object) -> str:
    """Return all text of a component in reading order."""
    if isinstance(component, Component):
        return visible_text(getattr(component, "children", None))
    if isinstance(component, list | tuple):
        return "".join(map(visible_text, component))
    return "" if component is None else str(component)


def find_components(components: list[Component], name: str) -> list[Component]:
    """Return the components of a type, at any depth."""
    matches = [component for component in components if type(component).__name__ == name]
    for component in components:
        children = getattr(component, "children", None)
        children = children if isinstance(children, list) else [children]
        matches += find_components([child for child in children if isinstance(child, Component)], name)
    return matches


def test_markdown_becomes_components() -> None:
    components = convert_markdown(
        "## A\n\nb **c** `d` [e](</f?g=h>)\n\n| i | j |\n| --- | ---: |\n| 1 | 2 |\n\n- k\n"
    )
    assert [type(component).__name__ for component in components] == ["H2", "P", "Div", "Ul"]
    assert visible_text(components) == "Ab c d eij12k"
    assert [anchor.href for anchor in find_components(components, "A")] == ["/f?g=h"]
    assert [cell.className for cell in find_components(components, "Td")] == [None, "fg-number"]


def test_html_and_links_in_markdown_stay_text() -> None:
    components = convert_markdown(f"| a |\n| --- |\n| {escape(HOSTILE)} |\n\n{escape(HOSTILE)}\n\n{HOSTILE}")
    assert visible_text(find_components(components, "Td")) == HOSTILE
    assert visible_text(components).count("<img src=x onerror=alert(1)>") == 3
    assert find_components(components, "A") == find_components(components, "Img") == []


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> FlaskClient:
    root = tmp_path_factory.mktemp("review")
    write(root / "a")
    write(root / "b")
    fleets = [ServedFleet("a", str(root / "a")), ServedFleet("b <i>", str(root / "b"))]
    return create_app(
        fleets, LOCAL_LOGIN, clock=lambda: datetime(2026, 3, 20, tzinfo=UTC)
    ).server.test_client()


def test_a_download_is_the_file_that_the_command_writes(client: FlaskClient) -> None:
    response = client.get(f"/review/{WEEK}.html")
    assert response.headers["Content-Disposition"] == f'attachment; filename="review-{WEEK}.html"'
    assert "<title>a: week of 2026-03-02</title>" in response.text
    assert "<td>orders-eu</td>" in response.text
    markdown_response = client.get(f"/review/{WEEK}.md?fleet=b%20%3Ci%3E")
    assert markdown_response.mimetype == "text/markdown"
    assert markdown_response.text.startswith("# Weekly reliability review: b \\<i\\>\n")


@pytest.mark.parametrize(
    "url",
    [
        "/review/2020-01-06.html",
        "/review/%3Cscript%3E.md",
        f"/review/{WEEK}.html?fleet=c",
        f"/review/{'9' * 5000}.html",
    ],
)
def test_an_unknown_week_is_not_found(client: FlaskClient, url: str) -> None:
    response = client.get(url)
    assert (response.status_code, response.mimetype, response.text) == (
        404,
        "text/plain",
        "there is no such week\n",
    )


@pytest.mark.parametrize("url", [f"/review/{WEEK}.pdf", "/review/..%2F..%2Fetc%2Fpasswd.html"])
def test_any_other_url_is_a_page_of_the_application(client: FlaskClient, url: str) -> None:
    response = client.get(url)
    assert 'id="react-entry-point"' in response.text
    assert "Content-Disposition" not in response.headers


def test_an_unreadable_table_is_reported_in_one_line(tmp_path: Path) -> None:
    write(tmp_path)
    for commit in (tmp_path / "gold/cluster_weeks/_delta_log").glob("*.json"):
        commit.write_text("{broken")
    client = create_app(
        [ServedFleet("a", str(tmp_path))], LOCAL_LOGIN, clock=lambda: END
    ).server.test_client()
    response = client.get(f"/review/{WEEK}.html")
    assert (response.status_code, response.mimetype) == (503, "text/plain")
    assert response.text.startswith("gold/cluster_weeks: ")
    assert response.text.count("\n") == 1
