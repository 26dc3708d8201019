"""Why a cluster's week is what it is: the rule, the minutes that decide, and what was changed since."""

from dash import html

from fleetgauge_dashboards.figures.theme import Theme
from fleetgauge_dashboards.links import BrokerView, ClusterView, MinuteView, Span, TableView, WhyView
from fleetgauge_dashboards.pages.page import Context, Notice, Page, Part, Rows, Slots
from fleetgauge_dashboards.pages.parts import Component, file_link, link, table
from fleetgauge_dashboards.reader.cluster_week import ClusterWeekReader, KnownWeek
from fleetgauge_dashboards.times import Times
from fleetgauge_dashboards.units import NOTHING, milliseconds, minutes, percent
from fleetgauge_dashboards.views.cluster import find_week, week_span
from fleetgauge_dashboards.views.deciding_minutes import Decided
from fleetgauge_dashboards.views.episodes import MINUTE_COLUMNS, with_bad
from fleetgauge_dashboards.views.explanation import Explanation, explanation
from fleetgauge_dashboards.views.fleet import standing_in_words
from fleetgauge_dashboards.views.samples import held_minutes

#: Longer lists are cut; the file has every minute.
SHOWN = 20


def body() -> list[Component]:
    return [
        html.Div(id="why-title", className="fg-titlerow"),
        html.Article(id="why-text", className="fg-panel fg-review"),
    ]


def fill(view: WhyView, context: Context, _look: Theme) -> Slots | Notice:
    known = _known(view, context)
    if known is None:
        return Notice(
            f"No week of {view.cluster_id}",
            (link("Show the cluster", ClusterView(view.cluster_id, lens=view.lens)),),
        )
    answer, times = explanation(known, None), context.times(view)
    return {
        "why-title.children": _title(view, answer),
        "why-text.children": [
            *(html.P(f"Note: {note}", className="fg-excluded") for note in answer.notes),
            *_numbers(view, answer, times),
            *_bad(view, answer, times),
            *_unmeasured(view, answer, times),
            *_changes(answer, times),
        ],
    }


def _known(view: WhyView, context: Context) -> KnownWeek | None:
    """Of the week that has the asked day, or else of the newest."""
    own = context.lake.weeks_of(view.cluster_id)
    day = view.week
    held = [one.week for one in own if day and one.week <= day]
    week = find_week(own, max(held, default=None))
    if week is None:
        return None
    reader = ClusterWeekReader(context.lake.root, view.cluster_id)
    return reader.known(week.week, week_span(week.week, context.fleet.week_zone))


def _title(view: WhyView, answer: Explanation) -> list[Component]:
    asked = WhyView(view.cluster_id, answer.week, lens=view.lens)
    return [
        html.H1(f"Why {view.cluster_id}, week of {answer.week:%a %d %b %Y}, is as it is"),
        html.Span(f"{standing_in_words(answer.closed, answer.revision)}", className="fg-sub"),
        link("Show the cluster's week", ClusterView(view.cluster_id, answer.week, lens=view.lens)),
        file_link("Minutes as CSV", asked, "minutes"),
        link("as a table", TableView(asked, "minutes")),
    ]


def _numbers(view: WhyView, answer: Explanation, times: Times) -> list[Component]:
    parts: list[Component] = [html.H2("The numbers, and the minutes that decide them")]
    for one in answer.decided:
        parts += [html.H3(one.metric), html.P(one.words), html.P(_deciding(view, one, times))]
    week = answer.week_row
    parts += [html.H3("availability_ratio"), html.P(_availability(answer))]
    parts += [
        html.H3("bad_minutes"),
        html.P(
            f"{week['bad_minutes'] or 0:,} over {milliseconds(week['latency_objective_us'])}; budget "
            f"{minutes(week['latency_budget_minutes'])}, left {minutes(week['latency_budget_left_minutes'])}"
        ),
        html.H3(f"How they are defined ({answer.definition or NOTHING})"),
        html.Dl(
            [
                part
                for name, words in answer.definition_words.items()
                for part in (html.Dt(name), html.Dd(words))
            ]
        ),
    ]
    return parts


def _deciding(view: WhyView, one: Decided, times: Times) -> list[Component]:
    if not one.deciding:
        return ["No minute that is held has this value."]
    parts: list[Component] = ["Decided by "]
    for at in one.deciding:
        minute = MinuteView(view.cluster_id, at.minute, lens=view.lens)
        broker = "" if at.broker_id is None else f" (broker {at.broker_id})"
        parts += [link(f"{times.minute(at.minute)}{broker}", minute), ", "]
    more = one.sharing - len(one.deciding)
    return [*parts[:-1], f" and {more:,} more with the same value." if more else "."]


def _availability(answer: Explanation) -> str:
    ratio = percent(answer.week_row["availability_ratio"], 4)
    if answer.attempted is None or answer.succeeded is None:
        return f"{ratio}, as the week's row has it."
    return f"{ratio}; the minutes held have {answer.succeeded:,} successes of {answer.attempted:,} probes."


def _bad(view: WhyView, answer: Explanation, times: Times) -> list[Component]:
    heading = html.H2("Bad minutes, longest stretch first")
    if not answer.bad_stretches:
        return [heading, html.P("None of the minutes that are held.")]
    longest = sorted(answer.bad_stretches, key=lambda one: -one.minutes)
    rows = [
        (
            _stretch(view, Span(one.start, one.end), times),
            f"{one.minutes:,}",
            _broker(view, one.broker_id, Span(one.start, one.end)),
            milliseconds(one.worst_us),
            ", ".join(one.causes) or "none named",
        )
        for one in longest[:SHOWN]
    ]
    homes = [
        (_broker(view, one.broker_id, None), f"{one.minutes:,}", f"{one.bad_minutes:,}")
        for one in answer.brokers[:SHOWN]
    ]
    head = ("When", "Minutes", "Worst broker", "Worst p99, failures counted", "Cause")
    return [
        heading,
        table("Bad minutes", head, rows),
        *_cut(len(longest)),
        html.H3("Who was the worst broker of a minute"),
        table("Worst brokers", ("Broker", "Of so many minutes", "Of them bad"), homes),
    ]


def _unmeasured(view: WhyView, answer: Explanation, times: Times) -> list[Component]:
    heading = html.H2("Minutes in which not every broker was measured")
    if not answer.unmeasured:
        return [heading, html.P("None of the minutes that are held.")]
    rows = [
        (
            _stretch(view, Span(one.start, one.end), times),
            f"{one.minutes:,}",
            f"{one.fewest_measured} of {one.brokers_expected}",
        )
        for one in answer.unmeasured[:SHOWN]
    ]
    head = ("When", "Minutes", "Fewest measured")
    return [heading, table("Minutes not measured", head, rows), *_cut(len(answer.unmeasured))]


def _changes(answer: Explanation, times: Times) -> list[Component]:
    revisions = [
        (
            f"{one.revision}",
            one.reason or ("closed" if one.closed else "open"),
            times.instant(one.computed_at) if one.computed_at else NOTHING,
            "; ".join(f"{name}: {old} → {new}" for name, (old, new) in one.changed.items()) or NOTHING,
        )
        for one in answer.revisions
    ]
    corrections = [
        (
            str(one["correction_id"]),
            str(one["reason"]),
            str(one["author"]),
            times.instant(one["starts"]),
            f"withdrawn by {one['withdrawn_by']}" if one["withdrawn_at"] else "in force",
        )
        for one in answer.corrections
    ]
    corrected = [(name, str(now), str(raw)) for name, (now, raw) in answer.corrected.items()]
    parts = [
        html.H2("What was changed"),
        table("Revisions", ("Revision", "Why", "Computed", "Changed"), revisions),
    ]
    if corrections:
        head = ("Correction", "Reason", "By", "From", "")
        parts += [html.H3("Corrections that may touch it"), table("Corrections", head, corrections)]
    if corrected:
        parts.append(table("Corrected numbers", ("Number", "Corrected", "Raw"), corrected))
    return parts


def _stretch(view: WhyView, span: Span, times: Times) -> Component:
    """One minute leads to its samples, more of them to their cluster."""
    text = f"{times.minute(span.start)} to {times.clock(span.end)}"
    if (span.end - span.start).total_seconds() <= 60:
        return link(text, MinuteView(view.cluster_id, span.start, lens=view.lens))
    return link(text, ClusterView(view.cluster_id, shown=span, lens=view.lens))


def _broker(view: WhyView, broker_id: int | None, span: Span | None) -> Component:
    if broker_id is None:
        return NOTHING
    to = BrokerView(view.cluster_id, broker_id, lens=view.lens)
    if span is not None:
        to = BrokerView(view.cluster_id, broker_id, span, lens=view.lens)
    return link(f"broker {broker_id}", to)


def _cut(length: int) -> list[Component]:
    return [html.P(f"and {length - SHOWN:,} more: the file has them all")] if length > SHOWN else []


def _rows(view: WhyView, context: Context) -> Rows:
    """The week's minutes, or those that evidence kept."""
    known = _known(view, context)
    if known is None:
        return Rows(MINUTE_COLUMNS, ())
    held = held_minutes(known.minutes, known.evidence)
    return Rows(MINUTE_COLUMNS, with_bad(known.cluster_id, held, known.newest["latency_objective_us"]))


PAGE = Page(
    name="why",
    view=WhyView,
    slots=("why-title.children", "why-text.children"),
    body=body,
    fill=fill,
    parts=(Part("minutes", "Minutes of the week", _rows, has_tools=False),),
)
