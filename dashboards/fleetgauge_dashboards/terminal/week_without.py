"""A week as it would have been without the minutes that one cause, change, finding or action explains."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import date, timedelta
from typing import Any

from fleetgauge_core import tables
from fleetgauge_core.runtime.cli import InputError
from fleetgauge_core.slo.causes import (
    LONGEST_DETECTION,
    PRECEDENCE,
    CauseInterval,
    HealthTransition,
    is_cause_action,
)
from fleetgauge_core.slo.change_causes import RecordedChange, Segments, build_cause_intervals
from fleetgauge_core.slo.corrections import Correction, ExcludedRange, find_occurrences
from fleetgauge_core.slo.levels import MIN_FLEET_COVERAGE
from fleetgauge_core.slo.quantile import quantile, quantile_from_bad_side
from fleetgauge_core.slo.week_levels import apply_corrections, compute_week_levels
from fleetgauge_core.slo.weeks import WeekCalendar, WeekSpan
from fleetgauge_dashboards.links import Span
from fleetgauge_dashboards.reader import column, read_once
from fleetgauge_dashboards.reader.cluster_week import ClusterWeekReader
from fleetgauge_dashboards.terminal.lake_source import LakeSource

Row = Mapping[str, Any]

#: Of these metrics less is better.
_LOWER_IS_BETTER = ("latency_p99_us",)
_QUANTILES = {"median": 50, "p90": 90, "p99": 99}
_CORRECTION_COLUMNS = tuple(field.name for field in fields(Correction))
_CHANGE_COLUMNS = tuple(field.name for field in fields(RecordedChange))
_EVENT_COLUMNS = tuple(field.name for field in fields(HealthTransition))


@dataclass(frozen=True, slots=True)
class LeftOutMinutes:
    """What is left out: the minutes of a cause, of a cluster only while one of its intervals is active.

    ``intervals`` is None for all minutes of the cause, wherever they are.
    """

    causes: frozenset[str]
    intervals: tuple[CauseInterval, ...] | None = None

    def includes(self, cluster_id: str, minute: Row) -> bool:
        """Return whether a row of silver/cluster_minutes is left out."""
        if minute["cause"] not in self.causes:
            return False
        return self.intervals is None or any(
            interval.cluster_id == cluster_id
            and interval.cause == minute["cause"]
            and interval.is_active_in(minute["minute"])
            for interval in self.intervals
        )

    def may_include(self, week: Row) -> bool:
        """Return whether a row of gold/cluster_weeks may have minutes that are left out."""
        names = {name for name, _ in _pairs(week["causes"])}
        return bool(names & self.causes) and (
            self.intervals is None
            or any(interval.cluster_id == week["cluster_id"] for interval in self.intervals)
        )


def _pairs(causes: Any) -> Iterable[tuple[str, int]]:
    return causes.items() if isinstance(causes, Mapping) else causes or ()


def find_left_out_minutes(source: LakeSource, name: str, segments: Mapping[str, Segments]) -> LeftOutMinutes:
    """Return what a cause, or the ID of a change, a finding or an action, explains.

    Raises: InputError if it is none of these, or explains no minute; LakeError.
    """
    if name in PRECEDENCE:
        return LeftOutMinutes(frozenset({name}))
    intervals = (
        _intervals_of_change(source.lake, name, segments)
        or _intervals_of_finding(source.lake, name, segments)
        or _intervals_of_action(source.lake, name)
    )
    if not intervals:
        causes = ", ".join(dict.fromkeys(PRECEDENCE))
        raise InputError(
            f"--without {name}: explains no minute; give a cause ({causes}), or the ID of a change, a finding"
            " or an action that `fleetgauge changes --json`, ops/health_events or ops/actions has"
        )
    return LeftOutMinutes(frozenset(interval.cause for interval in intervals), tuple(intervals))


def _intervals_of_change(lake: str, change_id: str, segments: Mapping[str, Segments]) -> list[CauseInterval]:
    changes = _read_changes(lake, column("change_id") == change_id)
    if not changes:
        return []
    subject = (changes[0].cluster_id, changes[0].broker_id)
    # The findings about a broker that its restart produces are the roll's.
    events = [
        event
        for event in _read_events(lake, column("cluster_id") == changes[0].cluster_id)
        if (event.cluster_id, event.broker_id) == subject
    ]
    without_change = build_cause_intervals(events)
    with_change = build_cause_intervals(events, changes, segments)
    return [interval for interval in with_change if interval not in without_change]


def _intervals_of_finding(lake: str, name: str, segments: Mapping[str, Segments]) -> list[CauseInterval]:
    """Return what the findings with a fingerprint explain, or the one that an event has opened."""
    named = read_once(
        lake, tables.HEALTH_EVENTS, (column("fingerprint") == name) | (column("event_id") == name)
    ).to_pylist()
    if not named:
        return []
    events = _read_events(lake, column("fingerprint") == named[0]["fingerprint"])
    opened = {event["at"] for event in named}
    changes = _read_changes(lake, column("cluster_id") == events[0].cluster_id)
    of_changes = build_cause_intervals((), changes, segments)
    return [
        interval
        for interval in build_cause_intervals(events, changes, segments)
        if interval not in of_changes
        and any(timedelta(0) <= at - interval.starts <= LONGEST_DETECTION for at in opened)
    ]


def _read_changes(lake: str, where: Any) -> list[RecordedChange]:
    rows = read_once(lake, tables.CHANGES, where, _CHANGE_COLUMNS).to_pylist()
    return [RecordedChange(**row) for row in rows]


def _read_events(lake: str, where: Any) -> list[HealthTransition]:
    rows = read_once(lake, tables.HEALTH_EVENTS, where, _EVENT_COLUMNS).to_pylist()
    return [HealthTransition(**row) for row in rows]


def _intervals_of_action(lake: str, action_id: str) -> list[CauseInterval]:
    rows = read_once(lake, tables.ACTIONS, column("action_id") == action_id).to_pylist()
    return [
        CauseInterval(row["cluster_id"], row["kind"], row["starts"], row["ends"])
        for row in rows
        if is_cause_action(row["kind"])
    ]


@dataclass(frozen=True, slots=True)
class WeekWithout:
    """The rows of a week without some minutes, and how many were left out of each cluster."""

    clusters: Sequence[Row]
    fleet: Sequence[Row]
    left_out: Mapping[str, int]


def compute_week_without(
    source: LakeSource, week: date, clusters: Sequence[Row], fleet: Sequence[Row], left_out: LeftOutMinutes
) -> WeekWithout:
    """Return rows of gold as they would be if minutes were excluded, as a correction excludes them.

    ``clusters`` and ``fleet`` are the latest revisions of the week. Nothing is written. Raises: LakeError.
    """
    span = WeekCalendar(source.week.zone, source.week.start).week_of(week)
    corrections = _read_corrections(source.lake, clusters)
    computed, counts = [], {}
    for row in clusters:
        if not left_out.may_include(row):
            computed.append(row)
            continue
        levels, counts[row["cluster_id"]] = _compute_cluster(source, span, row, corrections, left_out)
        computed.append({**row, **levels})
    left_out_counts = {cluster_id: count for cluster_id, count in counts.items() if count}
    return WeekWithout(computed, [_recompute_fleet(row, computed) for row in fleet], left_out_counts)


def _compute_cluster(
    source: LakeSource,
    week: WeekSpan,
    row: Row,
    corrections: Mapping[str, Correction],
    left_out: LeftOutMinutes,
) -> tuple[Mapping[str, Any], int]:
    """Return a cluster's levels without some minutes, and how many of those that count were left out."""
    cluster_id = row["cluster_id"]
    reader = ClusterWeekReader(source.lake, cluster_id)
    minutes = reader.minutes(Span(week.start, week.end))
    if len(minutes) < row["minutes_expected_raw"]:
        raise InputError(f"the minutes of {cluster_id} in the week of {week.week} have expired")
    gone = {minute["minute"] for minute in minutes if left_out.includes(cluster_id, minute)}
    applied = [corrections[each] for each in _ids(row) if each in corrections]
    excluded = [
        ExcludedRange(correction.correction_id, cluster_id, correction.broker_id, starts, ends)
        for correction in applied
        for starts, ends in find_occurrences(correction, source.week.zone, week.start, week.end)
    ]
    counted = apply_corrections(minutes, _read_corrected_brokers(reader, week, excluded), excluded)
    remaining = [minute for minute in counted if minute["minute"] not in gone]
    levels = compute_week_levels(remaining, row["latency_objective_us"], row["availability_objective"])
    return levels, len(counted) - len(remaining)


def _read_corrected_brokers(
    reader: ClusterWeekReader, week: WeekSpan, excluded: Sequence[ExcludedRange]
) -> list[Row]:
    # A change of the clock may leave nothing of an occurrence.
    spans = (
        (max(week.start, each.starts), min(week.end, each.ends))
        for each in excluded
        if each.broker_id is not None
    )
    rows = (row for start, end in spans if start < end for row in reader.broker_minutes(Span(start, end)))
    return list({(row["minute"], row["broker_id"], row["leg"]): row for row in rows}.values())


def _read_corrections(lake: str, clusters: Sequence[Row]) -> dict[str, Correction]:
    """Return the corrections that weeks were computed with, by ID."""
    applied = sorted({correction_id for row in clusters for correction_id in _ids(row)})
    if not applied:
        return {}
    where = column("correction_id").isin(applied)
    rows = read_once(lake, tables.CORRECTIONS, where, _CORRECTION_COLUMNS).to_pylist()
    return {row["correction_id"]: Correction(**row) for row in rows}


def _ids(row: Row) -> list[str]:
    return [correction_id for correction_id in (row["corrections"] or "").split(",") if correction_id]


def _recompute_fleet(row: Row, clusters: Sequence[Row]) -> Row:
    metric = row["metric"]
    values = sorted(
        float(each[metric])
        for each in clusters
        if each["coverage"] is not None
        and each["coverage"] >= MIN_FLEET_COVERAGE
        and each[metric] is not None
    )
    at: Callable[[int, Sequence[float]], float | None] = (
        quantile if metric in _LOWER_IS_BETTER else quantile_from_bad_side
    )
    quantiles = {name: at(percent, values) for name, percent in _QUANTILES.items()}
    return {**row, **quantiles, "clusters": len(values), "clusters_excluded": len(clusters) - len(values)}
