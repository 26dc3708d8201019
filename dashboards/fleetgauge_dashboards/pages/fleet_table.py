"""The fleet's clusters: a table, the worst first, and a search whose words are in the address."""

from dataclasses import replace
from typing import Any

import dash_ag_grid as dag
import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, html, no_update

from fleetgauge_dashboards.links import FleetView, href, parse
from fleetgauge_dashboards.pages.grid import options
from fleetgauge_dashboards.pages.parts import Component, aria, tools
from fleetgauge_dashboards.views.fleet_rows import TREND_WEEKS, ClusterRow

#: Rows of the table that a browser draws at once.
ROWS_DRAWN = 50
#: As one types on, nothing is asked.
SEARCH_AFTER_MS = 300


def clusters_table() -> list[Component]:
    """The search above, the table below."""
    search = dmc.TextInput(
        id="fleet-search",
        placeholder="Find a cluster ( / )",
        debounce=SEARCH_AFTER_MS,
        size="xs",
        w=260,
        **aria(label="Search for clusters"),
    )
    found = html.Span(id="fleet-found", className="fg-sub", role="status")
    numbers = html.Div(tools("fleet", "clusters"), className="fg-tools")
    return [
        html.Div([search, found, numbers], className="fg-titlerow fg-search"),
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
        dashGridOptions=options(ROWS_DRAWN),
        style={"height": None},
    )


def _columns() -> list[dict[str, object]]:
    def number(field: str, title: str, unit: str, why: str, width: int) -> dict[str, object]:
        return {
            "field": field,
            "headerName": title,
            "headerTooltip": why,
            "type": "rightAligned",
            "minWidth": width,
            "flex": 2,
            "valueFormatter": {"function": unit},
        }

    def words(field: str, title: str, why: str, width: int, flex: int) -> dict[str, object]:
        return {
            "field": field,
            "headerName": title,
            "headerTooltip": why,
            "tooltipField": field,
            "minWidth": width,
            "flex": flex,
        }

    cluster = words("cluster_id", "Cluster", "Its id in fleet.yaml", 118, 3)
    pace = "Times the pace at which the latency budget lasts just a week, over the last"
    trend = f"Latency p99 of the last {TREND_WEEKS} weeks, from the least of them to the most"
    return [
        cluster | {"cellRenderer": "ClusterLink"},
        words("state", "State now", "Open alerts, silence and suspicions", 230, 5),
        number("latency_p99_ms", "Latency p99", "ms(params.value)", "p99 of the week's minutes", 104),
        number(
            "latency_p99_censored_ms",
            "With failures",
            "ms(params.value)",
            "The same, a failed probe counted as 10,000 ms",
            112,
        ),
        number("objective_ms", "Objective", "ms(params.value)", "99% of minutes at or under it", 90),
        number("times_before", "vs last", "times(params.value)", "This week's p99 over last week's", 74),
        words("trend", f"{TREND_WEEKS} weeks", trend, 106, 1) | {"sortable": False, "cellClass": "fg-spark"},
        number(
            "budget_left_min",
            "Budget left",
            "min(params.value)",
            "Minutes that may still be bad this week",
            101,
        ),
        number("bad_minutes", "Bad min", "params.value", "Minutes over the latency objective", 80),
        number("burn_1h", "Burn 1 h", "times(params.value)", f"{pace} hour", 82),
        number("burn_6h", "6 h", "times(params.value)", f"{pace} six hours", 66),
        number(
            "availability_percent",
            "Availability",
            "percent(params.value, 3)",
            "Successes over attempts in the week",
            100,
        ),
        number(
            "coverage_percent",
            "Coverage",
            "percent(params.value, 1)",
            "Measured over expected broker-minutes",
            86,
        ),
        words("version", "Kafka", "The label kafka in fleet.yaml", 70, 1),
    ]


def line(row: ClusterRow) -> dict[str, object]:
    """As the table takes it."""
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
