"""The dashboards' server: its addresses, its health, and the columns behind each part of a page.

It takes seconds, so it is compared by tests/unit/promises and not by `make check`.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from http import HTTPStatus
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from flask.testing import FlaskClient

from fleetgauge_dashboards.app import PAGES, create_app
from fleetgauge_dashboards.identity import LoopbackLogin
from fleetgauge_dashboards.links import TableView, csv_href
from fleetgauge_dashboards.served_fleets import ServedFleet
from tests.browser import lake as minutes_lake
from tests.browser import recovery_lake
from tests.browser.lake import ORDERS
from tests.promises.key_paths import list_fields, paths_of_value
from tests.promises.run_promises import NOW
from tests.promises.specimens import specimen

#: Values of the fields that select what a view shows.
_SELECTION = {"cluster_id": ORDERS, "broker_id": 1, "minute": NOW - timedelta(minutes=20)}
_INTERNAL_PREFIXES = ("/_", "/assets", "/<path:path>")
_KEYED_BY_DATA = frozenset({"data", "fleets"})


def collect() -> Iterator[str]:
    with TemporaryDirectory() as folder:
        minutes_lake.write(Path(folder), NOW)
        recovery_lake.write(Path(folder), NOW)
        app = create_app([_fleet(folder)], LoopbackLogin("who", "key-of-operators"), clock=lambda: NOW)
        yield from (
            f"address {rule}" for rule in app.server.url_map.iter_rules() if not _is_internal(str(rule))
        )
        client = app.server.test_client()
        yield from _health(client)
        for page in PAGES:
            yield from _describe_page(page, client)


def _fleet(lake: str) -> ServedFleet:
    return ServedFleet(
        "fleet", lake, regions=recovery_lake.REGIONS, mirrors=recovery_lake.MIRRORS, pairs=recovery_lake.PAIRS
    )


def _is_internal(rule: str) -> bool:
    return rule == "/" or rule.startswith(_INTERNAL_PREFIXES)


def _health(client: FlaskClient) -> Iterator[str]:
    for address in ("/livez", "/readyz"):
        yield from (f"{address}: {path}" for path in paths_of_value(client.get(address).json, _KEYED_BY_DATA))


def _describe_page(page: Any, client: FlaskClient) -> Iterator[str]:
    """Yield the parts of a page, and the columns of each part's CSV file."""
    yield f"page {page.name}"
    if page.view is not TableView:
        for part in page.parts:
            header, *_ = _download(client, csv_href(_build_view(page.view), part.name)).splitlines()
            yield f"page {page.name}: part {part.name}"
            yield from (f"page {page.name}: part {part.name}: column {name}" for name in header.split(","))


def _download(client: FlaskClient, address: str) -> str:
    response = client.get(address)
    if response.status_code != HTTPStatus.OK:
        raise RuntimeError(f"{address}: {response.status}: {response.text}")
    return response.text


def _build_view(kind: type) -> Any:
    """Return view parameters for the newest week and minutes of a cluster in the lake."""
    arguments = {name: value for name, value in _SELECTION.items() if name in list_fields(kind)}
    try:
        return kind(**arguments)
    except TypeError:
        return replace(specimen(kind), **arguments)
