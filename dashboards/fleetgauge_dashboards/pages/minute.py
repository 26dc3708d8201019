"""The page of a minute of a cluster, with every sample."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from dash import html

from fleetgauge_core.contract import Leg
from fleetgauge_dashboards.figures.samples import HEIGHT, plot_samples
from fleetgauge_dashboards.figures.theme import Theme
from fleetgauge_dashboards.links import (
    MINUTE,
    MinuteView,
    WhyView,
)
from fleetgauge_dashboards.pages.components import (
    Component,
    chart,
    key_figure_card,
    link,
    panel,
    table,
    tools,
)
from fleetgauge_dashboards.pages.page import Page, PageContext, PageNotice, PagePart, Slots, TableRows
from fleetgauge_dashboards.reader import ClusterWeek
from fleetgauge_dashboards.reader.cluster_week import ClusterWeekReader
from fleetgauge_dashboards.times import TimeFormat
from fleetgauge_dashboards.views.minute import (
    SOURCE_TEXTS,
    BrokerLine,
    broker_lines,
    broker_lines_from_silver,
    find_week_of_minute,
    minute_key_figures,
    select_leg,
    surrounding_view,
)
from fleetgauge_dashboards.views.samples import BrokerSamples, MinuteSamples, collect_minute_samples

_HEADINGS = ("Broker", "Leg", "Succeeded", "Failures", "p50", "p99", "p99 with failures", "Slowest")


def build_body() -> list[Component]:
    """Return the page's layout."""
    client, leader = (
        chart(f"minute-{leg}", HEIGHT, f"Every sample of the {leg} leg, by broker") for leg in Leg
    )
    return [
        html.Div(id="minute-title", className="fg-titlerow"),
        html.Div(id="minute-cards", className="fg-cards"),
        html.P(id="minute-source", className="fg-sub"),
        html.Div(
            [
                panel(
                    "Client leg, every sample, log scale",
                    "samples",
                    client,
                    tools=tools("minute", "client", "minute-client"),
                ),
                panel(
                    "Leader leg, every sample, log scale",
                    "samples",
                    leader,
                    tools=tools("minute", "leader", "minute-leader"),
                ),
            ],
            id="minute-charts",
            className="fg-panels fg-panels--halves",
        ),
        html.Section(id="minute-table", className="fg-panel"),
    ]


def fill(view: MinuteView, context: PageContext, theme: Theme) -> Slots | PageNotice:
    """Return the page's content, or a notice if the lake has no data of the minute."""
    reader = ClusterWeekReader(context.lake.root, view.cluster_id)
    cluster_minute = next(iter(reader.minutes(view.span)), None)
    samples, week = _read_samples(view, context), _read_week(view, context)
    if cluster_minute is None and not samples.brokers:
        return _minute_not_found(view, context.time_format(view))
    brokers = broker_lines(view, samples) or broker_lines_from_silver(view, reader.broker_minutes(view.span))
    objective_us = week.latency_objective_us if week else None
    objective_ms = None if objective_us is None else objective_us / 1000
    objectives_ms = {Leg.CLIENT: objective_ms, Leg.LEADER: None}
    figures = {
        f"minute-{leg}.figure": plot_samples(select_leg(samples, leg), leg, objective, theme, f"{view}")
        for leg, objective in objectives_ms.items()
    }
    return {
        "minute-title.children": _title_row(view, week, context.time_format(view)),
        "minute-cards.children": [
            key_figure_card(figure) for figure in minute_key_figures(cluster_minute, objective_us)
        ],
        "minute-source.children": SOURCE_TEXTS[samples.source],
        "minute-charts.style": {} if samples.brokers else {"display": "none"},
        "minute-table.children": _broker_table(brokers),
        **figures,
    }


def _read_week(view: MinuteView, context: PageContext) -> ClusterWeek | None:
    return find_week_of_minute(
        context.lake.weeks_of_cluster(view.cluster_id), view.minute, context.fleet.week_zone
    )


def _read_samples(view: MinuteView, context: PageContext) -> MinuteSamples:
    reader, week = ClusterWeekReader(context.lake.root, view.cluster_id), _read_week(view, context)
    kept = reader.evidence(week.week) if week else []
    late_us = context.fleet.agent_late_us
    return collect_minute_samples([view.minute], reader.records([view.minute]), kept, late_us)[0]


def _minute_not_found(view: MinuteView, times: TimeFormat) -> PageNotice:
    return PageNotice(
        f"No data of {times.format_long_minute(view.minute)}",
        (
            f"The lake has no such minute of {view.cluster_id}: it is older than the retention, it was not "
            "measured, or the cluster does not exist.",
            link("Cluster at that time", surrounding_view(view)),
        ),
    )


def _title_row(view: MinuteView, week: ClusterWeek | None, times: TimeFormat) -> list[Component]:
    explain_link = week and link(
        "Explain this week", WhyView(view.cluster_id, week.week, display=view.display)
    )
    return [
        html.H1(f"{view.cluster_id}, minute {times.format_long_minute(view.minute)}"),
        link("‹ previous minute", replace(view, minute=view.minute - MINUTE)),
        link("next minute ›", replace(view, minute=view.minute + MINUTE)),
        link("Cluster at that time", surrounding_view(view)),
        explain_link,
    ]


def _broker_table(lines: Sequence[BrokerLine]) -> Component:
    rows = [
        (
            link(f"broker {line.broker.broker_id}", line.broker),
            line.leg,
            line.succeeded,
            line.failures,
            line.p50,
            line.p99,
            line.p99_censored,
            line.slowest,
        )
        for line in lines
    ]
    return table("Brokers of the minute", _HEADINGS, rows)


def _probes_reader(leg: Leg) -> Callable[[MinuteView, PageContext], TableRows]:
    def read_rows(view: MinuteView, context: PageContext) -> TableRows:
        """Return one row per probe; a failed probe has its error as outcome and no latency."""
        probes = [
            {
                "minute": view.minute,
                "broker_id": broker.broker_id,
                "leg": leg,
                "outcome": outcome,
                "latency_us": us,
            }
            for broker in select_leg(_read_samples(view, context), leg)
            for outcome, us in (*_list_successes(broker), *_list_failures(broker))
        ]
        return TableRows(("minute", "broker_id", "leg", "outcome", "latency_us"), probes)

    return read_rows


def _list_successes(broker: BrokerSamples) -> list[tuple[str, int | None]]:
    return [("success", us) for us in broker.latencies_us]


def _list_failures(broker: BrokerSamples) -> list[tuple[str, int | None]]:
    return [(code, None) for code, count in sorted(broker.failures.items()) for _ in range(count)]


PAGE = Page(
    name="minute",
    view=MinuteView,
    slots=(
        "minute-title.children",
        "minute-cards.children",
        "minute-source.children",
        "minute-charts.style",
        "minute-table.children",
        *(f"minute-{leg}.figure" for leg in Leg),
    ),
    build_body=build_body,
    fill=fill,
    parts=tuple(PagePart(leg, f"Samples of the {leg} leg", _probes_reader(leg)) for leg in Leg),
)
