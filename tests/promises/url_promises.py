"""Addresses of pages: paths and query keys."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any, get_args
from urllib.parse import parse_qsl, unquote

from fleetgauge_dashboards.links import (
    DisplayOptions,
    PageView,
    TableView,
    Window,
    csv_href,
    href,
    parse_view,
)
from tests.promises.specimens import specimen


def collect() -> Iterator[str]:
    for kind in get_args(PageView):
        for view in _build_views(kind):
            yield from _describe_view(view)


def _build_views(kind: Any) -> Iterator[Any]:
    """Yield views with a value for every key, with a window and with a span where both are possible."""
    for choice in (0, 1):
        view = replace(specimen(kind, choice), display=DisplayOptions("fleet", "Europe/Berlin", wall=True))
        yield view
        if hasattr(view, "shown"):
            yield replace(view, shown=Window.WEEK)


def _describe_view(view: Any) -> Iterator[str]:
    path, _, query = href(view).partition("?")
    assert parse_view(path, query) == view, f"{href(view)} parses to another view"
    shown = _placeholders(unquote(path))
    yield f"page {shown}"
    yield from (f"page {shown}?{key}" for key, _ in parse_qsl(query))
    for address in (csv_href(view, "part"), href(TableView(view, "part"))):
        path, _, query = address.partition("?")
        yield from (f"numbers {path}?{key}" for key, _ in parse_qsl(query))


def _placeholders(path: str) -> str:
    """Return the path with data segments, such as cluster ids, replaced by a star."""
    words = path.split("/")
    data = {after for before, after in pairwise(words) if before in ("cluster", "broker", "minute")}
    return "/".join("*" if word in data else word for word in words)
