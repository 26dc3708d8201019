"""The block of a pair of clusters: whether one could take over from the other now, and the evidence."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dash import html

from fleetgauge_dashboards.links import RecoveryView, TableView
from fleetgauge_dashboards.pages.components import Component, help_button, link
from fleetgauge_dashboards.times import TimeFormat
from fleetgauge_dashboards.units import format_count, format_milliseconds, format_percent, format_seconds
from fleetgauge_dashboards.views.failover import FailoverAnswer, FailoverAssessment, FailoverEvidence
from fleetgauge_dashboards.views.groups import describe_reason
from fleetgauge_dashboards.views.mirrors import MirrorHealth, MirrorLag
from fleetgauge_dashboards.views.producers import ProducerStatus
from fleetgauge_dashboards.views.recovery_weeks import UNKNOWN

#: Findings and mirrors listed in a block; the table has all.
_MAX_LISTED = 6
_CLASSES = {FailoverAnswer.YES: "yes", FailoverAnswer.NO: "no", FailoverAnswer.UNKNOWN: "unknown"}


@dataclass(frozen=True, slots=True)
class _Fact:
    """A value with its title, definition and notes."""

    title: str
    definition: str
    value: str
    notes: Sequence[Component] = ()


def failover_block(assessment: FailoverAssessment, view: RecoveryView, times: TimeFormat) -> Component:
    """Return the answer for a pair of clusters, its reasons, and the evidence as a list of facts."""
    reported_until = assessment.evidence.freshness.until
    hint = "" if assessment.evidence.freshness.is_now else "; values are from that time"
    until = "" if reported_until is None else f"reported until {times.format_instant(reported_until)}{hint}"
    header = [
        html.H3(assessment.evidence.name),
        html.Strong(f"{assessment.answer.sign} {assessment.answer.label}", className="fg-answer"),
        html.Span(until, className="fg-sub"),
    ]
    return html.Section(
        [
            html.Div(header, className="fg-failover__head"),
            html.Ul([html.Li(reason) for reason in assessment.explanation], className="fg-because")
            if assessment.explanation
            else None,
            html.Dl(
                [_render_fact(fact) for fact in _collect_facts(assessment.evidence, view, times)],
                className="fg-evidence",
            ),
        ],
        className=f"fg-failover fg-failover--{_CLASSES[assessment.answer]}",
    )


def _render_fact(fact: _Fact) -> Component:
    return html.Div(
        [
            html.Dt([fact.title, " ", help_button(fact.definition, fact.title)]),
            html.Dd([html.Strong(fact.value), *(html.Div(note, className="fg-note") for note in fact.notes)]),
        ]
    )


def _collect_facts(evidence: FailoverEvidence, view: RecoveryView, times: TimeFormat) -> Iterator[_Fact]:
    yield _Fact(
        "Groups ready",
        "recovery_groups",
        _format_share(evidence.ready, evidence.groups),
        _describe_unknown_groups(evidence),
    )
    yield _Fact(
        "Read again, at most", "failover_replay", _format_records(evidence.replay_at_most, evidence.groups)
    )
    yield _Fact("Lost, at most", "failover_lost", _format_records(evidence.lost_at_most, evidence.groups))
    yield _rto_fact(evidence)
    yield _mirrors_fact(evidence)
    yield _producers_fact(evidence)
    yield _headroom_fact(evidence)
    yield _reasons_fact(evidence)
    yield _findings_fact(evidence, view)
    yield _drill_fact(evidence, times)


def _format_share(part: int, total: int) -> str:
    return f"{part:,} of {total:,}" if total else "none reported"


def _describe_unknown_groups(evidence: FailoverEvidence) -> tuple[str, ...]:
    return (f"{format_count(evidence.unknown, 'group')} unknown",) if evidence.unknown else ()


def _format_records(number: int | None, groups: int) -> str:
    if not groups:
        return "no groups reported"
    return UNKNOWN if number is None else format_count(number, "record")


def _rto_fact(evidence: FailoverEvidence) -> _Fact:
    title, definition = "RTO, slowest group", "failover_rto"
    if evidence.rto_ms is None:
        return _Fact(title, definition, "unknown: no executed drill")
    undrilled = (
        f"{evidence.never_drilled:,} of {format_count(evidence.groups, 'group')} without an executed drill"
    )
    return _Fact(
        title,
        definition,
        f"about {format_seconds(evidence.rto_ms / 1000)}",
        (undrilled,) if evidence.never_drilled else (),
    )


def _mirrors_fact(evidence: FailoverEvidence) -> _Fact:
    fresh = sum(mirror.state is MirrorHealth.FRESH for mirror in evidence.mirrors)
    worst_first = sorted(
        evidence.mirrors, key=lambda mirror: (mirror.state is MirrorHealth.FRESH, -(mirror.silent_s or 0))
    )
    value = f"{_format_share(fresh, len(evidence.mirrors))}{' up to date' if evidence.mirrors else ''}"
    if evidence.mirrors and not any(mirror.now for mirror in evidence.mirrors):
        value = UNKNOWN
    notes = [_describe_mirror(mirror) for mirror in worst_first[:_MAX_LISTED]]
    return _Fact(
        f"Mirrors into {evidence.passive}",
        "failover_mirrors",
        value,
        [*notes, *_format_rest(len(evidence.mirrors))],
    )


def _describe_mirror(mirror: MirrorLag) -> str:
    silent = "" if mirror.silent_s is None else f", silent for {format_seconds(mirror.silent_s)}"
    report = "" if mirror.now else " (last report)" if mirror.until else ""
    return f"{mirror.state.sign} {mirror.source}: {mirror.state.label}{silent}{report}"


def _producers_fact(evidence: FailoverEvidence) -> _Fact:
    title, definition = "Producers reach the target region", "failover_producers"
    if not evidence.producers:
        return _Fact(title, definition, "not measured", ("no tracers are sent there",))
    reaching = sum(producer.is_current and producer.can_produce is True for producer in evidence.producers)
    is_now = any(producer.is_current for producer in evidence.producers)
    value = _format_share(reaching, len(evidence.producers)) if is_now else UNKNOWN
    return _Fact(title, definition, value, [_describe_vantage(producer) for producer in evidence.producers])


def _describe_vantage(producer: ProducerStatus) -> str:
    reached = producer.can_produce if producer.is_current else None
    sign = "◌" if reached is None else "●" if reached else "▲"
    latency = (
        "" if producer.ack_p99_ms is None else f", p99 {format_milliseconds(1000 * producer.ack_p99_ms)}"
    )
    report = "" if producer.is_current else " (last report)"
    return (
        f"{sign} {producer.vantage} to {producer.cluster_id}: {producer.acknowledged:,} of {producer.sent:,} "
        f"acknowledged{latency}{report}"
    )


def _headroom_fact(evidence: FailoverEvidence) -> _Fact:
    title, definition = "Capacity headroom after failover", "failover_headroom"
    if evidence.headroom is not None:
        return _Fact(title, definition, format_percent(evidence.headroom, 1).replace("-", "−"))
    return _Fact(title, definition, "unknown" if evidence.has_capacity else "no capacity configured")


def _reasons_fact(evidence: FailoverEvidence) -> _Fact:
    notes = [
        f"{format_count(groups, 'group')}: {describe_reason(reason)}" for reason, groups in evidence.reasons
    ]
    value = format_count(len(evidence.reasons), "reason") if evidence.reasons else "none"
    return _Fact("Reasons against a failover", "failover_reasons", value, notes)


def _findings_fact(evidence: FailoverEvidence, view: RecoveryView) -> _Fact:
    notes: list[Component] = [
        f"{finding.severity}: {finding.summary or finding.kind}"
        for finding in evidence.findings[:_MAX_LISTED]
    ]
    notes += _format_rest(len(evidence.findings))
    if evidence.findings:
        notes.append(link("All open findings", TableView(view, "findings")))
    return _Fact("Open findings", "recovery_findings", f"{len(evidence.findings):,}", notes)


def _drill_fact(evidence: FailoverEvidence, times: TimeFormat) -> _Fact:
    title, definition, last = "Last drill", "recovery_drill", evidence.last_drill
    if last is None:
        return _Fact(title, definition, "never")
    kind = "executed" if last.executed else "forecast only"
    notes = (
        f"{times.format_instant(last.at)}, {kind}",
        f"{last.ready:,} of {format_count(last.groups, 'group')} ready, by {last.author}",
    )
    return _Fact(title, definition, f"{'●' if last.is_ready else '▲'} {last.verdict}", notes)


def _format_rest(count: int) -> list[Component]:
    return [f"and {count - _MAX_LISTED:,} more"] if count > _MAX_LISTED else []
