"""Whether another region could take over: all that was told last, and the numbers that come first."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from fleetgauge_dashboards.reader.recovery import RecoveryTables
from fleetgauge_dashboards.units import NOTHING, count, duration, seconds
from fleetgauge_dashboards.views.cluster import Number, Verdict, verdict
from fleetgauge_dashboards.views.drills import DrilledGroup, drilled, last_drill
from fleetgauge_dashboards.views.failover import Failover, Known, failovers
from fleetgauge_dashboards.views.findings import OpenFinding, open_findings
from fleetgauge_dashboards.views.groups import GroupNow, groups_now
from fleetgauge_dashboards.views.mirrors import MirrorNow, MirrorState, mirrors_now
from fleetgauge_dashboards.views.producers import producers_now
from fleetgauge_dashboards.views.recovery_freshness import Told, told, told_until
from fleetgauge_dashboards.views.recovery_weeks import (
    NOBODY_KNOWS,
    RecoveryWeek,
    rpo_objective_s,
    shown_weeks,
)

#: Names in a card.
_NAMED = 3

Pairs = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Recovery:
    """The page of it."""

    told: Told
    numbers: tuple[Number, ...]
    failovers: tuple[Failover, ...]
    mirrors: tuple[MirrorNow, ...]
    groups: tuple[GroupNow, ...]
    findings: tuple[OpenFinding, ...]
    drills: tuple[DrilledGroup, ...]
    weeks: tuple[RecoveryWeek, ...]
    objective_s: float | None


def recovery(
    tables: RecoveryTables, mirrors: Pairs, pairs: Pairs, regions: Mapping[str, str], now: datetime
) -> Recovery:
    """Of a fleet with those mirrors and pairs; where no file names any, of those that are told of."""
    minutes = (tables.mirror_minutes(), tables.group_minutes(), tables.producer_minutes())
    weeks = tables.weeks()
    known = Known(
        mirrors_now(minutes[0], mirrors, now),
        groups_now(minutes[1], pairs),
        producers_now(minutes[2], now),
        open_findings(tables.findings()),
        drilled(tables.drills()),
    )
    until, objective_s = told(minutes, now), rpo_objective_s(weeks)
    return Recovery(
        told=until,
        numbers=numbers(known, until, objective_s, now),
        failovers=failovers(known, pairs, regions, now),
        mirrors=tuple(known.mirrors),
        groups=tuple(known.groups),
        findings=tuple(known.findings),
        drills=tuple(known.drills),
        weeks=shown_weeks(weeks),
        objective_s=objective_s,
    )


def numbers(known: Known, until: Told, objective_s: float | None, now: datetime) -> tuple[Number, ...]:
    """What stands first. What is not so now is a note, never the number."""
    return (
        _mirrors(known.mirrors),
        _rpo(known.mirrors, objective_s),
        _groups(known.groups, now),
        _findings(known.findings, until, now),
        _drill(known.drills, now),
    )


def _mirrors(mirrors: Sequence[MirrorNow]) -> Number:
    title, definition = "Mirrors up to date", "recovery_mirrors"
    told_now = [one for one in mirrors if one.now]
    if not told_now:
        return Number(title, NOBODY_KNOWS if mirrors else NOTHING, None, (_of(mirrors),), definition)
    fresh = sum(one.state is MirrorState.FRESH for one in mirrors)
    others = [
        f"{one.state.sign} {one.name}: {one.state}" for one in mirrors if one.state is not MirrorState.FRESH
    ]
    return Number(title, f"{fresh:,} of {len(mirrors):,}", None, _cut(others) or ("all",), definition)


def _of(mirrors: Sequence[MirrorNow]) -> str:
    return f"of {count(len(mirrors), 'mirror')}" if mirrors else "no mirror is told of"


def _rpo(mirrors: Sequence[MirrorNow], objective_s: float | None) -> Number:
    title, definition = "Worst RPO now", "recovery_rpo"
    known = [one for one in mirrors if one.now and one.behind_s_at_most is not None]
    unknown = len(mirrors) - len(known)
    left_out = (f"of {count(unknown, 'mirror')} nobody knows",) if unknown and known else ()
    worst = max(known, key=lambda one: one.behind_s_at_most or 0, default=None)
    if worst is None:
        last = [one.behind_s_at_most for one in mirrors if one.behind_s_at_most is not None]
        said = (f"when last told at most {seconds(max(last))}",) if last else (_of(mirrors),)
        return Number(title, NOBODY_KNOWS if mirrors else NOTHING, None, said, definition)
    notes = (f"{worst.name}{_held_to(objective_s)}", *left_out, _estimated(mirrors))
    return Number(
        title, f"≤ {seconds(worst.behind_s_at_most)}", _met(worst, unknown, objective_s), notes, definition
    )


def _estimated(mirrors: Sequence[MirrorNow]) -> str:
    known = [one.behind_s for one in mirrors if one.now and one.behind_s is not None]
    if not known:
        return "not estimated: no tracer came"
    of = "" if len(known) == len(mirrors) else f" of {len(known):,} of {len(mirrors):,}"
    return f"estimated by tracers{of}: {seconds(max(known))}"


def _held_to(objective_s: float | None) -> str:
    return "" if objective_s is None else f"; objective {seconds(objective_s)}"


def _met(worst: MirrorNow, unknown: int, objective_s: float | None) -> Verdict | None:
    """None without an objective."""
    if objective_s is None:
        return None
    within = (worst.behind_s_at_most or 0) <= objective_s
    return verdict(bool(unknown) and within, within)


def _groups(groups: Sequence[GroupNow], now: datetime) -> Number:
    title, definition = "Groups ready", "recovery_groups"
    current = [one for one in groups if told_until(one.until, now).is_now]
    if not current:
        was = f"when last told {sum(one.ready is True for one in groups):,} of {count(len(groups), 'group')}"
        said = was if groups else "no group is told of"
        return Number(title, NOBODY_KNOWS if groups else NOTHING, None, (said,), definition)
    ready = sum(one.ready is True for one in current)
    others = [f"▲ {one.group_id}" for one in current if one.ready is not True]
    return Number(title, f"{ready:,} of {len(groups):,}", None, _cut(others) or ("all",), definition)


def _findings(findings: Sequence[OpenFinding], until: Told, now: datetime) -> Number:
    title, definition = "Open findings", "recovery_findings"
    if not findings:
        said = "nothing that was named speaks against it" if until.is_now else "nobody looks now"
        return Number(title, "0", None, (said,), definition)
    counted = Counter(one.severity or "of no severity" for one in findings)
    severities = ", ".join(count(number, severity) for severity, number in sorted(counted.items()))
    oldest = min(one.since for one in findings)
    notes = (severities, f"the oldest for {duration(now - oldest)}")
    return Number(title, f"{len(findings):,}", None, notes, definition)


def _drill(drills: Sequence[DrilledGroup], now: datetime) -> Number:
    title, definition = "Last drill", "recovery_drill"
    last = last_drill(drills)
    if last is None:
        return Number(title, "never", None, ("fleetgauge recover drill forecasts or tries one",), definition)
    what = "executed" if last.executed else "forecast alone"
    notes = (f"{duration(now - last.at)} ago by {last.author}, {what}", f"{last.active} to {last.passive}")
    sign = "●" if last.is_ready else "▲"
    return Number(title, f"{sign} {last.verdict}", None, notes, definition)


def _cut(names: Sequence[str]) -> tuple[str, ...]:
    """A few of them, and how many more."""
    more = len(names) - _NAMED
    return (*names[:_NAMED], f"and {more:,} more") if more > 0 else tuple(names)
