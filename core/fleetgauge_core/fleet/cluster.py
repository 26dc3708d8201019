"""The part of fleet.yaml that describes a cluster to measure."""

from datetime import datetime
from typing import Self

from pydantic import Field, model_validator

from fleetgauge_core.fleet.field_types import Bootstrap, BrokerId, ExporterUrl, Identifier, ZonedTimestamp
from fleetgauge_core.fleet.frozen_model import FrozenModel
from fleetgauge_core.fleet.mitigation import Mitigation
from fleetgauge_core.fleet.security import NO_SECURITY, ClusterAccess, Security


class Cluster(FrozenModel):
    """A Kafka cluster to measure, and the segments to which it belongs in reviews."""

    id: Identifier = Field(
        description="Name of the cluster in records, tables and pages; never change it.",
        examples=["orders-eu"],
    )
    bootstrap: Bootstrap = Field(
        description="Bootstrap servers; the default port is 9092.",
        examples=["kafka-1:9092,kafka-2:9092"],
    )
    security: Security = Field(
        default=NO_SECURITY,
        description="Security settings of the listener; by default neither encryption nor authentication.",
        examples=[
            {
                "tls": {
                    "ca": "tls/authorities.pem",
                    "certificate": "tls/fleetgauge.pem",
                    "key": "tls/fleetgauge.key",
                    "key_password": {"env": "KEY_PASSWORD"},
                },
                "sasl": {
                    "mechanism": "SCRAM-SHA-512",
                    "username": "fleetgauge",
                    "password": {"file": "/run/secrets/orders-password"},
                },
            }
        ],
    )
    cloud: str | None = Field(
        default=None, description="Cloud provider; a segment in reviews.", examples=["aws"]
    )
    region: str | None = Field(
        default=None, description="Region; a segment in reviews.", examples=["eu-west-1"]
    )
    tier: str = Field(
        default="single-zone",
        description="Tier whose objective applies: single-zone, multi-zone, or a key of `objectives`.",
        examples=["multi-zone", "single-zone"],
    )
    labels: dict[str, str] = Field(
        default_factory=dict, description="Further segments in reviews.", examples=[{"team": "checkout"}]
    )
    since: ZonedTimestamp | None = Field(
        default=None,
        description="Time with UTC offset from which minutes count; by default from the first record.",
        examples=["2026-03-02T00:00:00Z"],
    )
    until: ZonedTimestamp | None = Field(
        default=None,
        description="Time with UTC offset, later than `since`, from which minutes no longer count.",
        examples=["2026-12-31T23:00:00+01:00"],
    )
    managed: bool = Field(
        default=True,
        description="Whether the agent creates and repairs its probe topic, or only reports what to do.",
        examples=[False],
    )
    retired: tuple[BrokerId, ...] = Field(
        default=(),
        description="Ids of decommissioned brokers, which are no longer expected.",
        examples=[[4, 5]],
    )
    demoted: tuple[BrokerId, ...] = Field(
        default=(),
        description="Ids of brokers that must not lead partitions; the agent moves leadership of their probe "
        "partitions to other replicas. Demotions by `fleetgauge mitigate` need not be listed.",
        examples=[[2]],
    )
    restart: tuple[str, ...] = Field(
        default=(),
        description="Command that restarts a broker, for `fleetgauge mitigate`; {broker} is replaced by its "
        "id. It runs on the host of that process, without a shell, and must end once the broker is starting.",
        examples=[["systemctl", "--host", "kafka-{broker}", "restart", "kafka"]],
    )
    metrics: dict[str, ExporterUrl] = Field(
        default={},
        description="URLs of the brokers' JMX exporters by broker id, or under `*` for all others; {host} is "
        "replaced by the broker's host. Without them, stalled storage looks like an unresponsive broker.",
        examples=[{"*": "http://{host}:7071/metrics"}],
    )
    mitigation: Mitigation = Field(
        default=Mitigation(), description="Actions that `fleetgauge mitigate` may take on the brokers."
    )

    @model_validator(mode="after")
    def _check_until_is_after_since(self) -> Self:
        if self.since is not None and self.until is not None and self.until <= self.since:
            raise ValueError("until must be later than since")
        return self

    @property
    def access(self) -> ClusterAccess:
        """Bootstrap servers and security settings for clients."""
        return ClusterAccess(self.bootstrap, self.security)

    def metrics_url(self, broker_id: int, host: str) -> str | None:
        """Return the URL of a broker's JMX exporter; None if none is configured."""
        url = self.metrics.get(str(broker_id), self.metrics.get("*"))
        return url.replace("{host}", f"[{host}]" if ":" in host else host) if url else None

    @property
    def segments(self) -> frozenset[tuple[str, str]]:
        """The segments to which the cluster belongs, as name and value; the value of `fleet` is empty.

        A label may have the name of a built-in segment; the cluster then belongs to both.
        """
        built_in = (("fleet", ""), ("cloud", self.cloud), ("region", self.region), ("tier", self.tier))
        named = (*built_in, *self.labels.items())
        return frozenset((name, value) for name, value in named if value is not None)

    def is_in_scope_at(self, minute: datetime) -> bool:
        """Return whether the minute that starts at this time lies between ``since`` and ``until``."""
        is_after_start = self.since is None or minute >= self.since
        return is_after_start and (self.until is None or minute < self.until)
