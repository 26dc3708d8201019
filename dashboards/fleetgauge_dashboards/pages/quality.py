"""The page of data quality: quarantined, lost and late records, pipeline checks, and revised weeks."""

from collections.abc import Sequence
from dataclasses import asdict

from dash import html

from fleetgauge_dashboards.figures.quarantine import HEIGHT, plot_quarantined_records
from fleetgauge_dashboards.figures.theme import Theme
from fleetgauge_dashboards.links import QualityView, WhyView
from fleetgauge_dashboards.pages.components import (
    Component,
    chart,
    key_figure_card,
    link,
    panel,
    table,
    tools,
)
from fleetgauge_dashboards.pages.page import Page, PageContext, PagePart, Slots, TableRows
from fleetgauge_dashboards.reader.data_quality import LOOK_BACK, QualityReader
from fleetgauge_dashboards.times import TimeFormat
from fleetgauge_dashboards.units import NO_VALUE
from fleetgauge_dashboards.views.data_quality import (
    DataQuality,
    GateSummary,
    RevisedClusterWeek,
    summarize_data_quality,
)
from fleetgauge_dashboards.views.record_losses import RecordLoss, format_lost_records

#: Revisions listed, newest first.
MAX_REVISIONS = 50
#: Losses listed, newest first.
MAX_LOSSES = 50


def build_body() -> list[Component]:
    """Return the page's layout."""
    days = f"{LOOK_BACK.days} days"
    return [
        html.Div(id="quality-title", className="fg-titlerow"),
        html.Div(id="quality-cards", className="fg-cards"),
        html.Div(
            [
                panel(
                    f"Quarantined records, {days}",
                    "quarantine",
                    chart("quality-refused", HEIGHT, "Records in quarantine by day and reason"),
                    tools=tools("quality", "refused", "quality-refused"),
                ),
                panel(
                    f"Pipeline checks, {days}",
                    "gates",
                    html.Div(id="quality-gates"),
                    tools=tools("quality", "gates"),
                ),
                panel(
                    f"Records lost, {days}",
                    "losses",
                    html.Div(id="quality-losses"),
                    tools=tools("quality", "losses"),
                ),
                panel(
                    "Closed weeks that were revised",
                    "revisions",
                    html.Div(id="quality-revised"),
                    tools=tools("quality", "revised"),
                ),
            ],
            className="fg-panels",
        ),
    ]


def fill(view: QualityView, context: PageContext, theme: Theme) -> Slots:
    """Return the page's content."""
    quality, times = _assess_quality(context), context.time_format(view)
    return {
        "quality-title.children": [html.H1("Data quality")],
        "quality-cards.children": [key_figure_card(figure) for figure in quality.key_figures],
        "quality-refused.figure": plot_quarantined_records(quality.quarantined, theme),
        "quality-gates.children": _gates_table(quality.gates, times),
        "quality-losses.children": _losses_table(quality.losses, times),
        "quality-revised.children": _revisions_table(quality.revised, view, times),
    }


def _assess_quality(context: PageContext) -> DataQuality:
    now = context.clock()
    return summarize_data_quality(
        QualityReader(context.lake).read(now, context.assess_freshness().until), now, LOOK_BACK.days
    )


def _gates_table(gates: Sequence[GateSummary], times: TimeFormat) -> Component:
    if not gates:
        return html.P(
            "No check has run: the pipeline has processed no batch in this period.", className="fg-note"
        )
    rows = [
        (
            "● passes" if gate.holds else html.Strong("▲ fails", className="fg-missed"),
            gate.suite,
            gate.expectation,
            f"{gate.failed:,} of {gate.checks:,}",
            times.format_instant(gate.last),
            gate.observed or NO_VALUE,
        )
        for gate in gates
    ]
    return table(
        "Pipeline checks", ("State", "Suite", "Expectation", "Failed", "Last checked", "Observed"), rows
    )


def _losses_table(losses: Sequence[RecordLoss], times: TimeFormat) -> Component:
    if not losses:
        return html.P("No record was lost: the pipeline read all that its topics held.", className="fg-note")
    rows = [
        (
            times.format_instant(loss.at),
            format_lost_records([loss]),
            NO_VALUE if loss.missing_minutes is None else f"{loss.missing_minutes:,}",
            loss.detail,
        )
        for loss in losses[:MAX_LOSSES]
    ]
    more = len(losses) - MAX_LOSSES
    rest = html.P(f"and {more:,} older losses", className="fg-note") if more > 0 else None
    columns = ("Noticed", "Records", "Minutes missing in the lake", "What happened")
    return html.Div([table("Lost records", columns, rows), rest])


def _revisions_table(
    revised: Sequence[RevisedClusterWeek], view: QualityView, times: TimeFormat
) -> Component:
    if not revised:
        return html.P("No closed week was revised.", className="fg-note")
    rows = [
        (
            link(week.cluster_id, WhyView(week.cluster_id, week.week, display=view.display)),
            f"{week.week:%a %d %b %Y}",
            f"{week.revision}",
            week.reason,
            times.format_instant(week.computed_at) if week.computed_at else NO_VALUE,
        )
        for week in revised[:MAX_REVISIONS]
    ]
    more = len(revised) - MAX_REVISIONS
    rest = html.P(f"and {more:,} older revisions", className="fg-note") if more > 0 else None
    return html.Div([table("Revisions", ("Cluster", "Week", "Revision", "Reason", "Computed"), rows), rest])


def _read_gate_rows(_view: QualityView, context: PageContext) -> TableRows:
    return TableRows(GateSummary.__slots__, [asdict(gate) for gate in _assess_quality(context).gates])


def _read_quarantine_rows(_view: QualityView, context: PageContext) -> TableRows:
    """Return the number of quarantined records by day and reason."""
    quarantined = _assess_quality(context).quarantined
    rows = [
        {"day": day, "reason": reason, "records": records}
        for reason, by_day in quarantined.by_reason.items()
        for day, records in zip(quarantined.days, by_day, strict=True)
        if records
    ]
    return TableRows(("day", "reason", "records"), rows)


def _read_loss_rows(_view: QualityView, context: PageContext) -> TableRows:
    return TableRows(RecordLoss.__slots__, [asdict(loss) for loss in _assess_quality(context).losses])


def _read_revision_rows(_view: QualityView, context: PageContext) -> TableRows:
    return TableRows(
        RevisedClusterWeek.__slots__, [asdict(week) for week in _assess_quality(context).revised]
    )


PAGE = Page(
    name="quality",
    view=QualityView,
    slots=(
        "quality-title.children",
        "quality-cards.children",
        "quality-refused.figure",
        "quality-gates.children",
        "quality-losses.children",
        "quality-revised.children",
    ),
    build_body=build_body,
    fill=fill,
    parts=(
        PagePart("refused", "Quarantined records", _read_quarantine_rows),
        PagePart("gates", "Pipeline checks", _read_gate_rows),
        PagePart("losses", "Records lost", _read_loss_rows),
        PagePart("revised", "Closed weeks that were revised", _read_revision_rows),
    ),
)
