"""Planned maintenance: corrections that were added ahead of time, and their recurrences."""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from fleetgauge_core.detection import FindingSubject
from fleetgauge_core.fleet import Fleet
from fleetgauge_core.slo.corrections import (
    ClusterSegments,
    Correction,
    find_occurrences,
    parse_correction,
)

Row = Mapping[str, Any]

_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class MaintenancePlan:
    """The planned maintenance of a fleet; ``clusters`` has each cluster's segments by cluster ID."""

    corrections: Sequence[Correction]
    clusters: Mapping[str, ClusterSegments]
    zone: str

    def covers(self, subject: FindingSubject, at: datetime) -> bool:
        """Return whether the subject's broker, or its whole cluster, is in planned maintenance at a time."""
        broker_id = subject.broker_id if subject.broker_id is not None else subject.target_broker_id
        return not self.find_planned_brokers(subject.cluster_id, at).isdisjoint({None, broker_id})

    def find_planned_brokers(self, cluster_id: str, at: datetime) -> Set[int | None]:
        """Return the IDs of brokers in planned maintenance at a time; None stands for the whole cluster."""
        segments = self.clusters.get(cluster_id, frozenset())
        return {
            correction.broker_id
            for correction in self.corrections
            if correction.applies_to(cluster_id, segments)
            and any(find_occurrences(correction, self.zone, at, at + _MICROSECOND))
        }


def build_maintenance_plan(rows: Iterable[Row], fleet: Fleet) -> MaintenancePlan:
    """Return the plan of the rows of ops/corrections that were not withdrawn."""
    corrections = tuple(parse_correction(row) for row in rows if row["withdrawn_at"] is None)
    clusters = {cluster.id: cluster.segments for cluster in fleet.clusters}
    return MaintenancePlan(corrections, clusters, fleet.week.zone)
