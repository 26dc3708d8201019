"""The page that explains a cluster's week: definitions, deciding minutes, bad minutes, revisions."""

from dash import html

from fleetgauge_dashboards.figures.theme import Theme
from fleetgauge_dashboards.links import BrokerView, ClusterView, MinuteView, Span, TableView, WhyView
from fleetgauge_dashboards.pages.components import Component, file_link, link, table
from fleetgauge_dashboards.pages.page import Page, PageContext, PageNotice, PagePart, Slots, TableRows
from fleetgauge_dashboards.reader.cluster_week import ClusterWeekReader, ClusterWeekRows
from fleetgauge_dashboards.times import TimeFormat
from fleetgauge_dashboards.units import NO_VALUE, format_milliseconds, format_minutes, format_percent
from fleetgauge_dashboards.views.bad_periods import MINUTE_COLUMNS, mark_bad_minutes
from fleetgauge_dashboards.views.cluster import find_week, week_span
from fleetgauge_dashboards.views.deciding_minutes import DecidedNumber
from fleetgauge_dashboards.views.explanation import Explanation, explain_week
from fleetgauge_dashboards.views.fleet import describe_revision
from fleetgauge_dashboards.views.samples import available_minutes

#: Rows of each table; the CSV file has every minute.
MAX_ROWS = 20


def build_body() -> list[Component]:
    """Return the page's layout."""
    return [
        html.Div(id="why-title", className="fg-titlerow"),
        html.Article(id="why-text", className="fg-panel fg-review"),
    ]


def fill(view: WhyView, context: PageContext, _theme: Theme) -> Slots | PageNotice:
    """Return the explanation, or a notice if the cluster has no week."""
    week_rows = _read_week(view, context)
    if week_rows is None:
        return PageNotice(
            f"No week of {view.cluster_id}",
            (link("Show the cluster", ClusterView(view.cluster_id, display=view.display)),),
        )
    explanation, times = explain_week(week_rows, None), context.time_format(view)
    return {
        "why-title.children": _title_row(view, explanation),
        "why-text.children": [
            *(html.P(f"Note: {note}", className="fg-excluded") for note in explanation.notes),
            *_number_sections(view, explanation, times),
            *_bad_minutes_section(view, explanation, times),
            *_unmeasured_section(view, explanation, times),
            *_revisions_section(explanation, times),
        ],
    }


def _read_week(view: WhyView, context: PageContext) -> ClusterWeekRows | None:
    """Return the rows of the week that contains the view's day, by default of the newest week.

    None if the cluster has no such week.
    """
    weeks = context.lake.weeks_of_cluster(view.cluster_id)
    day = view.week
    started = [week.week for week in weeks if day and week.week <= day]
    selected = find_week(weeks, max(started, default=None))
    if selected is None:
        return None
    reader = ClusterWeekReader(context.lake.root, view.cluster_id)
    return reader.read_week(selected.week, week_span(selected.week, context.fleet.week_zone))


def _title_row(view: WhyView, explanation: Explanation) -> list[Component]:
    explained_view = WhyView(view.cluster_id, explanation.week, display=view.display)
    return [
        html.H1(f"{view.cluster_id}, week of {explanation.week:%a %d %b %Y} explained"),
        html.Span(f"{describe_revision(explanation.closed, explanation.revision)}", className="fg-sub"),
        link("Back to the cluster", ClusterView(view.cluster_id, explanation.week, display=view.display)),
        file_link("Minutes as CSV", explained_view, "minutes"),
        link("Minutes as a table", TableView(explained_view, "minutes")),
    ]


def _number_sections(view: WhyView, explanation: Explanation, times: TimeFormat) -> list[Component]:
    parts: list[Component] = [html.H2("Service levels and the minutes that determine them")]
    for number in explanation.decided:
        parts += [
            html.H3(number.metric),
            html.P(number.words),
            html.P(_deciding_minutes(view, number, times)),
        ]
    week = explanation.week_row
    parts += [html.H3("availability_ratio"), html.P(_describe_availability(explanation))]
    parts += [
        html.H3("bad_minutes"),
        html.P(
            f"{week['bad_minutes'] or 0:,} over {format_milliseconds(week['latency_objective_us'])}; budget "
            f"{format_minutes(week['latency_budget_minutes'])}, left "
            f"{format_minutes(week['latency_budget_left_minutes'])}"
        ),
        html.H3(f"Definitions ({explanation.definition or NO_VALUE})"),
        html.Dl(
            [
                part
                for name, words in explanation.definition_words.items()
                for part in (html.Dt(name), html.Dd(words))
            ]
        ),
    ]
    return parts


def _deciding_minutes(view: WhyView, number: DecidedNumber, times: TimeFormat) -> list[Component]:
    if not number.deciding:
        return ["No retained minute has this value."]
    parts: list[Component] = ["Determined by "]
    for at in number.deciding:
        minute = MinuteView(view.cluster_id, at.minute, display=view.display)
        broker = "" if at.broker_id is None else f" (broker {at.broker_id})"
        parts += [link(f"{times.format_minute(at.minute)}{broker}", minute), ", "]
    more = number.sharing - len(number.deciding)
    return [*parts[:-1], f" and {more:,} more with the same value." if more else "."]


def _describe_availability(explanation: Explanation) -> str:
    ratio = format_percent(explanation.week_row["availability_ratio"], 4)
    if explanation.attempted is None or explanation.succeeded is None:
        return f"{ratio}, as stored for the week."
    return (
        f"{ratio}; the retained minutes have {explanation.succeeded:,} successful of "
        f"{explanation.attempted:,} attempted probes."
    )


def _bad_minutes_section(view: WhyView, explanation: Explanation, times: TimeFormat) -> list[Component]:
    heading = html.H2("Bad minutes, longest period first")
    if not explanation.bad_stretches:
        return [heading, html.P("None among the retained minutes.")]
    longest = sorted(explanation.bad_stretches, key=lambda period: -period.minutes)
    rows = [
        (
            _period_link(view, Span(period.start, period.end), times),
            f"{period.minutes:,}",
            _broker_link(view, period.broker_id, Span(period.start, period.end)),
            format_milliseconds(period.worst_us),
            ", ".join(period.causes) or "unknown",
        )
        for period in longest[:MAX_ROWS]
    ]
    brokers = [
        (_broker_link(view, broker.broker_id, None), f"{broker.minutes:,}", f"{broker.bad_minutes:,}")
        for broker in explanation.brokers[:MAX_ROWS]
    ]
    headings = ("When", "Minutes", "Worst broker", "Worst p99 with failures", "Cause")
    return [
        heading,
        table("Bad minutes", headings, rows),
        *_format_rest(len(longest)),
        html.H3("How often each broker was the worst"),
        table("Worst brokers", ("Broker", "Minutes as worst broker", "Of these, bad"), brokers),
    ]


def _unmeasured_section(view: WhyView, explanation: Explanation, times: TimeFormat) -> list[Component]:
    heading = html.H2("Minutes in which not every broker was measured")
    if not explanation.unmeasured:
        return [heading, html.P("None among the retained minutes.")]
    rows = [
        (
            _period_link(view, Span(period.start, period.end), times),
            f"{period.minutes:,}",
            f"{period.fewest_measured} of {period.brokers_expected}",
            ", ".join(period.reasons),
        )
        for period in explanation.unmeasured[:MAX_ROWS]
    ]
    headings = ("When", "Minutes", "Fewest measured", "Reason")
    return [
        heading,
        table("Minutes not measured", headings, rows),
        *_format_rest(len(explanation.unmeasured)),
    ]


def _revisions_section(explanation: Explanation, times: TimeFormat) -> list[Component]:
    revisions = [
        (
            f"{revision.revision}",
            revision.reason or ("closed" if revision.closed else "open"),
            times.format_instant(revision.computed_at) if revision.computed_at else NO_VALUE,
            "; ".join(f"{name}: {old} → {new}" for name, (old, new) in revision.changed.items()) or NO_VALUE,
        )
        for revision in explanation.revisions
    ]
    corrections = [
        (
            str(correction["correction_id"]),
            str(correction["reason"]),
            str(correction["author"]),
            times.format_instant(correction["starts"]),
            f"withdrawn by {correction['withdrawn_by']}" if correction["withdrawn_at"] else "in force",
        )
        for correction in explanation.corrections
    ]
    corrected_values = [
        (name, str(corrected), str(raw)) for name, (corrected, raw) in explanation.corrected.items()
    ]
    components = [
        html.H2("Revisions and corrections"),
        table("Revisions", ("Revision", "Reason", "Computed", "Changed values"), revisions),
    ]
    if corrections:
        headings = ("Correction", "Reason", "Author", "From", "State")
        components += [html.H3("Corrections that may apply"), table("Corrections", headings, corrections)]
    if corrected_values:
        components.append(table("Corrected values", ("Value", "Corrected", "Raw"), corrected_values))
    return components


def _period_link(view: WhyView, span: Span, times: TimeFormat) -> Component:
    """Return a link to the minute's samples, or for a longer period to the cluster."""
    text = f"{times.format_minute(span.start)} to {times.format_clock(span.end)}"
    if (span.end - span.start).total_seconds() <= 60:
        return link(text, MinuteView(view.cluster_id, span.start, display=view.display))
    return link(text, ClusterView(view.cluster_id, shown=span, display=view.display))


def _broker_link(view: WhyView, broker_id: int | None, span: Span | None) -> Component:
    if broker_id is None:
        return NO_VALUE
    target = BrokerView(view.cluster_id, broker_id, display=view.display)
    if span is not None:
        target = BrokerView(view.cluster_id, broker_id, span, display=view.display)
    return link(f"broker {broker_id}", target)


def _format_rest(length: int) -> list[Component]:
    return [html.P(f"and {length - MAX_ROWS:,} more: see the CSV file")] if length > MAX_ROWS else []


def _read_rows(view: WhyView, context: PageContext) -> TableRows:
    """Return the week's minutes, or those that were kept as evidence."""
    week_rows = _read_week(view, context)
    if week_rows is None:
        return TableRows(MINUTE_COLUMNS, ())
    minutes = available_minutes(week_rows.minutes, week_rows.evidence)
    return TableRows(
        MINUTE_COLUMNS,
        mark_bad_minutes(week_rows.cluster_id, minutes, week_rows.newest_revision["latency_objective_us"]),
    )


PAGE = Page(
    name="why",
    view=WhyView,
    slots=("why-title.children", "why-text.children"),
    build_body=build_body,
    fill=fill,
    parts=(PagePart("minutes", "Minutes of the week", _read_rows, has_tools=False),),
)
