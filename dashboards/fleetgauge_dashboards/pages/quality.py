"""Data quality: what was refused, what came late, what changed afterwards."""

from collections.abc import Sequence
from dataclasses import asdict

from dash import html

from fleetgauge_dashboards.figures.quarantined import HEIGHT, refused
from fleetgauge_dashboards.figures.theme import Theme
from fleetgauge_dashboards.links import QualityView, WhyView
from fleetgauge_dashboards.pages.page import Context, Page, Part, Rows, Slots
from fleetgauge_dashboards.pages.parts import Component, chart, link, number_card, panel, table, tools
from fleetgauge_dashboards.reader.trust import LOOK_BACK, TrustReader
from fleetgauge_dashboards.times import Times
from fleetgauge_dashboards.units import NOTHING
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
                    tools=tools("quality", "refused", "quality-refused"),
                ),
                panel(
                    f"Gates, {days}", "gates", html.Div(id="quality-gates"), tools=tools("quality", "gates")
                ),
                panel(
                    "Weeks revised after closing",
                    "revisions",
                    html.Div(id="quality-revised"),
                    tools=tools("quality", "revised"),
                ),
            ],
            className="fg-panels",
        ),
    ]


def fill(view: QualityView, context: Context, look: Theme) -> Slots:
    found, times = _trusted(context), context.times(view)
    return {
        "quality-title.children": [html.H1("Data quality")],
        "quality-cards.children": [number_card(number) for number in found.numbers],
        "quality-refused.figure": refused(found.refused, look),
        "quality-gates.children": _gates(found.gates, times),
        "quality-revised.children": _revised(found.revised, view, times),
    }


def _trusted(context: Context) -> Trusted:
    now = context.clock()
    return trusted(TrustReader(context.lake).trust(now, context.fresh().until), now, LOOK_BACK.days)


def _gates(found: Sequence[Gate], times: Times) -> Component:
    if not found:
        return html.P("No gate was checked: no batch of the pipeline ran.", className="fg-note")
    rows = [
        (
            "● holds" if gate.holds else html.Strong("▲ does not hold", className="fg-missed"),
            gate.suite,
            gate.expectation,
            f"{gate.failed:,} of {gate.checks:,}",
            times.instant(gate.last),
            gate.observed or NOTHING,
        )
        for gate in found
    ]
    return table("Gates", ("Now", "Suite", "Expectation", "Failed", "Last checked", "Observed"), rows)


def _revised(found: Sequence[RevisedWeek], view: QualityView, times: Times) -> Component:
    if not found:
        return html.P("No closed week was changed.", className="fg-note")
    rows = [
        (
            link(one.cluster_id, WhyView(one.cluster_id, one.week, lens=view.lens)),
            f"{one.week:%a %d %b %Y}",
            f"{one.revision}",
            one.reason,
            times.instant(one.computed_at) if one.computed_at else NOTHING,
        )
        for one in found[:SHOWN]
    ]
    more = len(found) - SHOWN
    said = html.P(f"and {more:,} older ones", className="fg-note") if more > 0 else None
    return html.Div([table("Revisions", ("Cluster", "Week", "Revision", "Why", "Computed"), rows), said])


def _gate_rows(_view: QualityView, context: Context) -> Rows:
    return Rows(Gate.__slots__, [asdict(gate) for gate in _trusted(context).gates])


def _refused_rows(_view: QualityView, context: Context) -> Rows:
    """Records by day and reason."""
    found = _trusted(context).refused
    counted = [
        {"day": day, "reason": reason, "records": records}
        for reason, by_day in found.by_reason.items()
        for day, records in zip(found.days, by_day, strict=True)
        if records
    ]
    return Rows(("day", "reason", "records"), counted)


def _revised_rows(_view: QualityView, context: Context) -> Rows:
    return Rows(RevisedWeek.__slots__, [asdict(one) for one in _trusted(context).revised])


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
    parts=(
        Part("refused", "Records refused", _refused_rows),
        Part("gates", "Gates", _gate_rows),
        Part("revised", "Weeks revised after closing", _revised_rows),
    ),
)
