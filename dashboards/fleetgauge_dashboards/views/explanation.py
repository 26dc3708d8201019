"""Why a cluster's week is what it is: from its numbers to the minutes, brokers and changes behind them."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from fleetgauge_core import tables
from fleetgauge_dashboards.definitions import DEFINITIONS
from fleetgauge_dashboards.links import Span
from fleetgauge_dashboards.reader.cluster_week import KnownWeek
from fleetgauge_dashboards.views.deciding_minutes import (
    Decided,
    Row,
    decided,
    raw_of,
)
from fleetgauge_dashboards.views.episodes import (
    BadStretch,
    UnmeasuredStretch,
    WorstHome,
    bad_stretches,
    is_bad,
    unmeasured_stretches,
    worst_homes,
)
from fleetgauge_dashboards.views.samples import held_minutes

#: Which of the definitions a week rests on.
DEFINED = ("latency_p99", "latency_budget", "availability_ratio", "coverage")
_IDENTITY = ("closed", "revision_reason")
_RAW = "_raw"


@dataclass(frozen=True, slots=True)
class Revision:
    """One revision of the week: why and when it was made, and each number that it changed."""

    revision: int
    closed: bool
    reason: str | None
    computed_at: datetime | None
    changed: Mapping[str, tuple[Any, Any]]


@dataclass(frozen=True, slots=True)
class Explanation:
    """All of it. ``minutes_held`` are silver's; ``bad_minutes_found`` those that are bad among what is held.

    ``attempted`` and ``succeeded`` are None once silver's minutes have expired, and ``brokers`` and
    ``unmeasured`` are empty.
    """

    cluster_id: str
    week: date
    revision: int
    closed: bool
    week_row: Row
    notes: tuple[str, ...]
    minutes_held: int
    decided: tuple[Decided, ...]
    attempted: int | None
    succeeded: int | None
    bad_minutes_found: int
    bad_stretches: tuple[BadStretch, ...]
    brokers: tuple[WorstHome, ...]
    unmeasured: tuple[UnmeasuredStretch, ...]
    corrections: tuple[Row, ...]
    corrected: Mapping[str, tuple[Any, Any]]
    revisions: tuple[Revision, ...]
    definition: str | None
    definition_words: Mapping[str, str]

    @property
    def deciding_minutes(self) -> tuple[datetime, ...]:
        """The first minute that decides each number: whose samples are worth a look."""
        return tuple(sorted({one.deciding[0].minute for one in self.decided if one.deciding}))


def explanation(known: KnownWeek, segments: Set[tuple[str, str]] | None) -> Explanation:
    """Of what is held; without the cluster's ``segments`` corrections of every segment are taken along."""
    week, minutes, evidence = known.newest, known.minutes, known.evidence
    objective_us = week["latency_objective_us"]
    held = held_minutes(minutes, evidence)
    numbers = decided(week, held, complete=bool(minutes) and len(held) == len(minutes))
    corrections = [row for row in known.corrections if may_touch(row, known.cluster_id, segments, known.span)]
    return Explanation(
        cluster_id=week["cluster_id"],
        week=week["week"],
        revision=week["revision"],
        closed=bool(week["closed"]),
        week_row=week,
        notes=_notes(week, minutes, evidence, numbers),
        minutes_held=len(minutes),
        decided=numbers,
        attempted=sum(row["attempted"] or 0 for row in minutes) if minutes else None,
        succeeded=sum(row["succeeded"] or 0 for row in minutes) if minutes else None,
        bad_minutes_found=sum(is_bad(row, objective_us) for row in held),
        bad_stretches=bad_stretches(held, objective_us),
        brokers=worst_homes(minutes, objective_us),
        unmeasured=unmeasured_stretches(minutes),
        corrections=tuple(corrections),
        corrected=_corrected(week),
        revisions=_revisions(known.revisions),
        definition=week["definition"],
        definition_words={name: DEFINITIONS[name] for name in DEFINED},
    )


def _notes(
    week: Row, minutes: Sequence[Row], evidence: Sequence[Row], numbers: Sequence[Decided]
) -> tuple[str, ...]:
    """What a reader must know before believing the rest."""
    if not minutes:
        kept = len({row["minute"] for row in evidence})
        rest = f"the evidence of {kept} minutes" if kept else "the week's own row: no evidence was kept"
        return (f"silver no longer holds the week's minutes; answered from {rest}",)
    expected = week["minutes_expected"] or 0
    held = (
        [f"silver holds {len(minutes):,} of the week's {expected:,} minutes"]
        if len(minutes) < expected
        else []
    )
    differing = [
        f"silver now gives {one.metric} = {one.found} where revision {week['revision']} has {one.value_raw}"
        for one in numbers
        if one.found != one.value_raw
    ]
    return (*held, *differing)


def _corrected(week: Row) -> dict[str, tuple[Any, Any]]:
    """Each number that corrections changed: corrected, raw."""
    names = [name.removesuffix(_RAW) for name in tables.CLUSTER_WEEKS.names if name.endswith(_RAW)]
    return {name: (week[name], raw) for name in names if (raw := raw_of(week, name)) != week[name]}


def _revisions(ascending: Sequence[Row]) -> tuple[Revision, ...]:
    before: Sequence[Row | None] = (None, *ascending[:-1])
    return tuple(
        Revision(
            row["revision"],
            bool(row["closed"]),
            row["revision_reason"],
            row["computed_at"],
            _changed(old, row) if old else {},
        )
        for old, row in zip(before, ascending, strict=True)
    )


def _changed(old: Row, new: Row) -> dict[str, tuple[Any, Any]]:
    names = [name for name in tables.CLUSTER_WEEKS.content if name not in _IDENTITY]
    return {name: (old[name], new[name]) for name in names if old[name] != new[name]}


def may_touch(correction: Row, cluster_id: str, segments: Set[tuple[str, str]] | None, span: Span) -> bool:
    """Whether a correction is about the cluster and could fall into the span.

    Without the cluster's segments those of every segment are taken along.
    """
    if correction["scope"] == "segment":
        ours = segments is None or (correction["segment"], correction["segment_value"]) in segments
    else:
        ours = correction["cluster_id"] == cluster_id
    last = correction["recurs_until"] if correction["recurs"] else correction["ends"]
    return ours and correction["starts"] < span.end and (last is None or last > span.start)
