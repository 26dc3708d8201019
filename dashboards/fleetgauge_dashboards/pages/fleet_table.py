"""The table of the fleet's clusters, worst first, with a search whose text is part of the URL."""

from dataclasses import replace
from typing import Any

import dash_ag_grid as dag
import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, html, no_update

from fleetgauge_dashboards.links import FleetView, href
from fleetgauge_dashboards.pages.components import Component, aria, tools
from fleetgauge_dashboards.pages.grid_options import build_grid_options
from fleetgauge_dashboards.pages.page import parse_requested_view
from fleetgauge_dashboards.views.fleet_rows import TREND_WEEKS, ClusterRow

#: Rows per page of the table.
ROWS_PER_PAGE = 50
#: The search starts after a pause of this length in typing.
SEARCH_DEBOUNCE_MS = 300


def clusters_table() -> list[Component]:
    """Return the search field, and the table below it."""
    search = dmc.TextInput(
        id="fleet-search",
        placeholder="Find a cluster ( / )",
        debounce=SEARCH_DEBOUNCE_MS,
        size="xs",
        w=260,
        **aria(label="Search for clusters"),
    )
    description = html.Span(id="fleet-found", className="fg-sub", role="status")
    part_tools = html.Div(tools("fleet", "clusters"), className="fg-tools")
    return [
        html.Div([search, description, part_tools], className="fg-titlerow fg-search"),
        html.Div(_build_grid(), id="fleet-table"),
    ]


def _build_grid() -> Component:
    return dag.AgGrid(
        id="fleet-grid",
        columnDefs=_define_columns(),
        rowData=[],
        getRowId="params.data.cluster_id",
        defaultColDef={"sortable": True, "resizable": True, "suppressMovable": True},
        rowClassRules={"fg-row-alert": "params.data.rank == 0"},
        eventListeners={"cellKeyDown": ["openLink(params)"]},
        dashGridOptions=build_grid_options(ROWS_PER_PAGE),
        style={"height": None},
    )


def _define_columns() -> list[dict[str, object]]:
    def number_column(field: str, title: str, formatter: str, tooltip: str, width: int) -> dict[str, object]:
        return {
            "field": field,
            "headerName": title,
            "headerTooltip": tooltip,
            "type": "rightAligned",
            "minWidth": width,
            "flex": 2,
            "valueFormatter": {"function": formatter},
        }

    def text_column(field: str, title: str, tooltip: str, width: int, flex: int) -> dict[str, object]:
        return {
            "field": field,
            "headerName": title,
            "headerTooltip": tooltip,
            "tooltipField": field,
            "minWidth": width,
            "flex": flex,
        }

    cluster = text_column("cluster_id", "Cluster", "The cluster's id in fleet.yaml", 118, 3)
    burn_rate = "Burn rate of the latency budget (1 = spent exactly by the end of the week) over the last"
    trend = f"Latency p99 of the last {TREND_WEEKS} weeks, scaled from their minimum to their maximum"
    return [
        cluster | {"cellRenderer": "ClusterLink"},
        text_column("state", "State", "Open alerts, suspicions and missing data", 230, 5),
        number_column(
            "latency_p99_ms", "Latency p99", "ms(params.value)", "p99 over the week's minutes", 104
        ),
        number_column(
            "latency_p99_censored_ms",
            "With failures",
            "ms(params.value)",
            "p99 over the week's minutes, with failed probes counted as 10,000 ms",
            112,
        ),
        number_column(
            "objective_ms",
            "Objective",
            "ms(params.value)",
            "Latency objective: 99% of minutes at or below it",
            90,
        ),
        number_column(
            "times_before", "vs last", "times(params.value)", "This week's p99 divided by last week's", 74
        ),
        text_column("trend", f"{TREND_WEEKS} weeks", trend, 106, 1)
        | {"sortable": False, "cellClass": "fg-spark"},
        number_column(
            "budget_left_min",
            "Budget left",
            "min(params.value)",
            "Remaining latency error budget: minutes that may still be bad this week",
            101,
        ),
        number_column("bad_minutes", "Bad min", "params.value", "Minutes over the latency objective", 80),
        number_column("burn_1h", "Burn 1 h", "times(params.value)", f"{burn_rate} hour", 82),
        number_column("burn_6h", "6 h", "times(params.value)", f"{burn_rate} 6 hours", 66),
        number_column(
            "availability_percent",
            "Availability",
            "percent(params.value, 3)",
            "Successful probes divided by attempted probes in the week",
            100,
        ),
        number_column(
            "coverage_percent",
            "Coverage",
            "percent(params.value, 1)",
            "Measured broker-minutes divided by expected broker-minutes",
            86,
        ),
        text_column("version", "Kafka", "Kafka version: the label kafka in fleet.yaml", 70, 1),
    ]


def to_grid_row(row: ClusterRow) -> dict[str, object]:
    """Return the row as a mapping, which AG Grid requires."""
    return {name: getattr(row, name) for name in ClusterRow.__slots__}


def register_search(app: Dash) -> None:
    """Register the callbacks that keep the search field and the URL in step."""

    def update_url(search: str | None, pathname: str, query: str | None) -> Any:
        view = parse_requested_view(pathname, query)
        if not isinstance(view, FleetView) or (search or None) == view.search:
            return no_update
        return f"?{href(replace(view, search=search or None)).partition('?')[2]}"

    def update_field(pathname: str, query: str | None, field_text: str | None) -> Any:
        view = parse_requested_view(pathname, query)
        if not isinstance(view, FleetView) or (field_text or None) == view.search:
            return no_update
        return view.search or ""

    url_states = (State("url", "pathname"), State("url", "search"))
    app.callback(
        Output("url", "search", allow_duplicate=True),
        Input("fleet-search", "value"),
        *url_states,
        prevent_initial_call=True,
    )(update_url)
    app.callback(
        Output("fleet-search", "value"),
        Input("url", "pathname"),
        Input("url", "search"),
        State("fleet-search", "value"),
    )(update_field)
