"""One pair of clusters: could one take over from the other now, and on what evidence?"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dash import html

from fleetgauge_dashboards.links import RecoveryView, TableView
from fleetgauge_dashboards.pages.parts import Component, help_sign, link
from fleetgauge_dashboards.times import Times
from fleetgauge_dashboards.units import count, milliseconds, percent, seconds
from fleetgauge_dashboards.views.failover import Answer, Evidence, Failover
from fleetgauge_dashboards.views.groups import in_words
from fleetgauge_dashboards.views.mirrors import MirrorNow, MirrorState
from fleetgauge_dashboards.views.producers import ProducersNow
from fleetgauge_dashboards.views.recovery_weeks import NOBODY_KNOWS

#: Findings, and mirrors, named in a block; the table has all.
_NAMED = 6
_CLASSES = {Answer.YES: "yes", Answer.NO: "no", Answer.NOBODY_KNOWS: "unknown"}


@dataclass(frozen=True, slots=True)
class _Fact:
    """A number, with what stands below it."""

    title: str
    definition: str
    value: str
    notes: Sequence[Component] = ()


def failover_block(one: Failover, view: RecoveryView, times: Times) -> Component:
    told = one.evidence.told.until
    then = "" if one.evidence.told.is_now else "; numbers are from then"
    until = "" if told is None else f"told until {times.instant(told)}{then}"
    head = [
        html.H3(one.evidence.name),
        html.Strong(f"{one.answer.sign} {one.answer}", className="fg-answer"),
        html.Span(until, className="fg-sub"),
    ]
    return html.Section(
        [
            html.Div(head, className="fg-failover__head"),
            html.Ul([html.Li(reason) for reason in one.because], className="fg-because")
            if one.because
            else None,
            html.Dl([_fact(fact) for fact in _facts(one.evidence, view, times)], className="fg-evidence"),
        ],
        className=f"fg-failover fg-failover--{_CLASSES[one.answer]}",
    )


def _fact(fact: _Fact) -> Component:
    return html.Div(
        [
            html.Dt([fact.title, " ", help_sign(fact.definition, fact.title)]),
            html.Dd([html.Strong(fact.value), *(html.Div(note, className="fg-note") for note in fact.notes)]),
        ]
    )


def _facts(of: Evidence, view: RecoveryView, times: Times) -> Iterator[_Fact]:
    yield _Fact("Groups ready", "recovery_groups", _of_all(of.ready, of.groups), _unknown_groups(of))
    yield _Fact("Read again, at most", "failover_replay", _records(of.replay_at_most, of.groups))
    yield _Fact("Lost, at most", "failover_lost", _records(of.lost_at_most, of.groups))
    yield _rto(of)
    yield _mirrors(of)
    yield _producers(of)
    yield _headroom(of)
    yield _reasons(of)
    yield _findings(of, view)
    yield _drill(of, times)


def _of_all(some: int, every: int) -> str:
    return f"{some:,} of {every:,}" if every else "none is told of"


def _unknown_groups(of: Evidence) -> tuple[str, ...]:
    return (f"of {count(of.unknown, 'group')} nobody knows",) if of.unknown else ()


def _records(number: int | None, groups: int) -> str:
    if not groups:
        return "none is told of"
    return NOBODY_KNOWS if number is None else count(number, "record")


def _rto(of: Evidence) -> _Fact:
    title, definition = "RTO, slowest group", "failover_rto"
    if of.rto_ms is None:
        return _Fact(title, definition, "never drilled")
    never = f"{of.never_drilled:,} of {count(of.groups, 'group')} never drilled"
    return _Fact(
        title, definition, f"about {seconds(of.rto_ms / 1000)}", (never,) if of.never_drilled else ()
    )


def _mirrors(of: Evidence) -> _Fact:
    fresh = sum(one.state is MirrorState.FRESH for one in of.mirrors)
    worst_first = sorted(of.mirrors, key=lambda one: (one.state is MirrorState.FRESH, -(one.silent_s or 0)))
    value = f"{_of_all(fresh, len(of.mirrors))}{' up to date' if of.mirrors else ''}"
    if of.mirrors and not any(one.now for one in of.mirrors):
        value = NOBODY_KNOWS
    notes = [_mirror(one) for one in worst_first[:_NAMED]]
    return _Fact(f"Mirrors into {of.passive}", "failover_mirrors", value, [*notes, *_more(len(of.mirrors))])


def _mirror(one: MirrorNow) -> str:
    silent = "" if one.silent_s is None else f", silent for {seconds(one.silent_s)}"
    told = "" if one.now else " (when last told)" if one.until else ""
    return f"{one.state.sign} {one.source}: {one.state}{silent}{told}"


def _producers(of: Evidence) -> _Fact:
    title, definition = "Producers get through", "failover_producers"
    if not of.producers:
        return _Fact(title, definition, "not tried", ("no tracer is sent there",))
    through = sum(one.now and one.get_through is True for one in of.producers)
    is_now = any(one.now for one in of.producers)
    value = _of_all(through, len(of.producers)) if is_now else NOBODY_KNOWS
    return _Fact(title, definition, value, [_vantage(one) for one in of.producers])


def _vantage(one: ProducersNow) -> str:
    known = one.get_through if one.now else None
    sign = "◌" if known is None else "●" if known else "▲"
    took = "" if one.ack_p99_ms is None else f", p99 {milliseconds(1000 * one.ack_p99_ms)}"
    told = "" if one.now else " (when last told)"
    return (
        f"{sign} {one.vantage} into {one.cluster_id}: {one.acknowledged:,} of {one.sent:,} "
        f"acknowledged{took}{told}"
    )


def _headroom(of: Evidence) -> _Fact:
    title, definition = "Headroom after taking over", "failover_headroom"
    if of.headroom is not None:
        return _Fact(title, definition, percent(of.headroom, 1).replace("-", "−"))
    return _Fact(title, definition, "not known" if of.has_capacity else "no capacity given")


def _reasons(of: Evidence) -> _Fact:
    notes = [f"{count(groups, 'group')}: {in_words(reason)}" for reason, groups in of.reasons]
    value = count(len(of.reasons), "reason") if of.reasons else "none"
    return _Fact("Reasons against", "failover_reasons", value, notes)


def _findings(of: Evidence, view: RecoveryView) -> _Fact:
    notes: list[Component] = [f"{one.severity}: {one.summary or one.kind}" for one in of.findings[:_NAMED]]
    notes += _more(len(of.findings))
    if of.findings:
        notes.append(link("All open findings", TableView(view, "findings")))
    return _Fact("Open findings", "recovery_findings", f"{len(of.findings):,}", notes)


def _drill(of: Evidence, times: Times) -> _Fact:
    title, definition, last = "Last drill", "recovery_drill", of.last_drill
    if last is None:
        return _Fact(title, definition, "never")
    what = "executed" if last.executed else "forecast alone"
    notes = (
        f"{times.instant(last.at)}, {what}",
        f"{last.ready:,} of {count(last.groups, 'group')}, by {last.author}",
    )
    return _Fact(title, definition, f"{'●' if last.is_ready else '▲'} {last.verdict}", notes)


def _more(number: int) -> list[Component]:
    return [f"and {number - _NAMED:,} more"] if number > _NAMED else []
