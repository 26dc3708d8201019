"""The shape of fleet.yaml. Only ``clusters`` is required."""

from datetime import datetime
from typing import Annotated, Literal, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, field_validator, model_validator

Identifier = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,128}$")]
Weekday = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Week(_Frozen):
    """When a week starts: a day at 00:00 in an IANA zone."""

    zone: str = "UTC"
    start: Weekday = "monday"

    @field_validator("zone")
    @classmethod
    def _known_zone(cls, zone: str) -> str:
        try:
            ZoneInfo(zone)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise ValueError(f"{zone!r} is not an IANA time zone such as Europe/Berlin") from error
        return zone


class Objective(_Frozen):
    """99% of minutes at or under ``latency_p99_ms``; ``availability`` of all probes."""

    latency_p99_ms: float = Field(gt=0)
    availability: float = Field(gt=0, lt=1)


class Topic(_Frozen):
    """A topic that is made where it is absent."""

    name: Identifier
    partitions: int = Field(ge=1)
    retention_hours: float = Field(gt=0)


class Topics(_Frozen):
    """Names and settings of the telemetry cluster's topics."""

    probe_minutes: Topic = Topic(name="fleetgauge.probe-minutes", partitions=12, retention_hours=7 * 24)
    probe_pulse: Topic = Topic(name="fleetgauge.probe-pulse", partitions=3, retention_hours=24)
    health_events: Topic = Topic(name="fleetgauge.health-events", partitions=1, retention_hours=30 * 24)


class Telemetry(_Frozen):
    """The cluster that carries the records."""

    bootstrap: str = Field(min_length=1)
    topics: Topics = Topics()


class Cluster(_Frozen):
    """One Kafka cluster to measure, and how to group it in reviews."""

    id: Identifier
    bootstrap: str = Field(min_length=1)
    cloud: str | None = None
    region: str | None = None
    tier: str = "single-zone"
    labels: dict[str, str] = Field(default_factory=dict)
    since: AwareDatetime | None = None
    until: AwareDatetime | None = None
    retired: tuple[int, ...] = ()

    @model_validator(mode="after")
    def _ends_after_it_starts(self) -> Self:
        if self.since is not None and self.until is not None and self.until <= self.since:
            raise ValueError("until must be later than since")
        return self

    def expects(self, minute: datetime) -> bool:
        """Whether the cluster counts in the minute that starts then."""
        after_start = self.since is None or minute >= self.since
        return after_start and (self.until is None or minute < self.until)


class Notifier(_Frozen):
    """Where findings are sent."""

    kind: Literal["webhook"]
    url: str = Field(pattern=r"^https?://")


_OBJECTIVES = {
    "single-zone": Objective(latency_p99_ms=100, availability=0.9995),
    "multi-zone": Objective(latency_p99_ms=100, availability=0.9999),
}


class Fleet(_Frozen):
    """All of fleet.yaml."""

    name: str = Field(default="fleet", min_length=1, max_length=64)
    """What a switch between fleets calls it."""
    simulated: bool = False
    """Whether its lake holds made-up measurements, never to be pooled with real ones."""
    lake: str = Field(default="./lake", min_length=1)
    telemetry: Telemetry | None = None
    week: Week = Week()
    vantage: Identifier = "default"
    agent_late_ms: float = Field(default=100, gt=0, allow_inf_nan=False)
    objectives: dict[str, Objective] = Field(default_factory=dict)
    clusters: tuple[Cluster, ...] = Field(min_length=1)
    notifiers: tuple[Notifier, ...] = ()

    @model_validator(mode="after")
    def _refers_to_what_exists(self) -> Self:
        ids = [cluster.id for cluster in self.clusters]
        twice = sorted({i for i in ids if ids.count(i) > 1})
        if twice:
            raise ValueError(f"clusters: id {twice[0]!r} is given twice")
        for cluster in self.clusters:
            if cluster.tier not in self.objective_by_tier:
                known = ", ".join(sorted(self.objective_by_tier))
                raise ValueError(
                    f"clusters: {cluster.id}: tier {cluster.tier!r} has no objective (known: {known})"
                )
        return self

    @property
    def objective_by_tier(self) -> dict[str, Objective]:
        """Every tier's objective, the built-in ones included."""
        return _OBJECTIVES | self.objectives

    def objective(self, cluster: Cluster) -> Objective:
        """The objective of the cluster's tier."""
        return self.objective_by_tier[cluster.tier]
