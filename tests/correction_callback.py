"""The request by which the form on a cluster's page adds a correction."""

from fleetgauge_dashboards.security_headers import TOKEN_COOKIE, TOKEN_HEADER
from tests.browser.lake import ORDERS

CALLBACK = "/_dash-update-component"


def build_body(search: str = "") -> dict[str, object]:
    """Return the body for the minutes that ``search``, the query of the page's URL, selects."""
    return {
        "output": "correct-said.children",
        "outputs": {"id": "correct-said", "property": "children"},
        "inputs": [{"id": "correct-do", "property": "n_clicks", "value": 1}],
        "changedPropIds": ["correct-do.n_clicks"],
        "state": [
            {"id": "correct-reason", "property": "value", "value": "try"},
            {"id": "correct-broker", "property": "value", "value": None},
            {"id": "url", "property": "pathname", "value": f"/cluster/{ORDERS}"},
            {"id": "url", "property": "search", "value": search},
        ],
    }


def build_headers(origin: str, *cookies: str) -> dict[str, str]:
    """Return the headers with the token of a page of ``origin``."""
    return {
        "Content-Type": "application/json",
        "Cookie": "; ".join((f"{TOKEN_COOKIE}=token", *cookies)),
        TOKEN_HEADER: "token",
        "Origin": origin,
    }
