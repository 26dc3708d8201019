"""Summarize whether another region could take over: the latest observations, and the key figures."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from fleetgauge_dashboards.reader.recovery import RecoveryReader
from fleetgauge_dashboards.units import NO_VALUE, format_count, format_duration, format_seconds
from fleetgauge_dashboards.views.cluster import KeyFigure, ObjectiveVerdict, judge_objective
from fleetgauge_dashboards.views.drills import DrilledGroup, parse_drilled_groups, summarize_latest_drill
from fleetgauge_dashboards.views.failover import FailoverAssessment, RecoverySnapshot, assess_failovers
from fleetgauge_dashboards.views.findings import OpenFinding, fold_open_findings
from fleetgauge_dashboards.views.groups import GroupReadiness, latest_group_readiness
from fleetgauge_dashboards.views.mirrors import MirrorHealth, MirrorLag, latest_mirror_lags
from fleetgauge_dashboards.views.producers import latest_producer_statuses
from fleetgauge_dashboards.views.recovery_freshness import (
    RecoveryFreshness,
    assess_freshness_at,
    assess_freshness_of_tables,
)
from fleetgauge_dashboards.views.recovery_weeks import (
    UNKNOWN,
    RecoveryWeek,
    build_recovery_weeks,
    find_rpo_objective_s,
)

#: Names listed in a card; the rest is counted.
_MAX_NAMES = 3

Pairs = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class RecoveryOverview:
    """Everything that the recovery page shows."""

    freshness: RecoveryFreshness
    key_figures: tuple[KeyFigure, ...]
    failovers: tuple[FailoverAssessment, ...]
    mirrors: tuple[MirrorLag, ...]
    groups: tuple[GroupReadiness, ...]
    findings: tuple[OpenFinding, ...]
    drills: tuple[DrilledGroup, ...]
    weeks: tuple[RecoveryWeek, ...]
    objective_s: float | None


def build_recovery_overview(
    reader: RecoveryReader, mirrors: Pairs, pairs: Pairs, regions: Mapping[str, str], now: datetime
) -> RecoveryOverview:
    """Build the overview of a fleet with those mirrors and pairs.

    Where the fleet file names none, the observed ones are used.
    """
    minutes = (reader.mirror_minutes(), reader.group_minutes(), reader.producer_minutes())
    weeks = reader.weeks()
    snapshot = RecoverySnapshot(
        latest_mirror_lags(minutes[0], mirrors, now),
        latest_group_readiness(minutes[1], pairs),
        latest_producer_statuses(minutes[2], now),
        fold_open_findings(reader.findings()),
        parse_drilled_groups(reader.drills()),
    )
    freshness, objective_s = assess_freshness_of_tables(minutes, now), find_rpo_objective_s(weeks)
    return RecoveryOverview(
        freshness=freshness,
        key_figures=recovery_key_figures(snapshot, freshness, objective_s, now),
        failovers=assess_failovers(snapshot, pairs, regions, now),
        mirrors=tuple(snapshot.mirrors),
        groups=tuple(snapshot.groups),
        findings=tuple(snapshot.findings),
        drills=tuple(snapshot.drills),
        weeks=build_recovery_weeks(weeks),
        objective_s=objective_s,
    )


def recovery_key_figures(
    snapshot: RecoverySnapshot, freshness: RecoveryFreshness, objective_s: float | None, now: datetime
) -> tuple[KeyFigure, ...]:
    """Return the key figures; a value that does not describe the present is only ever a note."""
    return (
        _mirrors(snapshot.mirrors),
        _rpo(snapshot.mirrors, objective_s),
        _groups(snapshot.groups, now),
        _findings(snapshot.findings, freshness, now),
        _drill(snapshot.drills, now),
    )


def _mirrors(mirrors: Sequence[MirrorLag]) -> KeyFigure:
    title, definition = "Mirrors up to date", "recovery_mirrors"
    current = [mirror for mirror in mirrors if mirror.now]
    if not current:
        return KeyFigure(title, UNKNOWN if mirrors else NO_VALUE, None, (_count_of(mirrors),), definition)
    fresh = sum(mirror.state is MirrorHealth.FRESH for mirror in mirrors)
    not_fresh = [
        f"{mirror.state.sign} {mirror.name}: {mirror.state.label}"
        for mirror in mirrors
        if mirror.state is not MirrorHealth.FRESH
    ]
    return KeyFigure(
        title, f"{fresh:,} of {len(mirrors):,}", None, _shorten(not_fresh) or ("all",), definition
    )


def _count_of(mirrors: Sequence[MirrorLag]) -> str:
    return f"of {format_count(len(mirrors), 'mirror')}" if mirrors else "no mirror observed"


def _rpo(mirrors: Sequence[MirrorLag], objective_s: float | None) -> KeyFigure:
    title, definition = "Worst RPO now", "recovery_rpo"
    measured = [mirror for mirror in mirrors if mirror.now and mirror.behind_s_at_most is not None]
    unknown = len(mirrors) - len(measured)
    unknown_note = (f"unknown for {format_count(unknown, 'mirror')}",) if unknown and measured else ()
    worst = max(measured, key=lambda mirror: mirror.behind_s_at_most or 0, default=None)
    if worst is None:
        last_known = [mirror.behind_s_at_most for mirror in mirrors if mirror.behind_s_at_most is not None]
        notes = (
            (f"last known: at most {format_seconds(max(last_known))}",)
            if last_known
            else (_count_of(mirrors),)
        )
        return KeyFigure(title, UNKNOWN if mirrors else NO_VALUE, None, notes, definition)
    notes = (f"{worst.name}{_objective_note(objective_s)}", *unknown_note, _estimated(mirrors))
    return KeyFigure(
        title,
        f"≤ {format_seconds(worst.behind_s_at_most)}",
        _judge_rpo(worst, unknown, objective_s),
        notes,
        definition,
    )


def _estimated(mirrors: Sequence[MirrorLag]) -> str:
    estimates = [mirror.behind_s for mirror in mirrors if mirror.now and mirror.behind_s is not None]
    if not estimates:
        return "no estimate: no tracer record arrived"
    scope = "" if len(estimates) == len(mirrors) else f" of {len(estimates):,} of {len(mirrors):,}"
    return f"estimated by tracers{scope}: {format_seconds(max(estimates))}"


def _objective_note(objective_s: float | None) -> str:
    return "" if objective_s is None else f"; objective {format_seconds(objective_s)}"


def _judge_rpo(worst: MirrorLag, mirrors_unknown: int, objective_s: float | None) -> ObjectiveVerdict | None:
    """Return the verdict on the worst RPO; None without an objective."""
    if objective_s is None:
        return None
    is_within = (worst.behind_s_at_most or 0) <= objective_s
    return judge_objective(bool(mirrors_unknown) and is_within, is_within)


def _groups(groups: Sequence[GroupReadiness], now: datetime) -> KeyFigure:
    title, definition = "Groups ready", "recovery_groups"
    current = [group for group in groups if assess_freshness_at(group.until, now).is_now]
    if not current:
        last_ready = sum(group.ready is True for group in groups)
        last_known = f"last known: {last_ready:,} of {format_count(len(groups), 'group')}"
        note = last_known if groups else "no consumer group observed"
        return KeyFigure(title, UNKNOWN if groups else NO_VALUE, None, (note,), definition)
    ready = sum(group.ready is True for group in current)
    not_ready = [f"▲ {group.group_id}" for group in current if group.ready is not True]
    return KeyFigure(
        title, f"{ready:,} of {len(groups):,}", None, _shorten(not_ready) or ("all",), definition
    )


def _findings(findings: Sequence[OpenFinding], freshness: RecoveryFreshness, now: datetime) -> KeyFigure:
    title, definition = "Open findings", "recovery_findings"
    if not findings:
        note = (
            "no open finding argues against a failover"
            if freshness.is_now
            else "recovery is not monitored now"
        )
        return KeyFigure(title, "0", None, (note,), definition)
    by_severity = Counter(finding.severity or "without severity" for finding in findings)
    severities = ", ".join(format_count(number, severity) for severity, number in sorted(by_severity.items()))
    oldest = min(finding.since for finding in findings)
    notes = (severities, f"the oldest for {format_duration(now - oldest)}")
    return KeyFigure(title, f"{len(findings):,}", None, notes, definition)


def _drill(drills: Sequence[DrilledGroup], now: datetime) -> KeyFigure:
    title, definition = "Last drill", "recovery_drill"
    drill = summarize_latest_drill(drills)
    if drill is None:
        return KeyFigure(title, "never", None, ("run one: fleetgauge recover drill",), definition)
    mode = "executed" if drill.executed else "forecast only"
    notes = (
        f"{format_duration(now - drill.at)} ago by {drill.author}, {mode}",
        f"{drill.active} to {drill.passive}",
    )
    sign = "●" if drill.is_ready else "▲"
    return KeyFigure(title, f"{sign} {drill.verdict}", None, notes, definition)


def _shorten(names: Sequence[str]) -> tuple[str, ...]:
    """Return the first few names, and how many more there are."""
    more = len(names) - _MAX_NAMES
    return (*names[:_MAX_NAMES], f"and {more:,} more") if more > 0 else tuple(names)
