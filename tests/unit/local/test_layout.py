import pytest

from fleetgauge_local.layout import (
    DEFAULT_CLUSTERS,
    REGIONS,
    ClusterSpec,
    FleetLayout,
    ReplicationRoute,
    build_layout,
    count_ports,
)
from fleetgauge_local.properties import build_server_properties, render


def create_layout(*clusters: ClusterSpec) -> FleetLayout:
    return build_layout(clusters, {cluster.id: "uuid" for cluster in clusters}, iter(range(20000, 21000)))


def test_the_default_fleet_has_two_clusters_over_three_racks_and_one_for_telemetry() -> None:
    layout = create_layout(*DEFAULT_CLUSTERS)
    assert [(placement.cluster, placement.broker, placement.rack) for placement in layout.places] == [
        ("orders", 1, "z1"),
        ("orders", 2, "z2"),
        ("orders", 3, "z3"),
        ("payments", 1, "z1"),
        ("payments", 2, "z2"),
        ("payments", 3, "z3"),
        ("telemetry", 1, "z1"),
    ]


def test_every_listener_has_its_own_port() -> None:
    layout = create_layout(*DEFAULT_CLUSTERS)
    assert len(set(layout.ports)) == len(layout.ports) == count_ports(DEFAULT_CLUSTERS) == 35


def test_the_bootstrap_addresses_are_those_of_the_proxies() -> None:
    layout = create_layout(ClusterSpec("orders", brokers=2))
    assert layout.bootstrap("orders") == "127.0.0.1:20000,127.0.0.1:20005"


@pytest.mark.parametrize(
    ("brokers", "racks", "tier"),
    [(3, ("z1", "z2", "z3"), "multi-zone"), (3, ("z1",), "single-zone"), (1, ("z1", "z2"), "single-zone")],
)
def test_the_tier_follows_from_the_racks_in_use(brokers: int, racks: tuple[str, ...], tier: str) -> None:
    assert ClusterSpec("orders", brokers, racks).tier == tier


def test_a_broker_advertises_its_proxy_to_clients_but_not_to_other_brokers(tmp_path) -> None:
    cluster = ClusterSpec("orders")
    layout = create_layout(cluster)
    properties = build_server_properties(layout, cluster, layout.places[1], tmp_path)
    assert properties["advertised.listeners"] == "CLIENT://127.0.0.1:20005,INTERNAL://127.0.0.1:20007"
    assert properties["listeners"].startswith(
        "CLIENT://127.0.0.1:20006,INTERNAL://127.0.0.1:20007,CONTROLLER"
    )
    assert properties["inter.broker.listener.name"] == "INTERNAL"
    assert properties["broker.rack"] == "z2"


def test_a_fourth_broker_is_not_a_controller(tmp_path) -> None:
    cluster = ClusterSpec("orders", brokers=4)
    layout = create_layout(cluster)
    properties = build_server_properties(layout, cluster, layout.places[3], tmp_path)
    assert properties["process.roles"] == "broker"
    assert "CONTROLLER://" not in properties["listeners"]
    assert [voter.split("@")[0] for voter in properties["controller.quorum.voters"].split(",")] == [
        "1",
        "2",
        "3",
    ]


@pytest.mark.parametrize(
    ("brokers", "replication_factor", "in_sync"), [(1, "1", "1"), (2, "2", "1"), (5, "3", "2")]
)
def test_internal_topics_have_at_most_three_replicas(
    brokers: int, replication_factor: str, in_sync: str, tmp_path
) -> None:
    cluster = ClusterSpec("orders", brokers=brokers)
    layout = create_layout(cluster)
    properties = build_server_properties(layout, cluster, layout.places[0], tmp_path)
    assert properties["offsets.topic.replication.factor"] == replication_factor
    assert properties["transaction.state.log.min.isr"] == in_sync


def test_properties_escape_backslashes_and_non_ascii_characters() -> None:
    assert render({"log.dirs": "/tmp/größe\\x"}) == "log.dirs=/tmp/gr\\u00f6\\u00dfe\\\\x\n"


def test_a_spare_has_its_own_ports_and_is_not_a_bootstrap_address() -> None:
    cluster = ClusterSpec("orders", brokers=1, spares=1)
    layout = create_layout(cluster)
    assert [(placement.broker, placement.rack, placement.spare) for placement in layout.places] == [
        (1, "z1", False),
        (2, "z2", True),
    ]
    assert len(set(layout.ports)) == count_ports((cluster,)) == 10
    assert layout.bootstrap("orders") == layout.places[0].address
    assert (cluster.replicas, list(cluster.controller_ids)) == (1, [1])


def test_a_mirror_per_aggregate_replicates_both_regions_into_it() -> None:
    layout = build_layout(REGIONS.clusters, {}, iter(range(20000, 21000)), REGIONS.mirrors)
    assert [mirror.target for mirror in layout.mirrors] == ["north-all", "south-all"]
    assert layout.routes == (
        ReplicationRoute("north", "north-all"),
        ReplicationRoute("south", "north-all"),
        ReplicationRoute("north", "south-all"),
        ReplicationRoute("south", "south-all"),
    )
    assert {placement.broker for placement in layout.places} == {1}
