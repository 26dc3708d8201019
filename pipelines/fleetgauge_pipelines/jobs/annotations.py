"""What explains or excludes minutes: corrections by operators, actions, changes, and health events."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, fields
from datetime import datetime

import pyarrow.compute as pc

from fleetgauge_core.fleet import Fleet
from fleetgauge_core.lake.table_store import TableStore
from fleetgauge_core.slo.causes import MAINTENANCE, CauseInterval, HealthTransition, is_cause_action
from fleetgauge_core.slo.change_causes import (
    CAUSE_CHANGE_KINDS,
    RecordedChange,
    build_cause_intervals,
    select_latest,
)
from fleetgauge_core.slo.corrections import Correction, ExcludedRange, expand_corrections
from fleetgauge_core.tables import ACTIONS, CHANGES, CORRECTIONS, HEALTH_EVENTS
from fleetgauge_pipelines.io.lake import Lake


@dataclass(frozen=True, slots=True)
class Annotations:
    """Corrections that are in force, and what actions, findings and changes may have caused."""

    fleet: Fleet
    corrections: tuple[Correction, ...]
    causes: tuple[CauseInterval, ...]
    changes: tuple[RecordedChange, ...] = ()
    """The latest record of each change that can be a cause, whether or not it is orderly."""

    def excluded(self, lo: datetime, hi: datetime) -> list[ExcludedRange]:
        """Return what corrections exclude from the service levels within [lo, hi)."""
        segments = {cluster.id: cluster.segments for cluster in self.fleet.clusters}
        return expand_corrections(self.corrections, segments, self.fleet.week.zone, lo, hi)

    def cause_intervals(self, lo: datetime, hi: datetime) -> dict[str, list[CauseInterval]]:
        """Return by cluster the possible causes of bad minutes within [lo, hi)."""
        by_cluster: dict[str, list[CauseInterval]] = {}
        for interval in (*self.causes, *_maintenance_intervals(self.excluded(lo, hi))):
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
    """Return the possible causes that only one of the two states has."""
    return list(set(before.causes) ^ set(after.causes))


def read_annotations(lake: Lake, fleet: Fleet, without_events: Collection[str] = ()) -> Annotations:
    """Read the corrections that were not withdrawn, the actions, changes and health events of a lake.

    Records of changes with the IDs ``without_events`` are left out.
    """
    corrections = lake.table_store(CORRECTIONS).rows(pc.field("withdrawn_at").is_null(), _CORRECTION_COLUMNS)
    actions = lake.table_store(ACTIONS).rows(columns=_ACTION_COLUMNS)
    events = lake.table_store(HEALTH_EVENTS).rows(columns=_EVENT_COLUMNS)
    latest = read_latest_changes(lake.table_store(CHANGES), without_events)
    of_findings_and_changes = build_cause_intervals(
        (HealthTransition(**row) for row in events),
        latest,
        {cluster.id: cluster.segments for cluster in fleet.clusters},
    )
    return Annotations(
        fleet=fleet,
        corrections=tuple(Correction(**row) for row in corrections),
        causes=(
            *(
                CauseInterval(row["cluster_id"], row["kind"], row["starts"], row["ends"])
                for row in actions
                if is_cause_action(row["kind"])
            ),
            *of_findings_and_changes,
        ),
        changes=tuple(latest),
    )


def read_latest_changes(table: TableStore, without_events: Collection[str] = ()) -> list[RecordedChange]:
    """Return the latest record of each change in ops/changes that can be a cause."""
    where = pc.field("kind").isin(sorted(CAUSE_CHANGE_KINDS))
    if without_events:
        where &= ~pc.field("event_id").isin(sorted(without_events))
    rows = table.rows(where, _CHANGE_COLUMNS)
    return select_latest(RecordedChange(**row) for row in rows)


_CORRECTION_COLUMNS = tuple(field.name for field in fields(Correction))
_ACTION_COLUMNS = ("cluster_id", "kind", "starts", "ends")
_EVENT_COLUMNS = tuple(field.name for field in fields(HealthTransition))
_CHANGE_COLUMNS = tuple(field.name for field in fields(RecordedChange))
