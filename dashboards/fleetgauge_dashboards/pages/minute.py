"""One minute of a cluster: the end of every drill, with the samples themselves."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from dash import html

from fleetgauge_dashboards.figures.samples import HEIGHT, samples
from fleetgauge_dashboards.figures.theme import Theme
from fleetgauge_dashboards.links import MINUTE, Leg, MinuteView, WhyView
from fleetgauge_dashboards.pages.page import Context, Notice, Page, Part, Rows, Slots
from fleetgauge_dashboards.pages.parts import Component, chart, link, number_card, panel, table, tools
from fleetgauge_dashboards.reader import ClusterWeek
from fleetgauge_dashboards.reader.cluster_week import ClusterWeekReader
from fleetgauge_dashboards.times import Times
from fleetgauge_dashboards.views.minute import (
    SOURCES,
    BrokerLine,
    around,
    lines,
    lines_without_samples,
    numbers,
    of_leg,
    week_of,
)
from fleetgauge_dashboards.views.samples import BrokerSamples, MinuteSamples, minute_samples

_HEAD = ("Broker", "Leg", "Succeeded", "Failures", "p50", "p99", "p99, failures counted", "Slowest")


def body() -> list[Component]:
    client, leader = (
        chart(f"minute-{leg}", HEIGHT, f"Every sample of the {leg} leg, broker by broker") for leg in Leg
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


def fill(view: MinuteView, context: Context, look: Theme) -> Slots | Notice:
    reader = ClusterWeekReader(context.lake.root, view.cluster_id)
    held = next(iter(reader.minutes(view.span)), None)
    found, week = _samples(view, context), _week(view, context)
    if held is None and not found.brokers:
        return _nothing(view, context.times(view))
    brokers = lines(view, found) or lines_without_samples(view, reader.broker_minutes(view.span))
    objective_us = week.latency_objective_us if week else None
    objective_ms = None if objective_us is None else objective_us / 1000
    objectives_ms = {Leg.CLIENT: objective_ms, Leg.LEADER: None}
    figures = {
        f"minute-{leg}.figure": samples(of_leg(found, leg), leg, objective, look, f"{view}")
        for leg, objective in objectives_ms.items()
    }
    return {
        "minute-title.children": _title(view, week, context.times(view)),
        "minute-cards.children": [number_card(number) for number in numbers(held, objective_us)],
        "minute-source.children": SOURCES[found.source],
        "minute-charts.style": {} if found.brokers else {"display": "none"},
        "minute-table.children": _table(brokers),
        **figures,
    }


def _week(view: MinuteView, context: Context) -> ClusterWeek | None:
    return week_of(context.lake.weeks_of(view.cluster_id), view.minute, context.fleet.week_zone)


def _samples(view: MinuteView, context: Context) -> MinuteSamples:
    reader, week = ClusterWeekReader(context.lake.root, view.cluster_id), _week(view, context)
    kept = reader.evidence(week.week) if week else []
    late_us = context.fleet.agent_late_us
    return minute_samples([view.minute], reader.records([view.minute]), kept, late_us)[0]


def _nothing(view: MinuteView, times: Times) -> Notice:
    return Notice(
        f"Nothing is known of {times.named_minute(view.minute)}",
        (
            f"The lake has no minute of {view.cluster_id} at that time: it is older than what is kept, "
            "or it was not measured, or no such cluster is.",
            link("Show the cluster then", around(view)),
        ),
    )


def _title(view: MinuteView, week: ClusterWeek | None, times: Times) -> list[Component]:
    why = week and link("Why is its week as it is?", WhyView(view.cluster_id, week.week, lens=view.lens))
    return [
        html.H1(f"{view.cluster_id}, minute {times.named_minute(view.minute)}"),
        link("‹ minute before", replace(view, minute=view.minute - MINUTE)),
        link("minute after ›", replace(view, minute=view.minute + MINUTE)),
        link("Show the cluster then", around(view)),
        why,
    ]


def _table(found: Sequence[BrokerLine]) -> Component:
    rows = [
        (
            link(f"broker {one.broker.broker_id}", one.broker),
            one.leg,
            one.succeeded,
            one.failures,
            one.p50,
            one.p99,
            one.p99_censored,
            one.slowest,
        )
        for one in found
    ]
    return table("Brokers of the minute", _HEAD, rows)


def _probes(leg: Leg) -> Callable[[MinuteView, Context], Rows]:
    def rows(view: MinuteView, context: Context) -> Rows:
        """One line a probe; what failed has its reason and no latency."""
        probes = [
            {"minute": view.minute, "broker_id": one.broker_id, "leg": leg, "outcome": said, "latency_us": us}
            for one in of_leg(_samples(view, context), leg)
            for said, us in (*_successes(one), *_failures(one))
        ]
        return Rows(("minute", "broker_id", "leg", "outcome", "latency_us"), probes)

    return rows


def _successes(one: BrokerSamples) -> list[tuple[str, int | None]]:
    return [("success", us) for us in one.latencies_us]


def _failures(one: BrokerSamples) -> list[tuple[str, int | None]]:
    return [(code, None) for code, times in sorted(one.failures.items()) for _ in range(times)]


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
    body=body,
    fill=fill,
    parts=tuple(Part(leg, f"Samples of the {leg} leg", _probes(leg)) for leg in Leg),
)
