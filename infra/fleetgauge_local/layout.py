"""Which clusters stand on this machine, with which brokers, racks and ports, and what is copied between."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

HOST = "127.0.0.1"
TELEMETRY = "telemetry"
PORTS_PER_BROKER = 5
#: What of our own is a cluster's alone must not go to another, or its probes would be taken for that one's;
#: tracers are there to go.
MIRRORED = r"(?!fleetgauge\.).*|fleetgauge\.tracers"


@dataclass(frozen=True)
class ClusterSpec:
    """A cluster to run: brokers 1 to ``brokers``, spread over the racks in turn.

    ``spares`` more have their place and their ports, and join when they are healed. With ``exporters`` each
    broker tells its own counters over HTTP.
    """

    id: str
    brokers: int = 3
    racks: tuple[str, ...] = ("z1", "z2", "z3")
    region: str = "local"
    spares: int = 0
    exporters: bool = False

    @property
    def broker_ids(self) -> range:
        """Ids as Kafka knows them."""
        return range(1, self.brokers + 1)

    @property
    def places(self) -> range:
        """Their ids, and those of the spares."""
        return range(1, self.brokers + self.spares + 1)

    @property
    def controller_ids(self) -> range:
        """The brokers that are controllers as well: at most three, so that a large cluster stays light."""
        return self.broker_ids[:3]

    @property
    def replicas(self) -> int:
        """How many copies a topic of this cluster can keep, three at most."""
        return min(3, self.brokers)

    @property
    def tier(self) -> str:
        """The tier whose objectives a cluster of that many zones is held to."""
        return "multi-zone" if len({self.rack(broker) for broker in self.broker_ids}) > 1 else "single-zone"

    def rack(self, broker: int) -> str:
        """The rack of one broker."""
        return self.racks[(broker - 1) % len(self.racks)]


@dataclass(frozen=True)
class Route:
    """One way that records go: from a cluster into another, each topic under its own name."""

    source: str
    target: str


@dataclass(frozen=True)
class MirrorSpec:
    """One MirrorMaker process, called as the cluster that it copies into.

    ``topics`` is a regular expression; topics that Kafka and MirrorMaker keep for themselves never go.
    """

    target: str
    sources: tuple[str, ...]
    topics: str = MIRRORED

    @property
    def clusters(self) -> tuple[str, ...]:
        """All that it needs."""
        return (*self.sources, self.target)

    @property
    def routes(self) -> tuple[Route, ...]:
        """One from each source."""
        return tuple(Route(source, self.target) for source in self.sources)


@dataclass(frozen=True)
class Topology:
    """Clusters, and the mirrors between them."""

    clusters: tuple[ClusterSpec, ...]
    mirrors: tuple[MirrorSpec, ...] = ()


DEFAULT = (
    ClusterSpec("orders", region="north"),
    ClusterSpec("payments", region="south"),
    ClusterSpec(TELEMETRY, brokers=1),
)

# A mirror a destination, so that one can fail by itself.
REGIONS = Topology(
    clusters=(
        ClusterSpec("north", brokers=1, region="north"),
        ClusterSpec("south", brokers=1, region="south"),
        ClusterSpec("north-all", brokers=1, region="north"),
        ClusterSpec("south-all", brokers=1, region="south"),
        ClusterSpec(TELEMETRY, brokers=1),
    ),
    mirrors=tuple(MirrorSpec(target, ("north", "south")) for target in ("north-all", "south-all")),
)

TOPOLOGIES = {"clusters": Topology(DEFAULT), "regions": REGIONS}


@dataclass(frozen=True)
class BrokerPlace:
    """One broker's ports. Clients know ``proxy_port`` only; behind it the broker has ``client_port``."""

    cluster: str
    broker: int
    rack: str
    proxy_port: int
    client_port: int
    internal_port: int
    controller_port: int
    exporter_port: int
    spare: bool = False

    @property
    def name(self) -> str:
        """How log lines and folders call it."""
        return f"{self.cluster}-{self.broker}"

    @property
    def address(self) -> str:
        """Where clients find it."""
        return f"{HOST}:{self.proxy_port}"


@dataclass(frozen=True)
class Layout:
    """The whole fleet, kept in its folder so that a second start is the same fleet again."""

    clusters: tuple[ClusterSpec, ...]
    kafka_uuids: dict[str, str]
    places: tuple[BrokerPlace, ...]
    mirrors: tuple[MirrorSpec, ...] = ()

    def of(self, cluster: str) -> tuple[BrokerPlace, ...]:
        """The brokers of one cluster."""
        return tuple(place for place in self.places if place.cluster == cluster)

    def bootstrap(self, cluster: str) -> str:
        """The cluster's ``bootstrap.servers``; spares are none."""
        return ",".join(place.address for place in self.of(cluster) if not place.spare)

    def cluster(self, name: str) -> ClusterSpec:
        """One cluster by its id."""
        return next(cluster for cluster in self.clusters if cluster.id == name)

    @property
    def routes(self) -> tuple[Route, ...]:
        """Every way that records go between clusters."""
        return tuple(route for mirror in self.mirrors for route in mirror.routes)

    @property
    def ports(self) -> tuple[int, ...]:
        """Every port that the fleet listens on."""
        return tuple(
            port
            for place in self.places
            for port in (
                place.proxy_port,
                place.client_port,
                place.internal_port,
                place.controller_port,
                place.exporter_port,
            )
        )


def ports_needed(clusters: tuple[ClusterSpec, ...]) -> int:
    """How many ports ``lay_out`` will take."""
    return PORTS_PER_BROKER * sum(len(cluster.places) for cluster in clusters)


def lay_out(
    clusters: tuple[ClusterSpec, ...],
    kafka_uuids: dict[str, str],
    ports: Iterator[int],
    mirrors: tuple[MirrorSpec, ...] = (),
) -> Layout:
    """Give every broker its rack and its ports."""
    places = tuple(_place(cluster, broker, ports) for cluster in clusters for broker in cluster.places)
    return Layout(clusters, kafka_uuids, places, mirrors)


def _place(cluster: ClusterSpec, broker: int, ports: Iterator[int]) -> BrokerPlace:
    spare = broker not in cluster.broker_ids
    proxy, client, internal, controller, exporter = islice(ports, PORTS_PER_BROKER)
    return BrokerPlace(
        cluster.id, broker, cluster.rack(broker), proxy, client, internal, controller, exporter, spare
    )


def name_clusters(clusters: tuple[ClusterSpec, ...], new_uuid: Callable[[], str]) -> dict[str, str]:
    """A Kafka cluster id for each."""
    return {cluster.id: new_uuid() for cluster in clusters}
