"""What MirrorMaker 2 copies between which clusters, and which groups may go on in another."""

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from fleetgauge_core.fleet.frozen import Frozen


def _a_pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"{text!r} is no regular expression: {error}") from error
    return text


#: MirrorMaker's own default for topics.exclude, without what it calls replicas, and Kafka's own.
_OF_THEIR_OWN = re.compile(r"__.*|.*[-.]internal|.*\.replica|heartbeats|.*\.heartbeats")

Pattern = Annotated[str, AfterValidator(_a_pattern)]


class Mirror(Frozen):
    """One way that MirrorMaker 2 copies: from a cluster of this file into another."""

    source: str = Field(description="Whose records are copied; its id.", examples=["north"])
    destination: str = Field(description="Where to; its id.", examples=["north-all"])
    topics: Pattern = Field(
        default=".*", description="Which topics, as the source calls them.", examples=["orders|payments.*"]
    )
    source_alias: str | None = Field(
        default=None, description="What MirrorMaker calls the source; its id if not given.", examples=["eu"]
    )
    destination_alias: str | None = Field(
        default=None,
        description="What MirrorMaker calls the destination; its id if not given.",
        examples=["us"],
    )
    names: Literal["prefixed", "kept"] = Field(
        default="prefixed",
        description="What a topic is called there: `prefixed` with the source's alias and a dot "
        "(DefaultReplicationPolicy), or its name is `kept` (IdentityReplicationPolicy).",
        examples=["kept"],
    )
    syncs_at: Literal["source", "destination"] = Field(
        default="source",
        description="Where offset-syncs.topic.location says that offset syncs are; those at the source are "
        "lost with it.",
        examples=["destination"],
    )

    def takes(self, topic: str) -> bool:
        """Whether it copies that topic of the source; those that Kafka and MirrorMaker keep it never does."""
        return not _OF_THEIR_OWN.fullmatch(topic) and re.fullmatch(self.topics, topic) is not None

    def called_there(self, topic: str) -> str:
        """What a topic of the source is called at the destination."""
        return f"{self._prefix}{topic}"

    def called_here(self, topic: str) -> str | None:
        """What a topic of the destination is called at the source; None if it is no copy of that."""
        name = topic.removeprefix(self._prefix)
        return name if topic.startswith(self._prefix) and self.takes(name) else None

    @property
    def _prefix(self) -> str:
        return "" if self.names == "kept" else f"{self.source_alias or self.source}."

    @property
    def syncs_topic(self) -> str:
        """Where its offset syncs are told: after the alias of the cluster at the other end."""
        if self.syncs_at == "destination":
            return f"mm2-offset-syncs.{self.source_alias or self.source}.internal"
        return f"mm2-offset-syncs.{self.destination_alias or self.destination}.internal"

    @property
    def syncs_cluster(self) -> str:
        return self.destination if self.syncs_at == "destination" else self.source


class RecoveredGroups(Frozen):
    """Groups that read in one cluster and, when that is lost, are to go on in another."""

    groups: Pattern = Field(description="Which, by name.", examples=["billing|orders-.*"])
    active: str = Field(description="Where they read; a cluster's id.", examples=["north-all"])
    passive: str = Field(
        description="Where they are to go on: what copies the active cluster, or the same sources as it.",
        examples=["south-all"],
    )


class RecoveryLimits(Frozen):
    """Beyond which nothing is said to be ready, and nothing written."""

    stale_s: float = Field(
        default=120,
        gt=0,
        description="A mirror of which nothing new has been learned for so long is not relied on. Where "
        "MirrorMaker commits once a minute, its default, it tells no sooner.",
        examples=[30],
    )
    replay_records: int = Field(
        default=100_000,
        ge=0,
        description="What a group may have to read again after a failover, to be called ready for one.",
        examples=[10_000],
    )
    lost_records: int = Field(
        default=10_000,
        ge=0,
        description="What may be lost of a group's topics with the sources that fail, likewise.",
        examples=[1_000],
    )


class Tracers(Frozen):
    """Records of our own that go the way of all others, so that it is known how long that takes."""

    topic: str = Field(
        default="fleetgauge.tracers",
        description="Their topic in every source; made where it is absent. Mirrors must let it through.",
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
        description="What the place is called from which they are produced: whether that works is what says "
        "whether producers from there could go on in another region.",
        examples=["north-apps"],
    )


class Capacity(Frozen):
    """What a cluster is known to take."""

    cluster: str = Field(description="Its id.", examples=["south"])
    records_per_s: float = Field(
        gt=0,
        description="As much as it took in a load test, of mirrored topics and all else.",
        examples=[50_000],
    )


class RecoveryObjectives(Frozen):
    """What a week is held to."""

    rpo_s: float = Field(
        default=300,
        gt=0,
        description="99% of a mirror's minutes: no record waits longer to be copied, in seconds.",
        examples=[60],
    )
    readiness: float = Field(
        default=0.99,
        gt=0,
        lt=1,
        description="The share of minutes in which a group was ready to go on in the other region.",
        examples=[0.999],
    )


class Primaries(Frozen):
    """Where it is said which region is the primary of a service: a store of your own, which is only read."""

    command: tuple[str, ...] = Field(
        default=(),
        description="Prints a JSON list, one object for each claim: {service, primary, epoch, lease_until}; "
        "`primary` is a region or a cluster's id, the last two may be absent. Run without a shell.",
        examples=[["labels", "list", "--json"]],
    )
    topic: str | None = Field(
        default=None,
        description="Or a compacted topic whose last value of each key is such an object.",
        examples=["platform.primaries"],
    )
    cluster: str | None = Field(
        default=None, description="Which cluster has that topic; its id.", examples=["north"]
    )
    services: dict[str, Pattern] = Field(
        default={},
        description="By service, which consumer groups are its own.",
        examples=[{"billing": "billing-.*"}],
    )
    promote: tuple[str, ...] = Field(
        default=(),
        description="Command that makes another region the primary, for `fleetgauge recover promote`; it is "
        "given {service}, {from}, {to} and {epoch}, the next one. It changes your store by compare-and-swap, "
        "and moves traffic. Run without a shell.",
        examples=[["labels", "promote", "{service}", "{to}", "--epoch", "{epoch}"]],
    )

    @model_validator(mode="after")
    def _are_somewhere(self) -> Self:
        if bool(self.command) == (self.topic is not None):
            raise ValueError("primaries: wanted: one of command and topic")
        if (self.topic is None) != (self.cluster is None):
            raise ValueError("primaries: topic goes with cluster, and cluster with topic")
        return self


class Recovery(Frozen):
    """How the fleet's regions stand in for each other."""

    mirrors: tuple[Mirror, ...] = Field(default=(), description="All that is copied between clusters.")
    groups: tuple[RecoveredGroups, ...] = Field(
        default=(), description="Whose offsets `fleetgauge recover` knows in the other region."
    )
    limits: RecoveryLimits = Field(default=RecoveryLimits(), description="When not to rely on what is known.")
    objectives: RecoveryObjectives = Field(
        default=RecoveryObjectives(), description="What a week is held to; `gold/recovery_weeks` has it."
    )
    tracers: Tracers | None = Field(
        default=None, description="Without them it is only known how far a mirror is behind at most."
    )
    capacities: tuple[Capacity, ...] = Field(
        default=(), description="Whether a region could carry another's load as well."
    )
    primaries: Primaries | None = Field(
        default=None, description="For services that are active in every region, one of them the primary."
    )

    @model_validator(mode="after")
    def _each_pair_has_something_in_common(self) -> Self:
        for pair in self.groups:
            if not (self.between(pair.active, pair.passive) or self.in_common(pair.active, pair.passive)):
                raise ValueError(
                    f"groups: {pair.active} is not copied to {pair.passive}, nor are both copies of the same "
                    "clusters: name the mirrors between them"
                )
        return self

    @property
    def clusters(self) -> frozenset[str]:
        """All that are named anywhere but in mirrors, whose check says more."""
        asked = (self.primaries.cluster,) if self.primaries and self.primaries.cluster else ()
        return frozenset({*(one.cluster for one in self.capacities), *asked})

    def capacity(self, cluster_id: str) -> float | None:
        """Records a second that it is known to take."""
        return next((one.records_per_s for one in self.capacities if one.cluster == cluster_id), None)

    def between(self, source: str, destination: str) -> Mirror | None:
        """The mirror from one to the other."""
        found = (one for one in self.mirrors if (one.source, one.destination) == (source, destination))
        return next(found, None)

    def into(self, destination: str) -> tuple[Mirror, ...]:
        """All that are copied into it."""
        return tuple(one for one in self.mirrors if one.destination == destination)

    def in_common(self, active: str, passive: str) -> frozenset[str]:
        """The clusters that both are copies of."""
        here, there = ({one.source for one in self.into(cluster)} for cluster in (active, passive))
        return frozenset(here & there)
