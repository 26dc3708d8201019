"""Data quality: what was refused, what came late, what changed afterwards."""

from collections.abc import Sequence

from dash import html

from fleetgauge_dashboards.figures.refused import HEIGHT, refused
from fleetgauge_dashboards.figures.theme import Theme
from fleetgauge_dashboards.links import QualityView, WhyView
from fleetgauge_dashboards.pages.page import Context, Page, Rows, Slots
from fleetgauge_dashboards.pages.parts import Component, chart, file_link, link, number_card, panel, table
from fleetgauge_dashboards.reader.trust import LOOK_BACK, TrustReader
from fleetgauge_dashboards.units import NOTHING, instant
from fleetgauge_dashboards.views.trust import Gate, RevisedWeek, Trusted, trusted

#: Revisions listed, newest first.
SHOWN = 50


def body() -> list[Component]:
    days = f"{LOOK_BACK.days} days"
    return [
        html.Div(id="quality-title", className="fg-titlerow"),
        html.Div(id="quality-cards", className="fg-cards"),
        html.Div(
            [
                panel(
                    f"Records refused, {days}",
                    "quarantine",
                    chart("quality-refused", HEIGHT, "Records in quarantine by day and reason"),
                ),
                panel(f"Gates, {days}", "gates", html.Div(id="quality-gates")),
                panel("Weeks revised after closing", "revisions", html.Div(id="quality-revised")),
            ],
            className="fg-panels",
        ),
    ]


def fill(view: QualityView, context: Context, look: Theme) -> Slots:
    found = _trusted(context)
    return {
        "quality-title.children": [
            html.H1("Data quality"),
            html.Span("all times UTC", className="fg-sub"),
            file_link("Gates as CSV", view),
        ],
        "quality-cards.children": [number_card(number) for number in found.numbers],
        "quality-refused.figure": refused(found.refused, look),
        "quality-gates.children": _gates(found.gates),
        "quality-revised.children": _revised(found.revised, view),
    }


def _trusted(context: Context) -> Trusted:
    now = context.clock()
    return trusted(TrustReader(context.lake).trust(now, context.fresh().until), now, LOOK_BACK.days)


def _gates(found: Sequence[Gate]) -> Component:
    if not found:
        return html.P("No gate was checked: no batch of the pipeline ran.", className="fg-note")
    rows = [
        (
            "● holds" if gate.holds else html.Strong("▲ does not hold", className="fg-missed"),
            gate.suite,
            gate.expectation,
            f"{gate.failed:,} of {gate.checks:,}",
            instant(gate.last),
            gate.observed or NOTHING,
        )
        for gate in found
    ]
    return table("Gates", ("Now", "Suite", "Expectation", "Failed", "Last checked", "Observed"), rows)


def _revised(found: Sequence[RevisedWeek], view: QualityView) -> Component:
    if not found:
        return html.P("No closed week was changed.", className="fg-note")
    rows = [
        (
            link(one.cluster_id, WhyView(one.cluster_id, one.week, fleet=view.fleet)),
            f"{one.week:%a %d %b %Y}",
            f"{one.revision}",
            one.reason,
            instant(one.computed_at) if one.computed_at else NOTHING,
        )
        for one in found[:SHOWN]
    ]
    more = len(found) - SHOWN
    said = html.P(f"and {more:,} older ones", className="fg-note") if more > 0 else None
    return html.Div([table("Revisions", ("Cluster", "Week", "Revision", "Why", "Computed"), rows), said])


def rows(_view: QualityView, context: Context) -> Rows:
    """One line a gate."""
    columns = ("suite", "expectation", "checks", "failed", "last", "holds", "observed")
    gates = _trusted(context).gates
    return Rows(columns, [{name: getattr(gate, name) for name in columns} for gate in gates])


PAGE = Page(
    name="quality",
    view=QualityView,
    slots=(
        "quality-title.children",
        "quality-cards.children",
        "quality-refused.figure",
        "quality-gates.children",
        "quality-revised.children",
    ),
    body=body,
    fill=fill,
    rows=rows,
)
