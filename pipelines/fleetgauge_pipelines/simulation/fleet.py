"""The simulated fleet: any number of clusters over any span, its parts made on demand."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from fleetgauge_pipelines.simulation.incidents import Harms, Incident, plant
from fleetgauge_pipelines.simulation.pace import HOUR, WEEK, Floats, draw_releases, improvement, rhythm
from fleetgauge_pipelines.simulation.part import Part, draw_leg
from fleetgauge_pipelines.simulation.profile import Profile, draw_profile
from fleetgauge_pipelines.simulation.randomness import Stream, generator

_MINUTE = timedelta(minutes=1)
#: A minute is this much slower than its hour, times a Pareto draw: now and then by far.
_NOISE, _NOISE_TAIL = 0.1, 4.0
#: A leader's own acknowledgement against the way through all replicas and back.
_LEADER_PACE = 0.3
#: A leader leg's p99 of 100 is at most its second slowest; nobody pools that leg.
_LEADER_RANKS = 2


@dataclass(frozen=True, slots=True)
class SimulatedFleet:
    """``minutes`` of history from ``start`` (UTC, a whole minute) on."""

    seed: int
    clusters: int
    start: datetime
    minutes: int
    incidents_per_week: float = 0.8
    """Of each cluster, on average."""

    @property
    def end(self) -> datetime:
        return self.start + self.minutes * _MINUTE

    @property
    def weeks(self) -> int:
        """Weeks from the start on, the last one maybe short."""
        return -(-self.minutes // WEEK)

    @property
    def hours(self) -> int:
        return -(-self.minutes // HOUR)

    def profile(self, cluster: int) -> Profile:
        return draw_profile(self.seed, cluster)

    @property
    def profiles(self) -> tuple[Profile, ...]:
        return tuple(self.profile(cluster) for cluster in range(self.clusters))

    def incidents(self, cluster: int) -> Iterator[Incident]:
        """Everything planted in a cluster, in time's order."""
        for week in range(self.weeks):
            yield from self._planted(cluster, week)

    def part(self, cluster: int, week: int) -> Part:
        """One cluster's week, both counted from 0."""
        profile, minutes = self.profile(cluster), self._minutes_of(week)
        start = self.start + week * WEEK * _MINUTE
        harms = Harms.of(self._planted(cluster, week), profile, start, minutes)
        client_us = np.outer(self._pace(cluster, week), np.array(profile.paces) * profile.median_us)
        legs = (
            (Stream.CLIENT, client_us, harms.client, len(profile.brokers) + 1),
            (Stream.LEADER, client_us * _LEADER_PACE, harms.leader, _LEADER_RANKS),
        )
        client, leader = (
            draw_leg(generator(self.seed, stream, cluster, week), median_us, harm, profile.failing, ranks)
            for stream, median_us, harm, ranks in legs
        )
        return Part(self.seed, cluster, profile, week * WEEK, start, harms.silent, client, leader)

    def ledger(self) -> dict[str, Any]:
        """What was planted, for whoever wants to find it again."""
        return {
            "seed": self.seed,
            "start": self.start.isoformat(),
            "end": self.end.isoformat(),
            "incidents": [
                incident.entry() for cluster in range(self.clusters) for incident in self.incidents(cluster)
            ],
        }

    def document(self) -> dict[str, Any]:
        """What fleet.yaml says of it. Nobody can be asked at these addresses (RFC 2606)."""
        return {
            "name": f"simulated-{self.seed}",
            "simulated": True,
            "lake": "./lake",
            "clusters": [
                {
                    "id": one.cluster_id,
                    "bootstrap": f"{one.cluster_id}.invalid:9092",
                    "cloud": one.cloud,
                    "region": one.region,
                    "tier": one.tier,
                    "labels": dict(one.labels),
                }
                for one in self.profiles
            ],
        }

    def _minutes_of(self, week: int) -> int:
        return min(WEEK, self.minutes - week * WEEK)

    def _planted(self, cluster: int, week: int) -> tuple[Incident, ...]:
        profile = self.profile(cluster)
        return plant(
            generator(self.seed, Stream.INCIDENTS, cluster, week),
            profile,
            f"{profile.cluster_id}/{week}",
            self.start + week * WEEK * _MINUTE,
            self._minutes_of(week),
            self.incidents_per_week,
        )

    def _pace(self, cluster: int, week: int) -> Floats:
        """Per minute, the factor on the cluster's median."""
        profile = self.profile(cluster)
        minutes = week * WEEK + np.arange(self._minutes_of(week))
        epoch_minutes = int(self.start.timestamp()) // 60 + minutes
        noise = generator(self.seed, Stream.PACE, cluster, week).pareto(_NOISE_TAIL, len(minutes))
        releases = draw_releases(self.seed, self.weeks)
        return rhythm(profile, epoch_minutes) * improvement(profile, releases, minutes) * (1 + _NOISE * noise)
