"""A page whose read outlasts the wait, the minute and the lake's versions is shown when the read is done."""

import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any, cast

import pytest
from dash import Dash, html
from flask import Flask

from fleetgauge_dashboards.links import FleetView
from fleetgauge_dashboards.pages.page import Page, PageContext, register
from fleetgauge_dashboards.single_flight import SingleFlight
from tests.unit.dashboards.served import NOW, open_lake, visible_text
from tests.waiting import wait_until


class RecordedApp:
    """An application that keeps the function of the last callback in place of serving it."""

    respond: Callable[..., dict[str, Any]]

    def callback(self, **_slots: object) -> Callable[[Callable[..., dict[str, Any]]], None]:
        def keep(respond: Callable[..., dict[str, Any]]) -> None:
            self.respond = respond

        return keep


class BlockedRead:
    """A read of a page that ends when told to, and counts how often it began."""

    def __init__(self) -> None:
        self.started = 0
        self.may_end = threading.Event()

    def fill(self, _view: object, _context: PageContext, _theme: object) -> dict[str, Any]:
        self.started += 1
        self.may_end.wait(30)
        return {"content.children": "the clusters"}


@pytest.fixture
def blocked_read() -> Iterator[BlockedRead]:
    read = BlockedRead()
    yield read
    read.may_end.set()


def test_a_read_that_outlasts_the_minute_is_asked_for_until_it_is_shown(
    tmp_path: Path, blocked_read: BlockedRead
) -> None:
    lake = open_lake(tmp_path).context
    minutes = count()
    context = PageContext(lake.fleet, lake.lake, lambda: NOW + timedelta(minutes=next(minutes)))
    app = RecordedApp()
    page = Page("slow", FleetView, ("content.children",), html.Div, blocked_read.fill)
    register(cast("Dash", app), page, {None: context}, SingleFlight(timeout_s=1), lambda _name, _s: None)

    def respond() -> dict[str, Any]:
        with Flask("slow").test_request_context():
            return app.respond("/", "", "light", None, tick=1, retry=None)

    pending = respond()
    assert "The lake answers slowly" in visible_text(pending["notice"])
    assert pending["retry_off"] is False
    assert respond()["retry_off"] is False
    assert blocked_read.started == 1
    blocked_read.may_end.set()
    wait_until(lambda: respond()["retry_off"], 10, "the page", 0.01)
    assert respond()["content.children"] == "the clusters"
