import re

import pytest

from fleetgauge_local.layout import (
    MIRRORED_TOPICS,
    REGIONS,
    ClusterSpec,
    FleetLayout,
    MirrorSpec,
    build_layout,
)
from fleetgauge_local.mirror_properties import build_mirror_properties
from fleetgauge_local.properties import render

LAYOUT = build_layout(REGIONS.clusters, {}, iter(range(20000, 21000)), REGIONS.mirrors)
PROPERTIES = build_mirror_properties(LAYOUT, REGIONS.mirrors[0])


def test_a_mirror_enables_only_the_flows_into_its_target() -> None:
    assert PROPERTIES["clusters"] == "north,south,north-all"
    routes = {key: value for key, value in PROPERTIES.items() if "->" in key}
    assert routes == {
        "north->north-all.enabled": "true",
        "north->north-all.emit.heartbeats.enabled": "true",
        "south->north-all.enabled": "true",
        "south->north-all.emit.heartbeats.enabled": "true",
    }
    assert PROPERTIES["emit.heartbeats.enabled"] == "false"


def test_a_mirror_connects_to_its_clusters_through_the_proxies() -> None:
    for cluster in ("north", "south", "north-all"):
        assert PROPERTIES[f"{cluster}.bootstrap.servers"] == LAYOUT.bootstrap(cluster)


def test_topics_keep_their_names_and_offset_syncs_are_stored_in_the_target() -> None:
    assert PROPERTIES["replication.policy.class"].endswith(".IdentityReplicationPolicy")
    assert PROPERTIES["offset-syncs.topic.location"] == "target"
    assert PROPERTIES["offset.lag.max"] == "10"
    assert PROPERTIES["sync.group.offsets.enabled"] == "false"


def test_worker_properties_are_prefixed_with_the_targets_name() -> None:
    assert PROPERTIES["north-all.producer.enable.idempotence"] == "true"
    assert PROPERTIES["north-all.scheduled.rebalance.max.delay.ms"] == "0"
    assert "offset.flush.interval.ms" not in PROPERTIES


@pytest.mark.parametrize(("brokers", "copies"), [(1, "1"), (3, "3")])
def test_internal_topics_have_the_targets_replication_factor(brokers: int, copies: str) -> None:
    clusters = (ClusterSpec("near"), ClusterSpec("far", brokers=brokers))
    mirror = MirrorSpec("far", ("near",))
    layout: FleetLayout = build_layout(clusters, {}, iter(range(20000, 21000)), (mirror,))
    factors = {
        key: value for key, value in build_mirror_properties(layout, mirror).items() if "replication.f" in key
    }
    assert len(factors) == 7
    assert set(factors.values()) == {copies}


@pytest.mark.parametrize(
    ("topic", "replicated"),
    [
        ("orders", True),
        ("fleetgauge.tracers", True),
        ("fleetgauge.probe", False),
        ("fleetgauge.demotions", False),
        ("fleetgauge.tracers.old", False),
        ("fleetgauges", True),
    ],
)
def test_tracers_are_the_only_fleetgauge_topic_that_is_mirrored(topic: str, replicated: bool) -> None:
    assert (re.fullmatch(MIRRORED_TOPICS, topic) is not None) == replicated


def test_the_topics_expression_is_unchanged_when_java_reads_it() -> None:
    # MirrorMaker splits lists at commas, and Java's properties format escapes a backslash by doubling it.
    assert "," not in MIRRORED_TOPICS
    (line,) = (line for line in render(PROPERTIES).splitlines() if line.startswith("topics="))
    assert line.removeprefix("topics=").replace("\\\\", "\\") == MIRRORED_TOPICS
