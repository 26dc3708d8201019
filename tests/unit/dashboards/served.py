"""Pages over a small lake of known values, rendered without a browser."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from dash.development.base_component import Component

from fleetgauge_dashboards.figures.theme import LIGHT
from fleetgauge_dashboards.identity import LoopbackLogin
from fleetgauge_dashboards.links import View
from fleetgauge_dashboards.pages.page import Page, PageContext
from fleetgauge_dashboards.reader import LakeReader
from fleetgauge_dashboards.served_fleets import ServedFleet
from tests.browser.lake import LakeTimes, write

NOW = datetime(2026, 3, 5, 12, 0, tzinfo=UTC)
LOCAL_LOGIN = LoopbackLogin("tester", "key-of-operators")


@dataclass(frozen=True, slots=True)
class LakeFixture:
    """A lake with known values, and the context of its pages."""

    root: Path
    known: LakeTimes
    context: PageContext

    def fill(self, page: Page, view: View) -> Any:
        return page.fill(view, self.context, LIGHT)


def open_lake(root: Path) -> LakeFixture:
    known = write(root, NOW)
    context = PageContext(
        ServedFleet("fleet", str(root)), LakeReader(str(root)), lambda: NOW + timedelta(seconds=30)
    )
    return LakeFixture(root, known, context)


def visible_text(component: object) -> str:
    """Return all text of a component in reading order, joined by spaces."""
    if isinstance(component, Component):
        return visible_text(getattr(component, "children", None))
    if isinstance(component, list | tuple):
        return " ".join(filter(None, map(visible_text, component)))
    return "" if component is None else str(component)
