"""Two regions and their aggregates, copied by real MirrorMakers: what arrives, and each fault of a mirror."""

import json
import os
import re
import signal
import struct
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import psutil
import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Message, TopicPartition

from fleetgauge_core.fleet.load import load
from fleetgauge_local.errors import RequestError
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_local.layout import REGIONS
from fleetgauge_local.messages import MirrorStatus
from tests.regions import DEADLINE_S, client, has_topic, make_topic, produce
from tests.waiting import wait_until

AGGREGATES = ("north-all", "south-all")


@dataclass(frozen=True)
class Pair:
    """What an offset sync says: this record of the source is that one of the target."""

    topic: str
    partition: int
    upstream: int
    downstream: int


@dataclass(frozen=True)
class Checkpoint:
    """Where a group of the source would go on in the target."""

    group: str
    topic: str
    partition: int
    upstream: int
    downstream: int


@pytest.fixture(scope="module")
def regions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalFleet]:
    folder = tmp_path_factory.mktemp("regions")
    with LocalFleet(folder, REGIONS.clusters, mirrors=REGIONS.mirrors) as fleet:
        make_topic(fleet, "orders", "north", "south")
        yield fleet


def read(fleet: LocalFleet, cluster: str, topic: str = "orders") -> list[Message]:
    """All that is there now."""
    consumer = Consumer({**client(fleet, cluster), "group.id": "tests", "enable.auto.commit": False})
    try:
        end = consumer.get_watermark_offsets(TopicPartition(topic, 0), DEADLINE_S)[1]
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        found: list[Message] = []
        while end and (not found or (found[-1].offset() or 0) + 1 < end):
            message = consumer.poll(DEADLINE_S)
            assert message is not None
            assert message.error() is None
            found.append(message)
        return found
    finally:
        consumer.close()


def values(fleet: LocalFleet, cluster: str, topic: str = "orders") -> list[str]:
    return [(message.value() or b"").decode() for message in read(fleet, cluster, topic)]


def wait_for_values(fleet: LocalFleet, cluster: str, wanted: set[str]) -> None:
    wait_until(
        lambda: has_topic(fleet, cluster, "orders") and wanted <= set(values(fleet, cluster)),
        DEADLINE_S,
        f"{len(wanted)} records in {cluster}",
    )


def mirror_of(fleet: LocalFleet, mirror: str) -> MirrorStatus:
    return next(one for one in fleet.status().mirrors if one.mirror == mirror)


def processes(fleet: LocalFleet) -> list[psutil.Process]:
    status = fleet.status()
    brokers = [broker.pid for cluster in status.clusters for broker in cluster.brokers]
    return [psutil.Process(pid) for pid in (*brokers, *(one.pid for one in status.mirrors)) if pid]


def alive(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def take_text(raw: bytes) -> tuple[str, bytes]:
    (length,) = struct.unpack_from(">h", raw)
    return raw[2 : 2 + length].decode(), raw[2 + length :]


def pair(message: Message) -> Pair:
    topic, rest = take_text(message.key() or b"")
    (partition,) = struct.unpack(">i", rest)
    return Pair(topic, partition, *struct.unpack(">qq", message.value() or b""))


def checkpoint(message: Message) -> Checkpoint:
    group, rest = take_text(message.key() or b"")
    topic, rest = take_text(rest)
    (partition,) = struct.unpack(">i", rest)
    version, upstream, downstream = struct.unpack_from(">hqq", message.value() or b"")
    assert version == 0
    return Checkpoint(group, topic, partition, upstream, downstream)


def test_records_of_both_regions_arrive_in_one_topic_of_each_aggregate(regions: LocalFleet) -> None:
    sent = {region: [f"{region} {number}" for number in range(25)] for region in ("north", "south")}
    for region, of_region in sent.items():
        produce(regions, region, "orders", of_region)
    for aggregate in AGGREGATES:
        wait_for_values(regions, aggregate, {*sent["north"], *sent["south"]})
        for region, of_region in sent.items():
            arrived = [value for value in values(regions, aggregate) if value.startswith(region)]
            assert arrived == of_region


def test_a_regions_probes_stay_where_they_measure_and_its_tracers_go(regions: LocalFleet) -> None:
    for topic in ("fleetgauge.probe", "fleetgauge.tracers"):
        make_topic(regions, topic, "north")
    for aggregate in AGGREGATES:
        wait_until(
            lambda aggregate=aggregate: has_topic(regions, aggregate, "fleetgauge.tracers"),
            DEADLINE_S,
            f"tracers in {aggregate}",
        )
        assert not has_topic(regions, aggregate, "fleetgauge.probe")


def test_every_offset_sync_names_the_same_record_on_both_sides(regions: LocalFleet) -> None:
    for region in ("north", "south"):
        source = values(regions, region)
        for aggregate in AGGREGATES:
            target = values(regions, aggregate)
            pairs = [pair(one) for one in read(regions, aggregate, f"mm2-offset-syncs.{region}.internal")]
            of_orders = [one for one in pairs if one.topic == "orders"]
            assert of_orders
            assert all(source[one.upstream] == target[one.downstream] for one in of_orders)


def test_a_groups_checkpoint_says_where_it_would_go_on_in_the_aggregate(regions: LocalFleet) -> None:
    consumer = Consumer({**client(regions, "north"), "group.id": "readers", "enable.auto.commit": False})
    consumer.commit(offsets=[TopicPartition("orders", 0, 10)], asynchronous=False)
    consumer.close()

    def found() -> list[Checkpoint]:
        topic = "north.checkpoints.internal"
        if not has_topic(regions, "south-all", topic):
            return []
        return [one for one in map(checkpoint, read(regions, "south-all", topic)) if one.group == "readers"]

    wait_until(lambda: bool(found()), DEADLINE_S, "a checkpoint")
    last = found()[-1]
    assert (last.topic, last.partition, last.upstream) == ("orders", 0, 10)
    # It skips no record that the group has not read.
    unread = values(regions, "north")[10:]
    assert set(unread) <= set(values(regions, "south-all")[last.downstream :])


def test_a_hung_mirror_stops_copying_and_the_other_does_not(regions: LocalFleet) -> None:
    done = regions.fault_mirror("hang", "north-all")
    assert (done.mirror, done.kind) == ("north-all", "hang")
    assert mirror_of(regions, "north-all").state == "hung"
    assert not regions.status().ready
    produce(regions, "south", "orders", ["while north-all hangs"])
    wait_for_values(regions, "south-all", {"while north-all hangs"})
    assert "while north-all hangs" not in values(regions, "north-all")
    regions.fault_mirror("heal", "north-all")
    regions.wait_ready()
    wait_for_values(regions, "north-all", {"while north-all hangs"})


def test_a_killed_mirror_loses_nothing_and_goes_on_where_it_was(regions: LocalFleet) -> None:
    before = mirror_of(regions, "south-all").pid
    regions.fault_mirror("kill", "south-all")
    assert mirror_of(regions, "south-all").state == "dead"
    with pytest.raises(RequestError, match="mirror south-all is dead: heal it first"):
        regions.fault_mirror("hang", "south-all")
    produce(regions, "north", "orders", [f"while south-all is dead {number}" for number in range(25)])
    regions.fault_mirror("heal", "south-all")
    regions.wait_ready()
    assert mirror_of(regions, "south-all").pid not in (None, before)
    wait_for_values(regions, "south-all", {*values(regions, "north"), *values(regions, "south")})


def test_a_killed_aggregate_comes_back_with_its_data_and_is_copied_into_again(regions: LocalFleet) -> None:
    held = values(regions, "north-all")
    regions.fault("kill", "north-all", 1)
    produce(regions, "south", "orders", ["while north-all is dead"])
    regions.fault("heal", "north-all", 1)
    regions.wait_ready()
    assert values(regions, "north-all")[: len(held)] == held
    wait_for_values(regions, "north-all", {"while north-all is dead"})


def test_a_mirror_that_restarts_while_one_source_is_dead_copies_the_other(regions: LocalFleet) -> None:
    regions.fault("kill", "north", 1)
    regions.fault_mirror("kill", "south-all")
    regions.fault_mirror("heal", "south-all")
    produce(regions, "south", "orders", ["while north is dead"])
    wait_for_values(regions, "south-all", {"while north is dead"})
    regions.fault("heal", "north", 1)
    regions.wait_ready()
    produce(regions, "north", "orders", ["north is back"])
    wait_for_values(regions, "south-all", {"north is back"})


def fleet_command(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "fleetgauge_core", "fleet", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_the_command_hangs_a_mirror_for_a_time_and_shows_it(regions: LocalFleet) -> None:
    folder = ("--dir", str(regions.fleet_file.parent))
    hung = fleet_command("fault", "hang", "--mirror", "north-all", "--for", "1", *folder, "--json")
    assert set(json.loads(hung.stdout)) == {"mirror", "kind", "at"}
    regions.wait_ready()
    shown = json.loads(fleet_command("status", *folder, "--json").stdout)
    assert [(one["mirror"], one["state"]) for one in shown["mirrors"]] == [(one, "up") for one in AGGREGATES]
    told = fleet_command("status", *folder).stderr
    assert re.search(r"north-all\s*│\s*north, south\s*│\s*up", told)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("--mirror", "west"), "there is no mirror 'west': there are north-all, south-all"),
        (("north",), "name a cluster and its broker, or a mirror: hang orders 2, hang --mirror north-all"),
    ],
)
def test_a_mirror_that_is_not_there_is_one_line(
    arguments: tuple[str, ...], line: str, regions: LocalFleet
) -> None:
    done = fleet_command("fault", "hang", *arguments, "--dir", str(regions.fleet_file.parent))
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"fleetgauge: {line}\n")


def test_the_fleet_file_names_the_four_clusters_and_their_regions(regions: LocalFleet) -> None:
    fleet = load(regions.fleet_file)
    assert {cluster.id: cluster.region for cluster in fleet.clusters} == {
        "north": "north",
        "south": "south",
        "north-all": "north",
        "south-all": "south",
    }


def test_what_a_killed_runner_left_ends_by_id_mirrors_included(regions: LocalFleet) -> None:
    left = processes(regions)
    assert len(left) == 7
    os.kill(regions.status().runner_pid, signal.SIGKILL)
    assert regions.stop() == 7
    assert not any(map(alive, left))


def test_the_command_starts_what_the_folder_holds_again_and_ends_all_of_it(regions: LocalFleet) -> None:
    folder = ("--dir", str(regions.fleet_file.parent))
    refused = fleet_command("up", *folder)
    assert refused.returncode == 2
    assert "holds other clusters: name their topology" in refused.stderr
    started = json.loads(fleet_command("up", "--topology", "regions", *folder, "--json").stdout)
    assert started["ready"]
    assert [one["state"] for one in started["mirrors"]] == ["up", "up"]
    wait_for_values(regions, "north-all", {*values(regions, "north"), *values(regions, "south")})
    ran = processes(regions)
    assert json.loads(fleet_command("down", *folder, "--json").stdout) == {"ended": 7}
    assert not any(map(alive, ran))
