"""Explain a cluster's week: from its numbers to the minutes, brokers and changes behind them."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from fleetgauge_core import tables
from fleetgauge_dashboards.definitions import DEFINITIONS
from fleetgauge_dashboards.links import Span
from fleetgauge_dashboards.reader.cluster_week import ClusterWeekRows
from fleetgauge_dashboards.views.bad_periods import (
    BadPeriod,
    UnmeasuredPeriod,
    WorstHomeCount,
    count_worst_homes,
    find_bad_periods,
    find_unmeasured_periods,
    is_bad_minute,
)
from fleetgauge_dashboards.views.deciding_minutes import (
    DecidedNumber,
    Row,
    find_decided_numbers,
    uncorrected_value,
)
from fleetgauge_dashboards.views.samples import available_minutes

#: The definitions that a week's numbers rest on.
EXPLAINED_DEFINITIONS = ("latency_p99", "latency_budget", "availability_ratio", "coverage")
_IDENTITY = ("closed", "revision_reason")
_RAW = "_raw"


@dataclass(frozen=True, slots=True)
class WeekRevision:
    """A revision of the week: why and when it was made, and each number that it changed, as old and new."""

    revision: int
    closed: bool
    reason: str | None
    computed_at: datetime | None
    changed: Mapping[str, tuple[Any, Any]]


@dataclass(frozen=True, slots=True)
class Explanation:
    """The explanation of one cluster-week.

    ``minutes_held`` counts silver's minutes; ``bad_minutes_found`` counts bad minutes among those and the
    evidence. Once silver's minutes have expired, ``attempted`` and ``succeeded`` are None and ``brokers`` and
    ``unmeasured`` are empty.
    """

    cluster_id: str
    week: date
    revision: int
    closed: bool
    week_row: Row
    notes: tuple[str, ...]
    minutes_held: int
    decided: tuple[DecidedNumber, ...]
    attempted: int | None
    succeeded: int | None
    bad_minutes_found: int
    bad_stretches: tuple[BadPeriod, ...]
    brokers: tuple[WorstHomeCount, ...]
    unmeasured: tuple[UnmeasuredPeriod, ...]
    corrections: tuple[Row, ...]
    corrected: Mapping[str, tuple[Any, Any]]
    revisions: tuple[WeekRevision, ...]
    definition: str | None
    definition_words: Mapping[str, str]

    @property
    def deciding_minutes(self) -> tuple[datetime, ...]:
        """Return the first minute that decides each number; its samples are worth inspecting."""
        return tuple(sorted({number.deciding[0].minute for number in self.decided if number.deciding}))


def explain_week(rows: ClusterWeekRows, segments: Set[tuple[str, str]] | None) -> Explanation:
    """Explain the week from the rows that remain.

    Without the cluster's ``segments``, corrections of every segment are included.
    """
    week, minutes, evidence = rows.newest_revision, rows.minutes, rows.evidence
    objective_us = week["latency_objective_us"]
    stored = available_minutes(minutes, evidence)
    numbers = find_decided_numbers(week, stored, complete=bool(minutes) and len(stored) == len(minutes))
    corrections = [row for row in rows.corrections if may_affect(row, rows.cluster_id, segments, rows.span)]
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
        bad_minutes_found=sum(is_bad_minute(row, objective_us) for row in stored),
        bad_stretches=find_bad_periods(stored, objective_us),
        brokers=count_worst_homes(minutes, objective_us),
        unmeasured=find_unmeasured_periods(minutes, rows.unmeasured_brokers),
        corrections=tuple(corrections),
        corrected=_corrected(week),
        revisions=_revisions(rows.revisions),
        definition=week["definition"],
        definition_words={name: DEFINITIONS[name] for name in EXPLAINED_DEFINITIONS},
    )


def _notes(
    week: Row, minutes: Sequence[Row], evidence: Sequence[Row], numbers: Sequence[DecidedNumber]
) -> tuple[str, ...]:
    """Return what a reader must know before trusting the rest."""
    if not minutes:
        minutes_kept = len({row["minute"] for row in evidence})
        source = (
            f"the evidence of {minutes_kept} minutes"
            if minutes_kept
            else "the week's row alone, as no evidence was kept"
        )
        return (f"silver no longer holds the week's minutes; this explanation comes from {source}",)
    expected = week["minutes_expected"] or 0
    incomplete = (
        [f"silver holds {len(minutes):,} of the week's {expected:,} minutes"]
        if len(minutes) < expected
        else []
    )
    differing = [
        f"silver now gives {number.metric} = {number.found}, "
        f"but revision {week['revision']} has {number.value_raw}"
        for number in numbers
        if number.found != number.value_raw
    ]
    return (*incomplete, *differing)


def _corrected(week: Row) -> dict[str, tuple[Any, Any]]:
    """Return each number that corrections changed, as its corrected and its raw value."""
    names = [name.removesuffix(_RAW) for name in tables.CLUSTER_WEEKS.column_names if name.endswith(_RAW)]
    return {name: (week[name], raw) for name in names if (raw := uncorrected_value(week, name)) != week[name]}


def _revisions(ascending: Sequence[Row]) -> tuple[WeekRevision, ...]:
    previous: Sequence[Row | None] = (None, *ascending[:-1])
    return tuple(
        WeekRevision(
            row["revision"],
            bool(row["closed"]),
            row["revision_reason"],
            row["computed_at"],
            _changed(older, row) if older else {},
        )
        for older, row in zip(previous, ascending, strict=True)
    )


def _changed(old: Row, new: Row) -> dict[str, tuple[Any, Any]]:
    names = [name for name in tables.CLUSTER_WEEKS.compared_columns if name not in _IDENTITY]
    return {name: (old[name], new[name]) for name in names if old[name] != new[name]}


def may_affect(correction: Row, cluster_id: str, segments: Set[tuple[str, str]] | None, span: Span) -> bool:
    """Return whether a correction concerns the cluster and may overlap the span.

    Without the cluster's ``segments``, corrections of every segment are included.
    """
    if correction["scope"] == "segment":
        concerns_cluster = (
            segments is None or (correction["segment"], correction["segment_value"]) in segments
        )
    else:
        concerns_cluster = correction["cluster_id"] == cluster_id
    last = correction["recurs_until"] if correction["recurs"] else correction["ends"]
    return concerns_cluster and correction["starts"] < span.end and (last is None or last > span.start)
