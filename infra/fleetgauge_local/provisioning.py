"""Write what a fleet needs before it starts: layout, configuration files and formatted log directories."""

import base64
import random
import shutil
import uuid
from pathlib import Path

import yaml

from fleetgauge_core.fleet import (
    Cluster,
    FailoverGroups,
    Fleet,
    Mirror,
    Recovery,
    RecoveryLimits,
    Telemetry,
    Tracers,
)
from fleetgauge_local.distribution import CHECKPOINT, KafkaDistribution, read_kafka_version
from fleetgauge_local.errors import LocalFleetError
from fleetgauge_local.fleet_folder import (
    BrokerPlan,
    FleetFolder,
    FleetPlan,
    MirrorPlan,
    read_json,
    write_json,
)
from fleetgauge_local.layout import (
    HOST,
    TELEMETRY,
    BrokerPlacement,
    ClusterSpec,
    FleetLayout,
    MirrorSpec,
    Topology,
    assign_kafka_uuids,
    build_layout,
    count_ports,
)
from fleetgauge_local.mirror_maker import MirrorMaker
from fleetgauge_local.mirror_properties import build_mirror_properties
from fleetgauge_local.ports import find_free_ports, is_free
from fleetgauge_local.properties import build_server_properties, render

#: These mirrors checkpoint every second rather than every minute, so staleness shows sooner.
_STALE_S = 30


def generate_kafka_uuid() -> str:
    """Return a random id in Kafka's base64 format.

    An id with a leading dash is avoided: Kafka's tools would read it as an option.
    """
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return text


def write_fleet_plan(
    folder: FleetFolder, topology: Topology, distribution: KafkaDistribution, mirror_maker: MirrorMaker | None
) -> FleetPlan:
    """Write all files that the runner needs and return its plan. Existing broker data is kept.

    ``mirror_maker`` must be given where the topology has mirrors.

    Raises: LocalFleetError when the folder holds a fleet with another topology.
    """
    layout = _load_or_create_layout(folder, topology)
    plan = FleetPlan(
        layout,
        tuple(_plan_broker(folder, layout, placement, distribution) for placement in layout.places),
        tuple(
            _plan_mirror(folder, layout, mirror, mirror_maker) for mirror in layout.mirrors if mirror_maker
        ),
    )
    folder.fleet_file.write_text(render_fleet_file(layout), encoding="utf-8")
    write_json(folder.plan, plan)
    return plan


def _load_or_create_layout(folder: FleetFolder, topology: Topology) -> FleetLayout:
    """Return the folder's layout, with new ports if one of its ports is taken by another process."""
    clusters = topology.clusters
    kept = read_json(folder.layout, FleetLayout)
    if kept is not None and Topology(kept.clusters, kept.mirrors) != topology:
        remedy = "give their topology, choose another folder with --dir, or start with --fresh"
        raise LocalFleetError(f"{folder.root} holds a fleet with other clusters: {remedy}")
    if kept is not None and all(map(is_free, kept.ports)):
        return kept
    ports = find_free_ports(count_ports(clusters), random.Random())
    kafka_uuids = kept.kafka_uuids if kept is not None else assign_kafka_uuids(clusters, generate_kafka_uuid)
    layout = build_layout(clusters, kafka_uuids, iter(ports), topology.mirrors)
    write_json(folder.layout, layout)
    return layout


def _plan_broker(
    folder: FleetFolder, layout: FleetLayout, placement: BrokerPlacement, distribution: KafkaDistribution
) -> BrokerPlan:
    own_folder = folder.broker(placement)
    data = own_folder / "data"
    cluster = layout.cluster(placement.cluster)
    if not (data / "meta.properties").exists():
        format_storage(data, layout.kafka_uuids[cluster.id], placement.broker, distribution)
    properties = own_folder / "server.properties"
    properties.write_text(render(build_server_properties(layout, cluster, placement, data)))
    exporter_port = placement.exporter_port if cluster.exporters else None
    return BrokerPlan(
        placement,
        distribution.broker_command(properties, own_folder / "broker.log", exporter_port),
        own_folder,
    )


def _plan_mirror(
    folder: FleetFolder, layout: FleetLayout, mirror: MirrorSpec, mirror_maker: MirrorMaker
) -> MirrorPlan:
    own_folder = folder.mirror(mirror.target)
    own_folder.mkdir(parents=True, exist_ok=True)
    properties = own_folder / "mm2.properties"
    properties.write_text(render(build_mirror_properties(layout, mirror)))
    return MirrorPlan(
        mirror, mirror_maker.command(properties, own_folder / "mirror.log", mirror.target), own_folder
    )


def format_storage(data: Path, cluster_uuid: str, broker: int, distribution: KafkaDistribution) -> None:
    """Format a broker's log directory as ``kafka-storage.sh format`` does, but without starting a JVM.

    meta.properties is written last: its presence marks the directory as formatted.
    """
    data.mkdir(parents=True, exist_ok=True)
    shutil.copy(distribution.checkpoint, data / CHECKPOINT)
    meta = {
        "version": "1",
        "cluster.id": cluster_uuid,
        "node.id": str(broker),
        "directory.id": generate_kafka_uuid(),
    }
    (data / "meta.properties").write_text(render(meta))


def render_fleet_file(layout: FleetLayout) -> str:
    """Return the text of the fleet.yaml that describes this fleet to the other commands."""
    measured = [cluster for cluster in layout.clusters if cluster.id != TELEMETRY]
    telemetry_id = TELEMETRY if len(measured) < len(layout.clusters) else layout.clusters[0].id
    fleet = Fleet(
        lake="./lake",
        telemetry=Telemetry(bootstrap=layout.bootstrap(telemetry_id)),
        clusters=tuple(
            Cluster(
                id=cluster.id,
                bootstrap=layout.bootstrap(cluster.id),
                cloud="local",
                region=cluster.region,
                tier=cluster.tier,
                labels={"brokers": str(cluster.brokers), "kafka": read_kafka_version()},
                metrics=_exporters(layout, cluster),
            )
            for cluster in measured
        ),
        recovery=_recovery(layout),
    )
    sections = {"lake", "telemetry", "clusters", "recovery"}
    document = fleet.model_dump(mode="json", include=sections, exclude_defaults=True)
    return yaml.safe_dump(document, sort_keys=False)


def _recovery(layout: FleetLayout) -> Recovery:
    """Return the recovery section: groups of the first mirror target can fail over to each other target."""
    active, *passives = (mirror.target for mirror in layout.mirrors) if layout.mirrors else ("",)
    return Recovery(
        mirrors=tuple(
            Mirror(
                source=route.source,
                destination=route.target,
                topics=mirror.topics,
                names="kept",
                syncs_at="destination",
            )
            for mirror in layout.mirrors
            for route in mirror.routes
        ),
        groups=tuple(FailoverGroups(groups=".*", active=active, passive=passive) for passive in passives),
        limits=RecoveryLimits(stale_s=_STALE_S) if layout.mirrors else RecoveryLimits(),
        tracers=Tracers() if layout.mirrors else None,
    )


def _exporters(layout: FleetLayout, cluster: ClusterSpec) -> dict[str, str]:
    if not cluster.exporters:
        return {}
    return {
        str(placement.broker): f"http://{HOST}:{placement.exporter_port}/metrics"
        for placement in layout.list_placements(cluster.id)
    }
