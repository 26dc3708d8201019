"""The clusters of a local fleet with their brokers, racks and ports, and the mirrors between them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

HOST = "127.0.0.1"
TELEMETRY = "telemetry"
PORTS_PER_BROKER = 5
#: All topics except Fleetgauge's own: a replicated probe record would be taken for a probe of the target.
#: Tracers are replicated on purpose.
MIRRORED_TOPICS = r"(?!fleetgauge\.).*|fleetgauge\.tracers"


@dataclass(frozen=True)
class ClusterSpec:
    """A cluster to run: brokers with ids 1 to ``brokers``, assigned to the racks in turn.

    ``spares`` more brokers have ports but are not started; `fleet fault heal` starts them. With ``exporters``
    each broker serves its metrics over HTTP by the JMX exporter.
    """

    id: str
    brokers: int = 3
    racks: tuple[str, ...] = ("z1", "z2", "z3")
    region: str = "local"
    spares: int = 0
    exporters: bool = False

    @property
    def broker_ids(self) -> range:
        """The Kafka ids of the brokers, without spares."""
        return range(1, self.brokers + 1)

    @property
    def all_broker_ids(self) -> range:
        """The Kafka ids of the brokers and spares."""
        return range(1, self.brokers + self.spares + 1)

    @property
    def controller_ids(self) -> range:
        """The brokers that are also KRaft controllers: at most three, to save memory."""
        return self.broker_ids[:3]

    @property
    def replicas(self) -> int:
        """The default replication factor: three, or fewer in a smaller cluster."""
        return min(3, self.brokers)

    @property
    def tier(self) -> str:
        """The SLO tier, by whether the brokers are in more than one rack."""
        return "multi-zone" if len({self.rack(broker) for broker in self.broker_ids}) > 1 else "single-zone"

    def rack(self, broker: int) -> str:
        """Return the rack of a broker."""
        return self.racks[(broker - 1) % len(self.racks)]


@dataclass(frozen=True)
class ReplicationRoute:
    """A replication flow from one cluster to another; topics keep their names."""

    source: str
    target: str


@dataclass(frozen=True)
class MirrorSpec:
    """A MirrorMaker process, named after its target cluster.

    ``topics`` is a regular expression; internal topics of Kafka and MirrorMaker are never replicated.
    """

    target: str
    sources: tuple[str, ...]
    topics: str = MIRRORED_TOPICS

    @property
    def clusters(self) -> tuple[str, ...]:
        """The sources and the target."""
        return (*self.sources, self.target)

    @property
    def routes(self) -> tuple[ReplicationRoute, ...]:
        """The replication flows, one from each source."""
        return tuple(ReplicationRoute(source, self.target) for source in self.sources)


@dataclass(frozen=True)
class Topology:
    """Clusters and the mirrors between them."""

    clusters: tuple[ClusterSpec, ...]
    mirrors: tuple[MirrorSpec, ...] = ()


DEFAULT_CLUSTERS = (
    ClusterSpec("orders", region="north"),
    ClusterSpec("payments", region="south"),
    ClusterSpec(TELEMETRY, brokers=1),
)

# One mirror per target cluster, so that each can fail independently.
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

TOPOLOGIES = {"clusters": Topology(DEFAULT_CLUSTERS), "regions": REGIONS}


@dataclass(frozen=True)
class BrokerPlacement:
    """A broker's rack and ports. Clients connect to ``proxy_port``, which forwards to ``client_port``."""

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
        """The broker's name in log lines and folder names."""
        return f"{self.cluster}-{self.broker}"

    @property
    def address(self) -> str:
        """The address that clients connect to: the proxy's."""
        return f"{HOST}:{self.proxy_port}"


@dataclass(frozen=True)
class FleetLayout:
    """A fleet's clusters, ports and mirrors, stored in its folder so that every start uses the same ones."""

    clusters: tuple[ClusterSpec, ...]
    kafka_uuids: dict[str, str]
    places: tuple[BrokerPlacement, ...]
    mirrors: tuple[MirrorSpec, ...] = ()

    def list_placements(self, cluster: str) -> tuple[BrokerPlacement, ...]:
        """Return the placements of a cluster's brokers and spares."""
        return tuple(placement for placement in self.places if placement.cluster == cluster)

    def bootstrap(self, cluster: str) -> str:
        """Return the cluster's ``bootstrap.servers``, without spares."""
        return ",".join(
            placement.address for placement in self.list_placements(cluster) if not placement.spare
        )

    def cluster(self, name: str) -> ClusterSpec:
        """Return the cluster with this id.

        Raises: StopIteration when there is none.
        """
        return next(cluster for cluster in self.clusters if cluster.id == name)

    @property
    def routes(self) -> tuple[ReplicationRoute, ...]:
        """The replication flows of all mirrors."""
        return tuple(route for mirror in self.mirrors for route in mirror.routes)

    @property
    def ports(self) -> tuple[int, ...]:
        """All ports that the fleet listens on."""
        return tuple(
            port
            for placement in self.places
            for port in (
                placement.proxy_port,
                placement.client_port,
                placement.internal_port,
                placement.controller_port,
                placement.exporter_port,
            )
        )


def count_ports(clusters: tuple[ClusterSpec, ...]) -> int:
    """Return the number of ports that ``build_layout`` takes."""
    return PORTS_PER_BROKER * sum(len(cluster.all_broker_ids) for cluster in clusters)


def build_layout(
    clusters: tuple[ClusterSpec, ...],
    kafka_uuids: dict[str, str],
    ports: Iterator[int],
    mirrors: tuple[MirrorSpec, ...] = (),
) -> FleetLayout:
    """Return a layout in which every broker and spare has a rack and ports."""
    places = tuple(
        _allocate_ports(cluster, broker, ports) for cluster in clusters for broker in cluster.all_broker_ids
    )
    return FleetLayout(clusters, kafka_uuids, places, mirrors)


def _allocate_ports(cluster: ClusterSpec, broker: int, ports: Iterator[int]) -> BrokerPlacement:
    spare = broker not in cluster.broker_ids
    proxy, client, internal, controller, exporter = islice(ports, PORTS_PER_BROKER)
    return BrokerPlacement(
        cluster.id, broker, cluster.rack(broker), proxy, client, internal, controller, exporter, spare
    )


def assign_kafka_uuids(clusters: tuple[ClusterSpec, ...], new_uuid: Callable[[], str]) -> dict[str, str]:
    """Return a new Kafka cluster id for each cluster."""
    return {cluster.id: new_uuid() for cluster in clusters}
