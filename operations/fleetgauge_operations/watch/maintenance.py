"""What is planned to be out wakes nobody: findings wait until their maintenance is over, or they are.

Planned is what `fleetgauge correct` took out of the levels ahead of time. A finding is kept and shown all
the same; who is told is all that waits.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any

from fleetgauge_pipelines.detection import Finding, Subject
from fleetgauge_pipelines.slo.corrections import Correction, Segments, occurrences
from fleetgauge_probes.fleet import Fleet

Row = Mapping[str, Any]

_MOMENT = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Plan:
    """What is planned for a fleet; ``clusters`` are the segments that each is in."""

    corrections: Sequence[Correction]
    clusters: Mapping[str, Segments]
    zone: str

    def covers(self, subject: Subject, at: datetime) -> bool:
        """Whether it is planned to be out then: its cluster, or the broker that it is about."""
        broker_id = subject.broker_id if subject.broker_id is not None else subject.towards
        return not self.out(subject.cluster_id, at).isdisjoint({None, broker_id})

    def out(self, cluster_id: str, at: datetime) -> Set[int | None]:
        """The brokers that are planned to be out then; None among them: all of the cluster."""
        segments = self.clusters.get(cluster_id, frozenset())
        return {
            one.broker_id
            for one in self.corrections
            if one.covers(cluster_id, segments) and any(occurrences(one, self.zone, at, at + _MOMENT))
        }


class Waiting:
    """The findings that wait: of earlier watches ``those``, of which ``told`` to some notifiers."""

    def __init__(self, those: Iterable[Finding] = (), told: Collection[Subject] = ()) -> None:
        self._findings = {one.subject: one for one in those}
        self._perhaps_told = self._findings.keys() & set(told)

    def __contains__(self, subject: Subject) -> bool:
        return subject in self._findings

    def told_of(self, finding: Finding, planned: bool) -> tuple[Finding, ...]:
        """What is to be told now that this is found: of what was told all else, of what waits not its end."""
        subject = finding.subject
        waits = subject in self._findings
        if finding.names and (waits or (planned and not finding.from_phase.names)):
            self._findings[subject] = finding
            return ()
        if finding.clears and waits:
            known = subject in self._perhaps_told
            self._release(subject)
            return (finding,) if known else ()
        return (finding,) if finding.names or finding.clears else ()

    def over(self, planned: Callable[[Subject], bool]) -> tuple[Finding, ...]:
        """What is to be told because its maintenance is over."""
        due = [subject for subject in self._findings if not planned(subject)]
        return tuple(self._release(subject) for subject in due)

    def _release(self, subject: Subject) -> Finding:
        self._perhaps_told.discard(subject)
        return self._findings.pop(subject)


def planned(rows: Iterable[Row], fleet: Fleet) -> Plan:
    """What rows of ops/corrections say that count."""
    counting = tuple(_correction(row) for row in rows if row["withdrawn_at"] is None)
    return Plan(counting, {one.id: one.segments for one in fleet.clusters}, fleet.week.zone)


def _correction(row: Row) -> Correction:
    return Correction(**{one.name: row[one.name] for one in fields(Correction)})
