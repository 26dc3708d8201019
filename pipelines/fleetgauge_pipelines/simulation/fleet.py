"""The simulated fleet: any number of clusters over any period, with weeks simulated on demand."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from fleetgauge_core.contract import ClusterChange
from fleetgauge_pipelines.simulation.changes import (
    FleetRelease,
    SimulatedChange,
    draw_planned_work,
    draw_release,
    draw_release_incident,
    explain_incidents,
)
from fleetgauge_pipelines.simulation.incidents import IncidentHarm, SimulatedIncident, draw_incidents
from fleetgauge_pipelines.simulation.latency_trend import (
    HOUR,
    WEEK,
    Floats,
    compute_load_factor,
    compute_release_factor,
    draw_releases,
)
from fleetgauge_pipelines.simulation.profile import REGIONS, ClusterProfile, draw_profile
from fleetgauge_pipelines.simulation.randomness import RandomStream, create_generator
from fleetgauge_pipelines.simulation.simulated_week import SimulatedWeek, draw_leg_latencies

_MINUTE = timedelta(minutes=1)
#: A minute is slower than its hour by this factor times a Pareto draw, so that a few minutes are much slower.
_NOISE, _NOISE_TAIL = 0.1, 4.0
#: Latency of the leader's acknowledgement (acks=1) relative to that of all replicas and the consumer.
_LEADER_LATENCY_RATIO = 0.3
#: The leader leg needs only its two slowest probes: its p99 of 100 is one of them, and it is not pooled.
_LEADER_RANKS = 2


@dataclass(frozen=True, slots=True)
class _EventfulWeek:
    """The incidents of a cluster's week in the order of their time, and the changes."""

    incidents: tuple[SimulatedIncident, ...]
    changes: tuple[SimulatedChange, ...]


@dataclass(frozen=True, slots=True)
class SimulatedFleet:
    """A fleet with a history of ``minutes`` from ``start`` (a whole minute in UTC)."""

    seed: int
    clusters: int
    start: datetime
    minutes: int
    incidents_per_week: float = 0.8
    """Average number for each cluster; the number of changes follows from it."""

    @property
    def end(self) -> datetime:
        """Return the time at which the history ends."""
        return self.start + self.minutes * _MINUTE

    @property
    def weeks(self) -> int:
        """Return the number of weeks, counted from the start; the last one may be shorter."""
        return -(-self.minutes // WEEK)

    @property
    def hours(self) -> int:
        """Return the number of hours, counted from the start; the last one may be shorter."""
        return -(-self.minutes // HOUR)

    def profile(self, cluster: int) -> ClusterProfile:
        """Return the profile of a cluster, counted from 0."""
        return draw_profile(self.seed, cluster)

    @property
    def profiles(self) -> tuple[ClusterProfile, ...]:
        """Return the profiles of all clusters."""
        return tuple(self.profile(cluster) for cluster in range(self.clusters))

    def incidents(self, cluster: int) -> Iterator[SimulatedIncident]:
        """Yield the incidents of a cluster in the order of their time."""
        for week in range(self.weeks):
            yield from self._draw_week(cluster, week).incidents

    def changes(self, cluster: int) -> Iterator[SimulatedChange]:
        """Yield the changes of a cluster, without those of its region."""
        for week in range(self.weeks):
            yield from self._draw_week(cluster, week).changes

    def releases(self) -> Iterator[SimulatedChange]:
        """Yield the releases, each for the clusters of a region."""
        for week in range(self.weeks):
            if release := self._draw_release(week):
                yield release.change

    def change_records(self) -> Iterator[ClusterChange]:
        """Yield what observers would have recorded of all changes, and what was reported."""
        for cluster in range(self.clusters):
            for change in self.changes(cluster):
                yield from change.records()
        for release in self.releases():
            yield from release.records()

    def simulate_week(self, cluster: int, week: int) -> SimulatedWeek:
        """Simulate a week of a cluster, both counted from 0."""
        profile, minutes = self.profile(cluster), self._count_minutes(week)
        start = self.start + week * WEEK * _MINUTE
        harm = IncidentHarm.compute(self._draw_week(cluster, week).incidents, profile, start, minutes)
        client_us = np.outer(
            self._compute_minute_factors(cluster, week), np.array(profile.slowdowns) * profile.median_us
        )
        legs = (
            (RandomStream.CLIENT, client_us, harm.client, len(profile.brokers) + 1),
            (RandomStream.LEADER, client_us * _LEADER_LATENCY_RATIO, harm.leader, _LEADER_RANKS),
        )
        client, leader = (
            draw_leg_latencies(
                create_generator(self.seed, stream, cluster, week),
                median_us,
                leg_harm,
                profile.failing,
                ranks,
            )
            for stream, median_us, leg_harm, ranks in legs
        )
        return SimulatedWeek(self.seed, cluster, profile, week * WEEK, start, harm.silent, client, leader)

    def ledger(self) -> dict[str, Any]:
        """Return the lists of all incidents and changes, as ledger.json has them."""
        changes = [change for cluster in range(self.clusters) for change in self.changes(cluster)]
        explained = {change.incident_id for change in changes}
        return {
            "seed": self.seed,
            "start": self.start.isoformat(),
            "end": self.end.isoformat(),
            "incidents": [
                incident.ledger_entry(incident.id in explained)
                for cluster in range(self.clusters)
                for incident in self.incidents(cluster)
            ],
            "changes": [change.ledger_entry() for change in (*changes, *self.releases())],
        }

    def fleet_document(self) -> dict[str, Any]:
        """Return the content of fleet.yaml. The addresses use the reserved domain .invalid (RFC 2606)."""
        return {
            "name": f"simulated-{self.seed}",
            "simulated": True,
            "lake": "./lake",
            "clusters": [
                {
                    "id": profile.cluster_id,
                    "bootstrap": f"{profile.cluster_id}.invalid:9092",
                    "cloud": profile.cloud,
                    "region": profile.region,
                    "tier": profile.tier,
                    "labels": dict(profile.labels),
                }
                for profile in self.profiles
            ],
        }

    def _count_minutes(self, week: int) -> int:
        return min(WEEK, self.minutes - week * WEEK)

    def _draw_week(self, cluster: int, week: int) -> _EventfulWeek:
        profile, minutes = self.profile(cluster), self._count_minutes(week)
        name, start = f"{profile.cluster_id}/{week}", self.start + week * WEEK * _MINUTE
        incidents = list(
            draw_incidents(
                create_generator(self.seed, RandomStream.INCIDENTS, cluster, week),
                profile,
                name,
                start,
                minutes,
                self.incidents_per_week,
            )
        )
        rng = create_generator(self.seed, RandomStream.CHANGES, cluster, week)
        changes = list(explain_incidents(rng, incidents))
        if release := self._draw_release(week):
            release_rng = create_generator(self.seed, RandomStream.FLEET_RELEASE, week, cluster)
            if caused := draw_release_incident(release_rng, release, profile, incidents):
                incidents.append(caused)
        others = tuple(incidents)
        for change, caused in draw_planned_work(
            rng, profile, name, start, minutes, self.incidents_per_week, others
        ):
            changes.append(change)
            incidents += [caused] if caused else []
        return _EventfulWeek(tuple(sorted(incidents, key=lambda incident: incident.start)), tuple(changes))

    def _draw_release(self, week: int) -> FleetRelease | None:
        if not self.incidents_per_week:
            return None
        rng = create_generator(self.seed, RandomStream.FLEET_RELEASE, week)
        start = self.start + week * WEEK * _MINUTE
        return draw_release(rng, REGIONS, week, start, self._count_minutes(week))

    def _compute_minute_factors(self, cluster: int, week: int) -> Floats:
        """Return for each minute of a week the factor on the cluster's median latency."""
        profile = self.profile(cluster)
        minutes = week * WEEK + np.arange(self._count_minutes(week))
        epoch_minutes = int(self.start.timestamp()) // 60 + minutes
        noise = create_generator(self.seed, RandomStream.PACE, cluster, week).pareto(
            _NOISE_TAIL, len(minutes)
        )
        releases = draw_releases(self.seed, self.weeks)
        return (
            compute_load_factor(profile, epoch_minutes)
            * compute_release_factor(profile, releases, minutes)
            * (1 + _NOISE * noise)
        )
