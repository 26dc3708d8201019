"""The settings of a fleet that the rules depend on."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from fleetgauge_core.fleet.model import Fleet

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """One configured cluster with the objectives of its tier."""

    cluster_id: str
    tier: str = "single-zone"
    latency_objective_us: int = 100_000
    availability_objective: float = 0.9995
    since: datetime | None = None
    until: datetime | None = None
    retired: frozenset[int] = frozenset()
    cloud: str | None = None
    region: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def segments(self) -> frozenset[tuple[str, str]]:
        """The (segment, segment_value) pairs that the cluster belongs to."""
        attributes = (
            ("cloud", self.cloud),
            ("region", self.region),
            ("tier", self.tier),
            *self.labels.items(),
        )
        return frozenset(
            {("fleet", ""), *((segment, value) for segment, value in attributes if value is not None)}
        )


@dataclass(frozen=True, slots=True)
class Settings:
    """The fleet's clusters, its week, and the schedule lag from which an agent is late."""

    clusters: tuple[ClusterSettings, ...]
    week_zone: str = "UTC"
    week_start: str = "monday"
    agent_late_us: int = 100_000


def read_settings(fleet: Fleet) -> Settings:
    """Return the settings of a validated fleet.yaml."""
    return Settings(
        clusters=tuple(_cluster_settings(fleet, position) for position in range(len(fleet.clusters))),
        week_zone=fleet.week.zone,
        week_start=fleet.week.start,
        agent_late_us=round(fleet.agent_late_ms * 1000),
    )


def _cluster_settings(fleet: Fleet, position: int) -> ClusterSettings:
    cluster = fleet.clusters[position]
    objective = fleet.objective_by_tier[cluster.tier]
    return ClusterSettings(
        cluster_id=cluster.id,
        tier=cluster.tier,
        latency_objective_us=round(objective.latency_p99_ms * 1000),
        availability_objective=objective.availability,
        since=cluster.since,
        until=cluster.until,
        retired=frozenset(cluster.retired),
        cloud=cluster.cloud,
        region=cluster.region,
        labels=dict(cluster.labels),
    )
