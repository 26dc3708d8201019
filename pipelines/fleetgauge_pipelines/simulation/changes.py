"""Simulated changes: what people do to clusters, and the incidents that some of it causes.

Rolls, reassignments and throttles belong to a cluster; releases reach the clusters of a region one after the
other. About half of them cost nothing. Most incidents of a whole cluster or zone have a change behind them,
too: a client that was released, or work on a network.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

import numpy as np

from fleetgauge_core.contract import ClusterChange
from fleetgauge_core.tables import ChangeKind, ChangePhase
from fleetgauge_pipelines.simulation.incidents import (
    ROLL_MINUTES_PER_BROKER,
    IncidentKind,
    SimulatedIncident,
)
from fleetgauge_pipelines.simulation.latency_trend import WEEK
from fleetgauge_pipelines.simulation.profile import ClusterProfile

_MINUTE = timedelta(minutes=1)
#: Between a change and any other incident, so that each bad minute has one reason.
_MARGIN = 15 * _MINUTE
#: Changes for each incident that is nobody's doing.
_PER_INCIDENT = 1.25
_COSTING_SHARE = 0.55
#: Of the incidents of whole clusters and zones.
_EXPLAINED_SHARE = 0.85
_RELEASES_PER_WEEK = 0.35
_BAD_RELEASE_SHARE = 0.4
_ROLLOUT_MINUTES = 90
#: When in its minutes a broker of a roll ends, and when it is back.
_ENDS_AFTER, _BACK_AFTER = timedelta(seconds=20), timedelta(seconds=50)


class PlannedKind(StrEnum):
    """What is done to a cluster."""

    ROLL = "roll"
    REASSIGNMENT = "reassignment"
    THROTTLE = "throttle"


#: The share of each, how long it takes in minutes, and how much latency it adds in ms if it costs anything.
_PATTERNS = {
    PlannedKind.ROLL: (0.3, (0, 0), (150, 400)),
    PlannedKind.REASSIGNMENT: (0.45, (20, 120), (120, 350)),
    PlannedKind.THROTTLE: (0.25, (15, 60), (120, 300)),
}
_INCIDENTS = {
    PlannedKind.ROLL: IncidentKind.ROLL,
    PlannedKind.REASSIGNMENT: IncidentKind.REASSIGNMENT,
    PlannedKind.THROTTLE: IncidentKind.THROTTLE,
}


@dataclass(frozen=True, slots=True)
class SimulatedChange:
    """A change of a cluster, or of a region without one; ``kind`` is a PlannedKind or that of a report.

    ``incident_id`` is the incident that it causes in its cluster, None if it costs nothing there.
    """

    id: str
    kind: str
    cluster_id: str | None
    start: datetime
    end: datetime
    brokers: tuple[int, ...] = ()
    region: str | None = None
    incident_id: str | None = None

    def ledger_entry(self) -> dict[str, Any]:
        """Return the change's entry in ledger.json."""
        return {
            "id": self.id,
            "kind": self.kind,
            "cluster_id": self.cluster_id,
            "region": self.region,
            "brokers": list(self.brokers),
            "start": self.start.isoformat(),
            "end": self.end.isoformat(),
            "incident": self.incident_id,
        }

    def records(self) -> tuple[ClusterChange, ...]:
        """Return what an observer would have recorded of it, or what was reported."""
        if self.kind == PlannedKind.ROLL:
            return tuple(self._restarts())
        if self.kind in (PlannedKind.REASSIGNMENT, PlannedKind.THROTTLE):
            begun = self._record("begun", ChangePhase.BEGUN, self.start, None, self.start)
            return begun, self._record("ended", ChangePhase.ENDED, self.start, self.end, self.end)
        return (self._record("", ChangePhase.HAPPENED, self.start, self.end, self.start),)

    def _restarts(self) -> Iterator[ClusterChange]:
        for position, broker in enumerate(self.brokers):
            begin = self.start + position * ROLL_MINUTES_PER_BROKER * _MINUTE
            yield ClusterChange(
                event_id=f"{self.id}/{broker}",
                change_id=f"{self.id}/{broker}",
                cluster_id=self.cluster_id,
                broker_id=broker,
                kind=ChangeKind.BROKER_RESTARTED.value,
                phase=ChangePhase.HAPPENED.value,
                at=begin + _BACK_AFTER,
                starts=begin + _ENDS_AFTER,
                ends=begin + _BACK_AFTER,
                source="observer",
                evidence=json.dumps({"orderly": True}),
            )

    def _record(
        self, suffix: str, phase: ChangePhase, starts: datetime, ends: datetime | None, at: datetime
    ) -> ClusterChange:
        is_reported = self.kind not in set(PlannedKind)
        return ClusterChange(
            event_id=f"{self.id}/{suffix}" if suffix else self.id,
            change_id=self.id,
            cluster_id=self.cluster_id,
            segment=None if self.region is None else "region",
            segment_value=self.region,
            kind=self.kind,
            phase=phase.value,
            at=at,
            starts=starts,
            ends=ends,
            source="simulated" if is_reported else "observer",
            title=f"simulated {self.kind}" if is_reported else None,
        )


def explain_incidents(
    rng: np.random.Generator, incidents: Sequence[SimulatedIncident]
) -> Iterator[SimulatedChange]:
    """Yield the reported changes behind incidents of whole clusters and zones."""
    kinds = {
        IncidentKind.CLUSTER_SLOW: ChangeKind.DEPLOY,
        IncidentKind.ZONE_NETWORK: ChangeKind.HOST_MAINTENANCE,
    }
    for incident in incidents:
        if incident.kind in kinds and rng.random() < _EXPLAINED_SHARE:
            yield SimulatedChange(
                f"{incident.id}/change",
                kinds[incident.kind].value,
                incident.cluster_id,
                incident.start,
                incident.end,
                incident_id=incident.id,
            )


def draw_planned_work(
    rng: np.random.Generator,
    profile: ClusterProfile,
    name: str,
    start: datetime,
    minutes: int,
    incidents_per_week: float,
    others: Sequence[SimulatedIncident],
) -> Iterator[tuple[SimulatedChange, SimulatedIncident | None]]:
    """Yield the changes of a cluster in a period, each with the incident that it causes, if any.

    They keep clear of each other and of the ``others``.
    """
    taken = [(incident.start - _MARGIN, incident.end + _MARGIN) for incident in others]
    for number in range(int(rng.poisson(incidents_per_week * _PER_INCIDENT * minutes / WEEK))):
        kind = list(_PATTERNS)[rng.choice(len(_PATTERNS), p=[share for share, _, _ in _PATTERNS.values()])]
        _, lengths, extra_ms = _PATTERNS[kind]
        drawn_length = int(rng.integers(*lengths, endpoint=True))
        length = ROLL_MINUTES_PER_BROKER * len(profile.brokers) if kind is PlannedKind.ROLL else drawn_length
        begin, costs = float(rng.random()), rng.random() < _COSTING_SHARE
        extra_us = 1000 * int(rng.integers(*extra_ms, endpoint=True))
        faulty = int(rng.choice(profile.brokers))
        first = start + (1 + int(begin * (minutes - length - 2))) * _MINUTE
        last = first + length * _MINUTE
        if length > minutes - 2 or any(first < end and begun < last for begun, end in taken):
            continue
        taken.append((first - _MARGIN, last + _MARGIN))
        brokers = profile.brokers if kind is PlannedKind.ROLL else (faulty,)
        incident = SimulatedIncident(
            f"{name}/{kind.value}/{number}",
            _INCIDENTS[kind],
            profile.cluster_id,
            brokers,
            first,
            last,
            extra_us,
        )
        change = SimulatedChange(
            f"{incident.id}/change",
            kind.value,
            profile.cluster_id,
            first,
            last,
            brokers,
            incident_id=incident.id if costs else None,
        )
        yield change, incident if costs else None


@dataclass(frozen=True, slots=True)
class FleetRelease:
    """A release that reaches the clusters of a region within an hour and a half; a bad one is taken back."""

    change: SimulatedChange
    is_bad: bool


def draw_release(
    rng: np.random.Generator, regions: Sequence[str], week: int, start: datetime, minutes: int
) -> FleetRelease | None:
    """Draw the release of a week, if there is one."""
    is_made, is_bad = rng.random() < _RELEASES_PER_WEEK, rng.random() < _BAD_RELEASE_SHARE
    region, begin = regions[int(rng.integers(len(regions)))], float(rng.random())
    length = 2 * _ROLLOUT_MINUTES
    if not is_made or minutes < length + 2:
        return None
    first = start + (1 + int(begin * (minutes - length - 2))) * _MINUTE
    change = SimulatedChange(
        f"release/{week}", ChangeKind.DEPLOY.value, None, first, first + length * _MINUTE, region=region
    )
    return FleetRelease(change, is_bad)


def draw_release_incident(
    rng: np.random.Generator,
    release: FleetRelease,
    profile: ClusterProfile,
    others: Sequence[SimulatedIncident],
) -> SimulatedIncident | None:
    """Return what a bad release does to a cluster of its region, from its arrival until it is taken back."""
    if not release.is_bad or profile.region != release.change.region:
        return None
    begin = release.change.start + int(rng.integers(_ROLLOUT_MINUTES)) * _MINUTE
    end = begin + int(rng.integers(15, _ROLLOUT_MINUTES, endpoint=True)) * _MINUTE
    if any(begin - _MARGIN < other.end and other.start < end + _MARGIN for other in others):
        return None
    return SimulatedIncident(
        f"{release.change.id}/{profile.cluster_id}",
        IncidentKind.RELEASE,
        profile.cluster_id,
        profile.brokers,
        begin,
        end,
        1000 * int(rng.integers(120, 300)),
    )
