"""Which changes of ops/changes may have caused bad minutes, and when.

A broker that was restarted in an orderly way is a roll, one broker or all of them; unless a finding about it
was open already, because then the restart was the remedy. What a roll makes of its broker is the roll's: its
findings that open meanwhile. Reassignments, throttles and reported changes explain what no finding explains.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, time, timedelta
from typing import TypeVar

from fleetgauge_core.slo.causes import (
    REPORTED_CHANGE,
    SLOWNESS,
    CauseInterval,
    FindingPeriod,
    HealthTransition,
    build_finding_interval,
    list_findings,
    shift,
)
from fleetgauge_core.tables import REPORTED_KINDS, ActionKind, ChangeKind, ChangePhase

#: A broker hands over its leaderships before its connections end, and gets them back after its return.
_BEFORE_RESTART, _AFTER_RESTART = timedelta(seconds=15), timedelta(minutes=1)
_AFTER_OBSERVED = timedelta(minutes=1)
#: Software that was deployed takes some minutes to start everywhere.
_AFTER_REPORTED = timedelta(minutes=10)
_LASTING_CAUSES = {
    ChangeKind.REASSIGNMENT: ActionKind.REASSIGNMENT.value,
    ChangeKind.THROTTLE: ActionKind.THROTTLE.value,
}
#: The kinds of changes that can be the cause of a bad minute.
CAUSE_CHANGE_KINDS = frozenset({ChangeKind.BROKER_RESTARTED, *_LASTING_CAUSES, *REPORTED_KINDS})


@dataclass(frozen=True, slots=True)
class RecordedChange:
    """The columns of a row of ops/changes that tell what it may have caused."""

    change_id: str
    cluster_id: str | None
    broker_id: int | None
    segment: str | None
    segment_value: str | None
    kind: str
    phase: str
    at: datetime
    starts: datetime
    ends: datetime | None
    evidence: str

    @property
    def is_withdrawn(self) -> bool:
        """Whether it was reported by mistake."""
        return self.kind in REPORTED_KINDS and self.phase == ChangePhase.CANCELLED


#: The segments of a cluster, as pairs of a name and a value.
Segments = Collection[tuple[str, str]]
OfBroker = TypeVar("OfBroker", FindingPeriod, RecordedChange)


def build_cause_intervals(
    transitions: Iterable[HealthTransition],
    changes: Iterable[RecordedChange] = (),
    segments: Mapping[str, Segments] | None = None,
) -> list[CauseInterval]:
    """Return what findings and changes may have caused.

    ``segments`` are those of each cluster, the whole fleet included.
    """
    findings, latest = list_findings(transitions), select_latest(changes)
    faults = _group_by_broker(finding for finding in findings if finding.is_fault)
    rolls = [
        change
        for change in latest
        if is_orderly_restart(change)
        and not any(_precedes(finding, change) for finding in faults[change.cluster_id, change.broker_id])
    ]
    rolls_of_broker = _group_by_broker(rolls)
    return [
        *(
            _explain_finding(finding, rolls_of_broker[finding.cluster_id, finding.broker_id])
            for finding in findings
        ),
        *(_explain_restart(roll) for roll in rolls),
        *(
            interval
            for change in latest
            if change.kind != ChangeKind.BROKER_RESTARTED
            for interval in _explain_change(change, segments or {})
        ),
    ]


def _group_by_broker(subjects: Iterable[OfBroker]) -> dict[tuple[str | None, int | None], list[OfBroker]]:
    groups: dict[tuple[str | None, int | None], list[OfBroker]] = defaultdict(list)
    for subject in subjects:
        groups[subject.cluster_id, subject.broker_id].append(subject)
    return groups


def is_orderly_restart(change: RecordedChange) -> bool:
    """Return whether a change is the restart of a broker that was told to stop."""
    if change.kind != ChangeKind.BROKER_RESTARTED:
        return False
    evidence = json.loads(change.evidence)
    return isinstance(evidence, dict) and evidence.get("orderly") is True


def list_change_windows(
    change: RecordedChange, segments: Mapping[str, Segments]
) -> list[tuple[str, datetime, datetime]]:
    """Return when a change may have an effect on each of its clusters, as (cluster, first, end).

    There is none of a change that lasts, and of a kind that has no effect.
    """
    if change.ends is None:
        return []
    if change.kind == ChangeKind.BROKER_RESTARTED and change.cluster_id is not None:
        return [(change.cluster_id, *_bounds_of_restart(change))]
    intervals = _explain_change(change, segments)
    return [(interval.cluster_id, interval.starts, _end_of(interval)) for interval in intervals]


def _end_of(interval: CauseInterval) -> datetime:
    return interval.ends or interval.starts


def select_latest(changes: Iterable[RecordedChange]) -> list[RecordedChange]:
    """Return the latest record of each change, without reports that were withdrawn."""
    latest = {change.change_id: change for change in sorted(changes, key=lambda change: change.at)}
    return [change for change in latest.values() if not change.is_withdrawn]


def _precedes(finding: FindingPeriod, restart: RecordedChange) -> bool:
    """Return whether a broker had a fault when it was told to stop.

    It answers until its connections end, so that an outage which was noticed before that is no product of the
    restart. It may be slow while it hands over what it leads.
    """
    began_at = shift(restart.starts, -_BEFORE_RESTART) if finding.kind == SLOWNESS else restart.starts
    return finding.starts < began_at and (finding.ends is None or finding.ends > began_at)


def _explain_finding(finding: FindingPeriod, rolls: Iterable[RecordedChange]) -> CauseInterval:
    """Return what a finding explains, given the rolls of its broker."""
    interval = build_finding_interval(finding)
    if finding.is_fault and any(_produces(roll, finding) for roll in rolls):
        return replace(interval, cause=ActionKind.ROLL.value)
    return interval


def _produces(roll: RecordedChange, finding: FindingPeriod) -> bool:
    first, last = _bounds_of_restart(roll)
    return first <= finding.starts < last


def _bounds_of_restart(restart: RecordedChange) -> tuple[datetime, datetime]:
    return shift(restart.starts, -_BEFORE_RESTART), shift(restart.ends or restart.starts, _AFTER_RESTART)


def _explain_restart(roll: RecordedChange) -> CauseInterval:
    first, last = _bounds_of_restart(roll)
    return CauseInterval(str(roll.cluster_id), ActionKind.ROLL.value, first, last, after_findings=True)


def _explain_change(change: RecordedChange, segments: Mapping[str, Segments]) -> Iterable[CauseInterval]:
    if change.kind in REPORTED_KINDS:
        ends = shift(_end(change), _AFTER_REPORTED)
        for cluster_id in _list_clusters(change, segments):
            yield CauseInterval(cluster_id, REPORTED_CHANGE, change.starts, ends, change.broker_id)
    elif change.cluster_id is not None and change.kind in _LASTING_CAUSES:
        cause, ends = _LASTING_CAUSES[ChangeKind(change.kind)], shift(_end(change), _AFTER_OBSERVED)
        yield CauseInterval(change.cluster_id, cause, change.starts, ends)


def _end(change: RecordedChange) -> datetime:
    """Return the end of a change; of one that lasts, the end of the day after its latest record.

    So neither a throttle that somebody has forgotten nor a change whose end nobody observed explains
    everything that follows.
    """
    if change.ends is not None:
        return change.ends
    return datetime.combine(shift(change.at, timedelta(days=2)).date(), time(), change.at.tzinfo)


def _list_clusters(change: RecordedChange, segments: Mapping[str, Segments]) -> Iterable[str]:
    if change.cluster_id is not None:
        return (change.cluster_id,)
    return (
        cluster_id
        for cluster_id, of_cluster in segments.items()
        if (change.segment, change.segment_value) in of_cluster
    )
