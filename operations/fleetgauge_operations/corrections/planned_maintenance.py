"""What is planned to be out: what people took out of the levels ahead of time, with its occurrences."""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any

from fleetgauge_core.detection import FindingSubject
from fleetgauge_core.fleet import Fleet
from fleetgauge_core.slo.corrections import ClusterSegments, Correction, find_occurrences

Row = Mapping[str, Any]

_MOMENT = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Plan:
    """What is planned for a fleet; ``clusters`` are the segments that each is in."""

    corrections: Sequence[Correction]
    clusters: Mapping[str, ClusterSegments]
    zone: str

    def covers(self, subject: FindingSubject, at: datetime) -> bool:
        """Whether it is planned to be out then: its cluster, or the broker that it is about."""
        broker_id = subject.broker_id if subject.broker_id is not None else subject.target_broker_id
        return not self.out(subject.cluster_id, at).isdisjoint({None, broker_id})

    def out(self, cluster_id: str, at: datetime) -> Set[int | None]:
        """The brokers that are planned to be out then; None among them: all of the cluster."""
        segments = self.clusters.get(cluster_id, frozenset())
        return {
            one.broker_id
            for one in self.corrections
            if one.applies_to(cluster_id, segments)
            and any(find_occurrences(one, self.zone, at, at + _MOMENT))
        }


def planned(rows: Iterable[Row], fleet: Fleet) -> Plan:
    """What rows of ops/corrections say that count."""
    counting = tuple(_correction(row) for row in rows if row["withdrawn_at"] is None)
    return Plan(counting, {one.id: one.segments for one in fleet.clusters}, fleet.week.zone)


def _correction(row: Row) -> Correction:
    return Correction(**{one.name: row[one.name] for one in fields(Correction)})
