"""Pages over the small lake of known numbers, asked without a browser."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from dash.development.base_component import Component

from fleetgauge_dashboards.figures.theme import LIGHT
from fleetgauge_dashboards.links import View
from fleetgauge_dashboards.pages.page import Context, Page
from fleetgauge_dashboards.reader import Lake
from fleetgauge_dashboards.served_fleets import ShownFleet
from tests.browser.lake import Known, write

NOW = datetime(2026, 3, 5, 12, 0, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Served:
    """A lake, and what its pages are filled from."""

    root: Path
    known: Known
    context: Context

    def fill(self, page: Page, view: View) -> Any:
        return page.fill(view, self.context, LIGHT)


def served(root: Path) -> Served:
    known = write(root, NOW)
    context = Context(ShownFleet("fleet", str(root)), Lake(str(root)), lambda: NOW + timedelta(seconds=30))
    return Served(root, known, context)


def said(component: object) -> str:
    """All text, as a reader meets it."""
    if isinstance(component, Component):
        return said(getattr(component, "children", None))
    if isinstance(component, list | tuple):
        return " ".join(filter(None, map(said, component)))
    return "" if component is None else str(component)
