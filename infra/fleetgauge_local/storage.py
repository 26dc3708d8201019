"""The fleet's folder before the first start: layout, configurations, formatted storages."""

import base64
import random
import shutil
import uuid
from pathlib import Path

import yaml

from fleetgauge_core.fleet import (
    Cluster,
    Fleet,
    Mirror,
    RecoveredGroups,
    Recovery,
    RecoveryLimits,
    Telemetry,
    Tracers,
)
from fleetgauge_local.distribution import CHECKPOINT, Distribution, kafka_version
from fleetgauge_local.errors import LocalFleetError
from fleetgauge_local.folder import BrokerPlan, Folder, MirrorPlan, Plan, read, write
from fleetgauge_local.layout import (
    HOST,
    TELEMETRY,
    BrokerPlace,
    ClusterSpec,
    Layout,
    MirrorSpec,
    Topology,
    lay_out,
    name_clusters,
    ports_needed,
)
from fleetgauge_local.mirror_maker import MirrorMaker
from fleetgauge_local.mirror_properties import mirror_properties
from fleetgauge_local.ports import free_ports, is_free
from fleetgauge_local.properties import render, server_properties

#: Mirrors here commit every second, not once a minute.
_STALE_S = 30


def kafka_uuid() -> str:
    """An id as Kafka writes it; one that starts with a dash would look like an option."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return text


def plan_fleet(
    folder: Folder, topology: Topology, distribution: Distribution, mirror_maker: MirrorMaker | None
) -> Plan:
    """Write all that the runner needs. What a folder holds already is kept, its data above all.

    ``mirror_maker`` is there where the topology has mirrors.
    """
    layout = _layout(folder, topology)
    plan = Plan(
        layout,
        tuple(_plan_broker(folder, layout, place, distribution) for place in layout.places),
        tuple(_plan_mirror(folder, layout, one, mirror_maker) for one in layout.mirrors if mirror_maker),
    )
    folder.fleet_file.write_text(fleet_file(layout), encoding="utf-8")
    write(folder.plan, plan)
    return plan


def _layout(folder: Folder, topology: Topology) -> Layout:
    """The folder's own layout, with new ports if others listen there by now."""
    clusters = topology.clusters
    kept = read(folder.layout, Layout)
    if kept is not None and Topology(kept.clusters, kept.mirrors) != topology:
        mend = "name their topology, take another folder, or start fresh"
        raise LocalFleetError(f"{folder.root} holds other clusters: {mend}")
    if kept is not None and all(map(is_free, kept.ports)):
        return kept
    ports = free_ports(ports_needed(clusters), random.Random())  # noqa: S311 (ports are no secret)
    kafka_uuids = kept.kafka_uuids if kept is not None else name_clusters(clusters, kafka_uuid)
    layout = lay_out(clusters, kafka_uuids, iter(ports), topology.mirrors)
    write(folder.layout, layout)
    return layout


def _plan_broker(
    folder: Folder, layout: Layout, place: BrokerPlace, distribution: Distribution
) -> BrokerPlan:
    own = folder.broker(place)
    data = own / "data"
    cluster = layout.cluster(place.cluster)
    if not (data / "meta.properties").exists():
        format_storage(data, layout.kafka_uuids[cluster.id], place.broker, distribution)
    properties = own / "server.properties"
    properties.write_text(render(server_properties(layout, cluster, place, data)))
    exporter_port = place.exporter_port if cluster.exporters else None
    return BrokerPlan(place, distribution.broker_command(properties, own / "broker.log", exporter_port), own)


def _plan_mirror(folder: Folder, layout: Layout, mirror: MirrorSpec, mirror_maker: MirrorMaker) -> MirrorPlan:
    own = folder.mirror(mirror.target)
    own.mkdir(parents=True, exist_ok=True)
    properties = own / "mm2.properties"
    properties.write_text(render(mirror_properties(layout, mirror)))
    return MirrorPlan(mirror, mirror_maker.command(properties, own / "mirror.log", mirror.target), own)


def format_storage(data: Path, cluster_uuid: str, broker: int, distribution: Distribution) -> None:
    """What Kafka's own tool writes, without a JVM a broker; meta.properties last, as it says "done"."""
    data.mkdir(parents=True, exist_ok=True)
    shutil.copy(distribution.checkpoint, data / CHECKPOINT)
    meta = {
        "version": "1",
        "cluster.id": cluster_uuid,
        "node.id": str(broker),
        "directory.id": kafka_uuid(),
    }
    (data / "meta.properties").write_text(render(meta))


def fleet_file(layout: Layout) -> str:
    """The fleet.yaml that ``fleetgauge probe --config`` and the rest read."""
    measured = [cluster for cluster in layout.clusters if cluster.id != TELEMETRY]
    carries = TELEMETRY if len(measured) < len(layout.clusters) else layout.clusters[0].id
    fleet = Fleet(
        lake="./lake",
        telemetry=Telemetry(bootstrap=layout.bootstrap(carries)),
        clusters=tuple(
            Cluster(
                id=cluster.id,
                bootstrap=layout.bootstrap(cluster.id),
                cloud="local",
                region=cluster.region,
                tier=cluster.tier,
                labels={"brokers": str(cluster.brokers), "kafka": kafka_version()},
                metrics=_exporters(layout, cluster),
            )
            for cluster in measured
        ),
        recovery=_recovery(layout),
    )
    told = {"lake", "telemetry", "clusters", "recovery"}
    document = fleet.model_dump(mode="json", include=told, exclude_defaults=True)
    return yaml.safe_dump(document, sort_keys=False)


def _recovery(layout: Layout) -> Recovery:
    """Groups of the first aggregate may go on in any other."""
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
        groups=tuple(RecoveredGroups(groups=".*", active=active, passive=passive) for passive in passives),
        limits=RecoveryLimits(stale_s=_STALE_S) if layout.mirrors else RecoveryLimits(),
        tracers=Tracers() if layout.mirrors else None,
    )


def _exporters(layout: Layout, cluster: ClusterSpec) -> dict[str, str]:
    if not cluster.exporters:
        return {}
    return {
        str(place.broker): f"http://{HOST}:{place.exporter_port}/metrics" for place in layout.of(cluster.id)
    }
