import re

import pytest

from fleetgauge_local.layout import MIRRORED, REGIONS, ClusterSpec, Layout, MirrorSpec, lay_out
from fleetgauge_local.mirror_properties import mirror_properties
from fleetgauge_local.properties import render

LAYOUT = lay_out(REGIONS.clusters, {}, iter(range(20000, 21000)), REGIONS.mirrors)
PROPERTIES = mirror_properties(LAYOUT, REGIONS.mirrors[0])


def test_a_mirror_runs_the_routes_into_its_own_cluster_and_no_other_pair() -> None:
    assert PROPERTIES["clusters"] == "north,south,north-all"
    routes = {key: value for key, value in PROPERTIES.items() if "->" in key}
    assert routes == {
        "north->north-all.enabled": "true",
        "north->north-all.emit.heartbeats.enabled": "true",
        "south->north-all.enabled": "true",
        "south->north-all.emit.heartbeats.enabled": "true",
    }
    assert PROPERTIES["emit.heartbeats.enabled"] == "false"


def test_a_mirror_reaches_its_clusters_through_their_proxies() -> None:
    for cluster in ("north", "south", "north-all"):
        assert PROPERTIES[f"{cluster}.bootstrap.servers"] == LAYOUT.bootstrap(cluster)


def test_a_topic_keeps_its_name_and_the_target_its_offset_pairs() -> None:
    assert PROPERTIES["replication.policy.class"].endswith(".IdentityReplicationPolicy")
    assert PROPERTIES["offset-syncs.topic.location"] == "target"
    assert PROPERTIES["offset.lag.max"] == "10"
    assert PROPERTIES["sync.group.offsets.enabled"] == "false"


def test_what_a_worker_is_told_has_the_targets_name_before_it() -> None:
    assert PROPERTIES["north-all.producer.enable.idempotence"] == "true"
    assert PROPERTIES["north-all.scheduled.rebalance.max.delay.ms"] == "0"
    assert "offset.flush.interval.ms" not in PROPERTIES


@pytest.mark.parametrize(("brokers", "copies"), [(1, "1"), (3, "3")])
def test_what_a_mirror_makes_has_as_many_copies_as_its_target_can_keep(brokers: int, copies: str) -> None:
    clusters = (ClusterSpec("near"), ClusterSpec("far", brokers=brokers))
    mirror = MirrorSpec("far", ("near",))
    layout: Layout = lay_out(clusters, {}, iter(range(20000, 21000)), (mirror,))
    made = {key: value for key, value in mirror_properties(layout, mirror).items() if "replication.f" in key}
    assert len(made) == 7
    assert set(made.values()) == {copies}


@pytest.mark.parametrize(
    ("topic", "goes"),
    [
        ("orders", True),
        ("fleetgauge.tracers", True),
        ("fleetgauge.probe", False),
        ("fleetgauge.demotions", False),
        ("fleetgauge.tracers.old", False),
        ("fleetgauges", True),
    ],
)
def test_of_our_own_topics_tracers_alone_are_mirrored(topic: str, goes: bool) -> None:
    assert (re.fullmatch(MIRRORED, topic) is not None) == goes


def test_the_expression_of_topics_reaches_java_as_it_is() -> None:
    # MirrorMaker splits a list at commas, and Java's properties take a doubled backslash for one.
    assert "," not in MIRRORED
    (line,) = (one for one in render(PROPERTIES).splitlines() if one.startswith("topics="))
    assert line.removeprefix("topics=").replace("\\\\", "\\") == MIRRORED
