"""The part of fleet.yaml that describes the telemetry cluster."""

from typing import Self

from pydantic import Field, model_validator

from fleetgauge_core.fleet.field_types import Bootstrap, Identifier
from fleetgauge_core.fleet.frozen_model import FrozenModel
from fleetgauge_core.fleet.security import NO_SECURITY, ClusterAccess, Security


class Topic(FrozenModel):
    """A topic of the telemetry cluster; it is created if it does not exist."""

    name: Identifier = Field(description="Topic name.", examples=["fleetgauge.records"])
    partitions: int = Field(
        ge=1, description="Number of partitions with which the topic is created.", examples=[12]
    )
    retention_hours: float = Field(
        gt=0,
        description="Retention time of records in hours. A topic with another retention is corrected.",
        examples=[168],
    )


class StateTopic(FrozenModel):
    """A compacted topic of the telemetry cluster with one partition; it is created if it does not exist."""

    name: Identifier = Field(description="Topic name.", examples=["fleetgauge.watch-state"])


class Topics(FrozenModel):
    """Names and settings of the topics of the telemetry cluster."""

    probe_minutes: Topic = Field(
        default=Topic(name="fleetgauge.probe-minutes", partitions=12, retention_hours=7 * 24),
        description="One record per broker, leg and minute, from which the tables are computed.",
    )
    probe_pulse: Topic = Field(
        default=Topic(name="fleetgauge.probe-pulse", partitions=3, retention_hours=24),
        description="One pulse per cluster every 5 s, from which the watch detects findings.",
    )
    health_events: Topic = Field(
        default=Topic(name="fleetgauge.health-events", partitions=1, retention_hours=30 * 24),
        description="State changes of brokers and clusters, published by the watch.",
    )
    changes: Topic = Field(
        default=Topic(name="fleetgauge.changes", partitions=1, retention_hours=30 * 24),
        description="Changes of clusters: seen by observers, or reported by people and other systems.",
    )
    watch_state: StateTopic = Field(
        default=StateTopic(name="fleetgauge.watch-state"),
        description="Further state that a watch hands over to its successor.",
    )
    demotions: StateTopic = Field(
        default=StateTopic(name="fleetgauge.demotions"),
        description="Brokers that temporarily must not lead partitions: written by `fleetgauge mitigate`, "
        "read by agents.",
    )

    @model_validator(mode="after")
    def _check_names_differ(self) -> Self:
        uses: dict[str, str] = {}
        for use, topic in self:
            if topic.name in uses:
                raise ValueError(f"{use} and {uses[topic.name]} need a topic each, not both {topic.name}")
            uses[topic.name] = use
        return self


class Telemetry(FrozenModel):
    """The Kafka cluster that carries Fleetgauge's own records."""

    bootstrap: Bootstrap = Field(
        description="Bootstrap servers; the default port is 9092.", examples=["telemetry:9092"]
    )
    security: Security = Field(
        default=NO_SECURITY,
        description="Security settings of the listener; by default neither encryption nor authentication.",
        examples=[
            {
                "tls": {},
                "oauth": {
                    "token_url": "https://login.example/oauth2/token",
                    "client_id": "fleetgauge",
                    "client_secret": {"env": "FLEETGAUGE_CLIENT_SECRET"},
                    "scope": "kafka",
                },
            }
        ],
    )
    topics: Topics = Field(default=Topics(), description="Topics; all have defaults.")

    @property
    def access(self) -> ClusterAccess:
        """Bootstrap servers and security settings for clients."""
        return ClusterAccess(self.bootstrap, self.security)
