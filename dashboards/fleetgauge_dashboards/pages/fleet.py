"""The fleet: are we getting better, who is worst, what is open."""

from dataclasses import replace
from typing import Any

import dash_ag_grid as dag
import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, html, no_update

from fleetgauge_dashboards.figures.causes import HEIGHT, pareto
from fleetgauge_dashboards.figures.theme import Theme
from fleetgauge_dashboards.figures.trend import trend
from fleetgauge_dashboards.links import FleetView, WhyView, href, parse
from fleetgauge_dashboards.pages.page import Context, Notice, Page, Slots
from fleetgauge_dashboards.pages.parts import Component, anchor, aria, chart, panel, week_menu
from fleetgauge_dashboards.units import count
from fleetgauge_dashboards.views.alerts import alerts
from fleetgauge_dashboards.views.causes import causes
from fleetgauge_dashboards.views.fleet import (
    AVAILABILITY,
    BUDGET,
    LATENCY,
    ClusterRow,
    Fleet,
    Headline,
    fleet,
    shown_week,
)

#: Rows of the table that a browser draws at once.
ROWS_DRAWN = 50
#: As one types on, nothing is asked.
SEARCH_AFTER_MS = 300

_TITLES = {
    LATENCY: ("Latency p99 over clusters", "fleet_latency"),
    AVAILABILITY: ("Availability over clusters", "fleet_availability"),
    BUDGET: ("Latency budget left over clusters", "fleet_budget"),
}

#: Colours of the page, so that the table follows the scheme by itself.
_THEME = (
    "themeQuartz.withParams({backgroundColor: 'var(--mantine-color-body)', "
    "foregroundColor: 'var(--mantine-color-text)', borderColor: 'var(--mantine-color-default-border)', "
    "headerBackgroundColor: 'var(--mantine-color-body)', fontFamily: 'inherit', fontSize: 14, "
    "accentColor: 'var(--fg-good)', spacing: 5, wrapperBorderRadius: 8})"
)


def body() -> list[Component]:
    return [
        html.Div(id="fleet-title", className="fg-titlerow"),
        html.Div(id="fleet-cards", className="fg-cards"),
        html.Div(id="fleet-excluded", className="fg-excluded"),
        html.Div(
            [
                panel(
                    "Latency p99 by week, log scale",
                    "fleet_latency",
                    chart("fleet-latency", 220, "Latency by week: median, p90 and p99 over clusters"),
                ),
                panel(
                    "Availability by week",
                    "fleet_availability",
                    chart(
                        "fleet-availability", 220, "Availability by week: median, p90 and p99 over clusters"
                    ),
                ),
                panel(
                    "What burns the latency budget",
                    "causes",
                    chart("fleet-causes", HEIGHT, "Bad minutes of the week by cause"),
                ),
            ],
            className="fg-panels fg-panels--three",
        ),
        html.Div(
            [
                dmc.TextInput(
                    id="fleet-search",
                    placeholder="Cluster",
                    debounce=SEARCH_AFTER_MS,
                    size="xs",
                    w=260,
                    **aria(label="Search for clusters"),
                ),
                html.Span(id="fleet-found", className="fg-sub", role="status"),
            ],
            className="fg-titlerow",
        ),
        html.Div(_table(), id="fleet-table"),
    ]


def _table() -> Component:
    return dag.AgGrid(
        id="fleet-grid",
        columnDefs=_columns(),
        rowData=[],
        getRowId="params.data.cluster_id",
        defaultColDef={"sortable": True, "resizable": True, "suppressMovable": True},
        rowClassRules={"fg-row-alert": "params.data.rank == 0"},
        eventListeners={"cellKeyDown": ["openLink(params)"]},
        dashGridOptions={
            "theme": {"function": _THEME},
            "domLayout": "autoHeight",
            "pagination": True,
            "paginationPageSize": ROWS_DRAWN,
            "paginationPageSizeSelector": False,
            "animateRows": False,
            "rowHeight": 34,
            "headerHeight": 36,
            "enableCellTextSelection": True,
            "ensureDomOrder": True,
        },
        style={"height": None},
    )


def _columns() -> list[dict[str, object]]:
    def number(field: str, title: str, unit: str, why: str, width: int = 112) -> dict[str, object]:
        return {
            "field": field,
            "headerName": title,
            "headerTooltip": why,
            "type": "rightAligned",
            "minWidth": width,
            "flex": 2,
            "valueFormatter": {"function": unit},
        }

    return [
        {
            "field": "cluster_id",
            "headerName": "Cluster",
            "cellRenderer": "ClusterLink",
            "minWidth": 140,
            "flex": 2,
            "tooltipField": "cluster_id",
        },
        {"field": "state", "headerName": "State now", "minWidth": 270, "flex": 4, "tooltipField": "state"},
        number("latency_p99_ms", "Latency p99", "ms(params.value)", "p99 of the week's minutes"),
        number(
            "latency_p99_censored_ms",
            "With failures",
            "ms(params.value)",
            "The same, a failed probe counted as 10,000 ms",
        ),
        number("objective_ms", "Objective", "ms(params.value)", "99% of minutes at or under it", 105),
        number(
            "budget_left_min", "Budget left", "min(params.value)", "Minutes that may still be bad this week"
        ),
        number("bad_minutes", "Bad minutes", "params.value", "Minutes over the latency objective", 115),
        number(
            "availability_percent",
            "Availability",
            "percent(params.value, 3)",
            "Successes over attempts in the week",
        ),
        number(
            "coverage_percent",
            "Coverage",
            "percent(params.value, 1)",
            "Measured over expected broker-minutes",
            105,
        ),
    ]


def fill(view: FleetView, context: Context, look: Theme) -> Slots | Notice:
    lake = context.lake
    weeks = lake.weeks()
    week = shown_week(weeks, view.week)
    if week is None:
        return Notice(
            "No week yet",
            ("Minutes may be there, but no week is computed. It appears with the pipeline's next batch.",),
        )
    found, fresh = alerts(lake.health_events()), context.fresh()
    model = fleet(week, weeks, lake.cluster_weeks(week), lake.fleet_weeks(), found, fresh, view)
    latency, availability = model.trends
    return {
        "fleet-title.children": _title(model, view),
        "fleet-cards.children": [_card(headline, view) for headline in model.headlines],
        "fleet-excluded.children": model.excluded,
        "fleet-latency.figure": trend(latency, look),
        "fleet-availability.figure": trend(availability, look),
        "fleet-causes.figure": pareto(causes(lake.burn_causes(week), week), look),
        "fleet-found.children": _found(model, view),
        "fleet-table.className": "" if len(model.rows) > ROWS_DRAWN else "fg-one-page",
        "fleet-grid.rowData": [_row(row) for row in model.rows],
    }


def _title(model: Fleet, view: FleetView) -> list[Component]:
    return [
        html.H1(f"Fleet, week of {model.week:%a %d %b %Y}"),
        html.Span(
            f"{model.standing} · {count(model.clusters, 'cluster')} · all times UTC", className="fg-sub"
        ),
        week_menu([(week, replace(view, week=week)) for week in model.weeks], model.week),
    ]


def _found(model: Fleet, view: FleetView) -> str:
    """What the table holds, where that is not every cluster."""
    if len(model.rows) < model.matching:
        return f"the worst {len(model.rows):,} of {count(model.matching, 'cluster')}: search for others"
    return f"{model.matching:,} of {count(model.clusters, 'cluster')}" if view.search else ""


def _card(headline: Headline, view: FleetView) -> Component:
    title, definition = _TITLES[headline.metric]
    three = (("median", headline.median), ("p90", headline.p90), ("p99", headline.p99))
    quantiles = [_quantile(name, value, headline, view) for name, value in three]
    note = html.Div(f"{headline.sample} · {headline.before}", className="fg-note")
    return panel(title, definition, html.Div([html.Div(quantiles, className="fg-three"), note]))


def _quantile(name: str, value: str, headline: Headline, view: FleetView) -> Component:
    """Why this number: it is one cluster's, and leads there."""
    whose = headline.whose.get(name)
    shown: Component = value
    if whose is not None:
        why = href(WhyView(whose, view.week, fleet=view.fleet))
        shown = anchor(value, why, "fg-quiet", label=f"{name} {value}: why {whose} has it")
    return html.Div([html.Div(shown, className="fg-big"), html.Div(name, className="fg-label")])


def _row(row: ClusterRow) -> dict[str, object]:
    return {name: getattr(row, name) for name in ClusterRow.__slots__}


def register_search(app: Dash) -> None:
    """What is searched for is in the address, and what the address says is in the box."""

    def written(search: str | None, pathname: str, query: str | None) -> Any:
        view = parse(pathname, query or "")
        if not isinstance(view, FleetView) or (search or None) == view.search:
            return no_update
        return f"?{href(replace(view, search=search or None)).partition('?')[2]}"

    def read(pathname: str, query: str | None, shown: str | None) -> Any:
        view = parse(pathname, query or "")
        if not isinstance(view, FleetView) or (shown or None) == view.search:
            return no_update
        return view.search or ""

    address = (State("url", "pathname"), State("url", "search"))
    app.callback(
        Output("url", "search", allow_duplicate=True),
        Input("fleet-search", "value"),
        *address,
        prevent_initial_call=True,
    )(written)
    app.callback(
        Output("fleet-search", "value"),
        Input("url", "pathname"),
        Input("url", "search"),
        State("fleet-search", "value"),
    )(read)


PAGE = Page(
    name="fleet",
    view=FleetView,
    slots=(
        "fleet-title.children",
        "fleet-cards.children",
        "fleet-excluded.children",
        "fleet-latency.figure",
        "fleet-availability.figure",
        "fleet-causes.figure",
        "fleet-found.children",
        "fleet-table.className",
        "fleet-grid.rowData",
    ),
    body=body,
    fill=fill,
)
