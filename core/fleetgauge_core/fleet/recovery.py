"""The part of fleet.yaml that describes mirrors between clusters and the failover of consumer groups."""

import re
from collections.abc import Set
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from fleetgauge_core.fleet.frozen_model import FrozenModel


def _check_pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"{text!r} is not a valid regular expression: {error}") from error
    return text


#: Internal topics of Kafka and MirrorMaker 2: its default topics.exclude, and its heartbeats.
_INTERNAL_TOPICS = re.compile(r"__.*|.*[-.]internal|.*\.replica|heartbeats|.*\.heartbeats")

RegularExpression = Annotated[str, AfterValidator(_check_pattern)]


class Mirror(FrozenModel):
    """A replication flow of MirrorMaker 2 from one cluster of this file to another."""

    source: str = Field(description="Id of the source cluster.", examples=["north"])
    destination: str = Field(description="Id of the destination cluster.", examples=["north-all"])
    topics: RegularExpression = Field(
        default=".*",
        description="Regular expression for the names of the replicated topics.",
        examples=["orders|payments.*"],
    )
    source_alias: str | None = Field(
        default=None,
        description="MirrorMaker's alias of the source cluster; its id by default.",
        examples=["eu"],
    )
    destination_alias: str | None = Field(
        default=None,
        description="MirrorMaker's alias of the destination cluster; its id by default.",
        examples=["us"],
    )
    names: Literal["prefixed", "kept"] = Field(
        default="prefixed",
        description="Topic names at the destination: `prefixed` with the source alias and a dot "
        "(DefaultReplicationPolicy), or `kept` (IdentityReplicationPolicy).",
        examples=["kept"],
    )
    syncs_at: Literal["source", "destination"] = Field(
        default="source",
        description="Location of the offset syncs, as set by offset-syncs.topic.location; those at the "
        "source are lost with it.",
        examples=["destination"],
    )

    def replicates(self, topic: str) -> bool:
        """Return whether a topic of the source is replicated; internal topics never are."""
        return not _INTERNAL_TOPICS.fullmatch(topic) and re.fullmatch(self.topics, topic) is not None

    def destination_topic(self, topic: str) -> str:
        """Return the name at the destination of a topic of the source."""
        return f"{self._prefix}{topic}"

    def source_topic(self, topic: str) -> str | None:
        """Return the name at the source of a topic of the destination; None if it is not a replica."""
        name = topic.removeprefix(self._prefix)
        return name if topic.startswith(self._prefix) and self.replicates(name) else None

    @property
    def _prefix(self) -> str:
        return "" if self.names == "kept" else f"{self.source_alias or self.source}."

    @property
    def syncs_topic(self) -> str:
        """Name of the topic with the offset syncs, with the alias of the cluster at the other end."""
        if self.syncs_at == "destination":
            return f"mm2-offset-syncs.{self.source_alias or self.source}.internal"
        return f"mm2-offset-syncs.{self.destination_alias or self.destination}.internal"

    @property
    def syncs_cluster(self) -> str:
        """Id of the cluster that holds the offset syncs."""
        return self.destination if self.syncs_at == "destination" else self.source


class FailoverGroups(FrozenModel):
    """Consumer groups that fail over to another cluster when the one from which they consume is lost."""

    groups: RegularExpression = Field(
        description="Regular expression for the names of the groups.", examples=["billing|orders-.*"]
    )
    active: str = Field(description="Id of the cluster from which they consume.", examples=["north-all"])
    passive: str = Field(
        description="Id of the cluster to which they fail over: a mirror of the active one or its sources.",
        examples=["south-all"],
    )


class RecoveryLimits(FrozenModel):
    """Limits beyond which a group is not ready to fail over and no offsets are written."""

    stale_s: float = Field(
        default=120,
        gt=0,
        description="Seconds without new information about a mirror after which it is considered stale. By "
        "default, MirrorMaker commits, and so publishes new information, once a minute.",
        examples=[30],
    )
    replay_records: int = Field(
        default=100_000,
        ge=0,
        description="Maximum number of records that a ready group would consume again after a failover.",
        examples=[10_000],
    )
    lost_records: int = Field(
        default=10_000,
        ge=0,
        description="Maximum number of records of a ready group's topics that a failover would lose.",
        examples=[1_000],
    )


class Tracers(FrozenModel):
    """Marker records that Fleetgauge produces to every source to measure the replication latency."""

    topic: str = Field(
        default="fleetgauge.tracers",
        description="Topic of the tracers in every source, created if missing; mirrors must include it.",
        examples=["ops.tracers"],
    )
    every_s: float = Field(
        default=5,
        ge=1,
        description="Seconds between two tracers of a source.",
        examples=[10],
    )
    vantage: str = Field(
        default="recover",
        description="Name of the location from which tracers are produced; their success shows whether "
        "producers at this location could produce to another region.",
        examples=["north-apps"],
    )


class Capacity(FrozenModel):
    """The known capacity of a cluster."""

    cluster: str = Field(description="Id of the cluster.", examples=["south"])
    records_per_s: float = Field(
        gt=0,
        description="Throughput reached in a load test, in records per second over all topics.",
        examples=[50_000],
    )


class RecoveryObjectives(FrozenModel):
    """Recovery objectives, evaluated per week."""

    rpo_s: float = Field(
        default=300,
        gt=0,
        description="Recovery point objective: in 99% of a mirror's minutes, no record waits longer, in s.",
        examples=[60],
    )
    readiness: float = Field(
        default=0.99,
        gt=0,
        lt=1,
        description="Share of minutes in which a group must be ready to fail over.",
        examples=[0.999],
    )


class Primaries(FrozenModel):
    """Your own store of the primary region of each service, which Fleetgauge only reads."""

    command: tuple[str, ...] = Field(
        default=(),
        description="Command that prints a JSON list of objects {service, primary, epoch, lease_until}; "
        "`primary` is a region or the id of a cluster, the last two keys are optional. Runs without a shell.",
        examples=[["labels", "list", "--json"]],
    )
    topic: str | None = Field(
        default=None,
        description="Compacted topic whose latest value of each key is such an object; instead of `command`.",
        examples=["platform.primaries"],
    )
    cluster: str | None = Field(
        default=None, description="Id of the cluster that holds `topic`.", examples=["north"]
    )
    services: dict[str, RegularExpression] = Field(
        default={},
        description="Regular expression for the consumer groups of each service.",
        examples=[{"billing": "billing-.*"}],
    )
    promote: tuple[str, ...] = Field(
        default=(),
        description="Command that makes another region the primary, for `fleetgauge recover promote`; "
        "{service}, {from}, {to} and {epoch} (the next epoch) are replaced. It must update your store by "
        "compare-and-swap and redirect traffic. Runs without a shell.",
        examples=[["labels", "promote", "{service}", "{to}", "--epoch", "{epoch}"]],
    )

    @model_validator(mode="after")
    def _check_store(self) -> Self:
        if bool(self.command) == (self.topic is not None):
            raise ValueError("primaries: give either command or topic")
        if (self.topic is None) != (self.cluster is None):
            raise ValueError("primaries: give topic and cluster together")
        return self


class Recovery(FrozenModel):
    """Mirrors and failover between the clusters of the fleet."""

    mirrors: tuple[Mirror, ...] = Field(default=(), description="All replication flows between clusters.")
    groups: tuple[FailoverGroups, ...] = Field(
        default=(),
        description="Consumer groups whose offsets `fleetgauge recover` translates for another cluster.",
    )
    limits: RecoveryLimits = Field(
        default=RecoveryLimits(), description="Limits beyond which a group is not ready to fail over."
    )
    objectives: RecoveryObjectives = Field(
        default=RecoveryObjectives(),
        description="Recovery objectives per week; the results are in `gold/recovery_weeks`.",
    )
    tracers: Tracers | None = Field(
        default=None, description="Tracers; without them, only upper bounds of a mirror's lag are known."
    )
    capacities: tuple[Capacity, ...] = Field(
        default=(),
        description="Capacities of clusters, to check whether one can take over the load of another.",
    )
    primaries: Primaries | None = Field(
        default=None, description="Primary regions of services that are active in every region."
    )

    @model_validator(mode="after")
    def _check_mirrors_of_groups(self) -> Self:
        for groups in self.groups:
            active, passive = groups.active, groups.passive
            if not self.can_translate(active, passive):
                raise ValueError(
                    f"groups: there is no mirror from {active} to {passive}, and they have no common source; "
                    "add the missing mirrors"
                )
        return self

    @property
    def referenced_clusters(self) -> frozenset[str]:
        """Ids of the clusters to which parts other than mirrors and groups refer."""
        store = (self.primaries.cluster,) if self.primaries and self.primaries.cluster else ()
        return frozenset({*(capacity.cluster for capacity in self.capacities), *store})

    @property
    def mirrored_clusters(self) -> frozenset[str]:
        """Ids of the clusters of mirrors and groups."""
        mirrored = {end for mirror in self.mirrors for end in (mirror.source, mirror.destination)}
        return frozenset(mirrored | {end for group in self.groups for end in (group.active, group.passive)})

    def without_clusters(self, cluster_ids: Set[str]) -> "Recovery":
        """Return the parts that refer to none of these clusters, nor need a mirror of one."""
        mirrors = tuple(
            mirror for mirror in self.mirrors if cluster_ids.isdisjoint({mirror.source, mirror.destination})
        )
        has_store = self.primaries is not None and self.primaries.cluster not in cluster_ids
        kept = self.model_copy(
            update={
                "mirrors": mirrors,
                "capacities": tuple(
                    capacity for capacity in self.capacities if capacity.cluster not in cluster_ids
                ),
                "primaries": self.primaries if has_store else None,
            }
        )
        groups = tuple(group for group in self.groups if kept.can_translate(group.active, group.passive))
        return kept.model_copy(update={"groups": groups})

    def can_translate(self, active: str, passive: str) -> bool:
        """Return whether mirrors relate the offsets of two clusters: one between them, or common sources."""
        return bool(self.mirror_between(active, passive) or self.common_sources(active, passive))

    def capacity(self, cluster_id: str) -> float | None:
        """Return the capacity of a cluster in records per second; None if it is not known."""
        capacities = (capacity for capacity in self.capacities if capacity.cluster == cluster_id)
        return next((capacity.records_per_s for capacity in capacities), None)

    def mirror_between(self, source: str, destination: str) -> Mirror | None:
        """Return the mirror from a source to a destination, or None."""
        mirrors = (mirror for mirror in self.mirrors_into(destination) if mirror.source == source)
        return next(mirrors, None)

    def mirrors_into(self, destination: str) -> tuple[Mirror, ...]:
        """Return all mirrors that replicate to a cluster."""
        return tuple(mirror for mirror in self.mirrors if mirror.destination == destination)

    def common_sources(self, active: str, passive: str) -> frozenset[str]:
        """Return the ids of the clusters that are mirrored to both clusters."""
        active_sources, passive_sources = (
            {mirror.source for mirror in self.mirrors_into(cluster_id)} for cluster_id in (active, passive)
        )
        return frozenset(active_sources & passive_sources)
