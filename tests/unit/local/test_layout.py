import pytest

from fleetgauge_local.layout import DEFAULT, REGIONS, ClusterSpec, Layout, Route, lay_out, ports_needed
from fleetgauge_local.properties import render, server_properties


def layout_of(*clusters: ClusterSpec) -> Layout:
    return lay_out(clusters, {cluster.id: "uuid" for cluster in clusters}, iter(range(20000, 21000)))


def test_the_default_fleet_has_two_clusters_over_three_racks_and_one_for_telemetry() -> None:
    layout = layout_of(*DEFAULT)
    assert [(place.cluster, place.broker, place.rack) for place in layout.places] == [
        ("orders", 1, "z1"),
        ("orders", 2, "z2"),
        ("orders", 3, "z3"),
        ("payments", 1, "z1"),
        ("payments", 2, "z2"),
        ("payments", 3, "z3"),
        ("telemetry", 1, "z1"),
    ]


def test_every_listener_has_a_port_of_its_own() -> None:
    layout = layout_of(*DEFAULT)
    assert len(set(layout.ports)) == len(layout.ports) == ports_needed(DEFAULT) == 35


def test_clients_bootstrap_from_the_proxies() -> None:
    layout = layout_of(ClusterSpec("orders", brokers=2))
    assert layout.bootstrap("orders") == "127.0.0.1:20000,127.0.0.1:20005"


@pytest.mark.parametrize(
    ("brokers", "racks", "tier"),
    [(3, ("z1", "z2", "z3"), "multi-zone"), (3, ("z1",), "single-zone"), (1, ("z1", "z2"), "single-zone")],
)
def test_the_tier_follows_from_the_racks_in_use(brokers: int, racks: tuple[str, ...], tier: str) -> None:
    assert ClusterSpec("orders", brokers, racks).tier == tier


def test_a_broker_advertises_its_proxy_and_reaches_its_peers_past_it(tmp_path) -> None:
    cluster = ClusterSpec("orders")
    layout = layout_of(cluster)
    properties = server_properties(layout, cluster, layout.places[1], tmp_path)
    assert properties["advertised.listeners"] == "CLIENT://127.0.0.1:20005,INTERNAL://127.0.0.1:20007"
    assert properties["listeners"].startswith(
        "CLIENT://127.0.0.1:20006,INTERNAL://127.0.0.1:20007,CONTROLLER"
    )
    assert properties["inter.broker.listener.name"] == "INTERNAL"
    assert properties["broker.rack"] == "z2"


def test_a_fourth_broker_is_no_controller(tmp_path) -> None:
    cluster = ClusterSpec("orders", brokers=4)
    layout = layout_of(cluster)
    properties = server_properties(layout, cluster, layout.places[3], tmp_path)
    assert properties["process.roles"] == "broker"
    assert "CONTROLLER://" not in properties["listeners"]
    assert [voter.split("@")[0] for voter in properties["controller.quorum.voters"].split(",")] == [
        "1",
        "2",
        "3",
    ]


@pytest.mark.parametrize(("brokers", "copies", "in_sync"), [(1, "1", "1"), (2, "2", "1"), (5, "3", "2")])
def test_internal_topics_keep_as_many_copies_as_there_are_brokers(
    brokers: int, copies: str, in_sync: str, tmp_path
) -> None:
    cluster = ClusterSpec("orders", brokers=brokers)
    layout = layout_of(cluster)
    properties = server_properties(layout, cluster, layout.places[0], tmp_path)
    assert properties["offsets.topic.replication.factor"] == copies
    assert properties["transaction.state.log.min.isr"] == in_sync


def test_properties_escape_what_java_would_misread() -> None:
    assert render({"log.dirs": "/tmp/größe\\x"}) == "log.dirs=/tmp/gr\\u00f6\\u00dfe\\\\x\n"


def test_a_spare_has_a_place_of_its_own_and_is_no_bootstrap_address() -> None:
    cluster = ClusterSpec("orders", brokers=1, spares=1)
    layout = layout_of(cluster)
    assert [(place.broker, place.rack, place.spare) for place in layout.places] == [
        (1, "z1", False),
        (2, "z2", True),
    ]
    assert len(set(layout.ports)) == ports_needed((cluster,)) == 10
    assert layout.bootstrap("orders") == layout.places[0].address
    assert (cluster.replicas, list(cluster.controller_ids)) == (1, [1])


def test_the_regions_are_copied_into_both_aggregates_by_a_mirror_each() -> None:
    layout = lay_out(REGIONS.clusters, {}, iter(range(20000, 21000)), REGIONS.mirrors)
    assert [mirror.target for mirror in layout.mirrors] == ["north-all", "south-all"]
    assert layout.routes == (
        Route("north", "north-all"),
        Route("south", "north-all"),
        Route("north", "south-all"),
        Route("south", "south-all"),
    )
    assert {place.broker for place in layout.places} == {1}
