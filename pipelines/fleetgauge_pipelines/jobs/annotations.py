"""What people and findings say about minutes: corrections, actions, health events."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from datetime import datetime

import pyarrow.compute as pc

from fleetgauge_core.fleet import Fleet
from fleetgauge_core.slo.causes import (
    MAINTENANCE,
    Event,
    Reason,
    findings,
    is_action,
)
from fleetgauge_core.slo.corrections import Correction, Excluded, excluded
from fleetgauge_core.tables import ACTIONS, CORRECTIONS, HEALTH_EVENTS
from fleetgauge_pipelines.io.lake import Lake


@dataclass(frozen=True, slots=True)
class Said:
    """All of it, as the tables have it now."""

    fleet: Fleet
    corrections: tuple[Correction, ...]
    actions: tuple[Reason, ...]
    findings: tuple[Reason, ...]

    def excluded(self, lo: datetime, hi: datetime) -> list[Excluded]:
        """What corrections take out of [lo, hi)."""
        segments = {cluster.id: cluster.segments for cluster in self.fleet.clusters}
        return excluded(self.corrections, segments, self.fleet.week.zone, lo, hi)

    def reasons(self, lo: datetime, hi: datetime) -> dict[str, list[Reason]]:
        """What may explain bad minutes in [lo, hi), by cluster."""
        found: dict[str, list[Reason]] = {}
        for one in (*self.actions, *self.findings, *_maintenance(self.excluded(lo, hi))):
            if one.starts < hi and (one.ends is None or one.ends > lo):
                found.setdefault(one.cluster_id, []).append(one)
        return found


def _maintenance(spans: Iterable[Excluded]) -> list[Reason]:
    # The minute in which a correction begins still counts, and is bad because of it: any part of it will do.
    return [Reason(one.cluster_id, MAINTENANCE, one.starts, one.ends, one.broker_id) for one in spans]


def differing(before: Said, now: Said) -> list[Reason]:
    """Actions and findings that only one of the two has."""
    return list({*before.actions, *before.findings} ^ {*now.actions, *now.findings})


def read_said(lake: Lake, fleet: Fleet) -> Said:
    """All of it, from the lake."""
    corrections = lake.small(CORRECTIONS).rows(pc.field("withdrawn_at").is_null(), _CORRECTION)
    actions = lake.small(ACTIONS).rows(columns=_ACTION)
    events = lake.small(HEALTH_EVENTS).rows(columns=_EVENT)
    return Said(
        fleet=fleet,
        corrections=tuple(Correction(**row) for row in corrections),
        actions=tuple(
            Reason(row["cluster_id"], row["kind"], row["starts"], row["ends"])
            for row in actions
            if is_action(row["kind"])
        ),
        findings=tuple(findings(Event(**row) for row in events)),
    )


_CORRECTION = tuple(field.name for field in fields(Correction))
_ACTION = ("cluster_id", "kind", "starts", "ends")
_EVENT = tuple(field.name for field in fields(Event))
