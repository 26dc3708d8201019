"""What explains or excludes minutes: corrections by operators, actions on clusters, and health events."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from datetime import datetime

import pyarrow.compute as pc

from fleetgauge_core.fleet import Fleet
from fleetgauge_core.slo.causes import (
    MAINTENANCE,
    CauseInterval,
    HealthTransition,
    build_cause_intervals,
    is_cause_action,
)
from fleetgauge_core.slo.corrections import Correction, ExcludedRange, expand_corrections
from fleetgauge_core.tables import ACTIONS, CORRECTIONS, HEALTH_EVENTS
from fleetgauge_pipelines.io.lake import Lake


@dataclass(frozen=True, slots=True)
class Annotations:
    """Corrections that are in force, and the actions and findings that may have caused bad minutes."""

    fleet: Fleet
    corrections: tuple[Correction, ...]
    actions: tuple[CauseInterval, ...]
    findings: tuple[CauseInterval, ...]

    def excluded(self, lo: datetime, hi: datetime) -> list[ExcludedRange]:
        """Return what corrections exclude from the service levels within [lo, hi)."""
        segments = {cluster.id: cluster.segments for cluster in self.fleet.clusters}
        return expand_corrections(self.corrections, segments, self.fleet.week.zone, lo, hi)

    def cause_intervals(self, lo: datetime, hi: datetime) -> dict[str, list[CauseInterval]]:
        """Return by cluster the possible causes of bad minutes within [lo, hi)."""
        by_cluster: dict[str, list[CauseInterval]] = {}
        for interval in (*self.actions, *self.findings, *_maintenance_intervals(self.excluded(lo, hi))):
            if interval.starts < hi and (interval.ends is None or interval.ends > lo):
                by_cluster.setdefault(interval.cluster_id, []).append(interval)
        return by_cluster


def _maintenance_intervals(exclusions: Iterable[ExcludedRange]) -> list[CauseInterval]:
    # A correction excludes whole minutes only. The minute in which it begins still counts, and what was
    # corrected may have made it bad: the correction's own bounds explain that minute too.
    return [
        CauseInterval(
            exclusion.cluster_id, MAINTENANCE, exclusion.starts, exclusion.ends, exclusion.broker_id
        )
        for exclusion in exclusions
    ]


def find_changed_cause_intervals(before: Annotations, after: Annotations) -> list[CauseInterval]:
    """Return the actions and findings that only one of the two states has."""
    return list({*before.actions, *before.findings} ^ {*after.actions, *after.findings})


def read_annotations(lake: Lake, fleet: Fleet) -> Annotations:
    """Read the corrections that were not withdrawn, the actions and the health events of a lake."""
    corrections = lake.table_store(CORRECTIONS).rows(pc.field("withdrawn_at").is_null(), _CORRECTION_COLUMNS)
    actions = lake.table_store(ACTIONS).rows(columns=_ACTION_COLUMNS)
    events = lake.table_store(HEALTH_EVENTS).rows(columns=_EVENT_COLUMNS)
    return Annotations(
        fleet=fleet,
        corrections=tuple(Correction(**row) for row in corrections),
        actions=tuple(
            CauseInterval(row["cluster_id"], row["kind"], row["starts"], row["ends"])
            for row in actions
            if is_cause_action(row["kind"])
        ),
        findings=tuple(build_cause_intervals(HealthTransition(**row) for row in events)),
    )


_CORRECTION_COLUMNS = tuple(field.name for field in fields(Correction))
_ACTION_COLUMNS = ("cluster_id", "kind", "starts", "ends")
_EVENT_COLUMNS = tuple(field.name for field in fields(HealthTransition))
