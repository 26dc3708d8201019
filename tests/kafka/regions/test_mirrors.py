"""Two regions and their aggregates with real MirrorMakers: replication, and each fault of a mirror."""

import json
import re
import struct
from dataclasses import dataclass

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Message, TopicPartition

from fleetgauge_core.fleet.load import load_fleet
from fleetgauge_local.errors import RequestError
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_local.runner_protocol import MirrorStatus
from tests.regions import DEADLINE_S, client_settings, create_topic, has_topic, produce, run_fleet_command
from tests.waiting import wait_until

AGGREGATES = ("north-all", "south-all")
TOPIC = "mirrored"


@dataclass(frozen=True)
class OffsetSync:
    """An offset sync: a record's offset in the source and in the target."""

    topic: str
    partition: int
    upstream: int
    downstream: int


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint: a group's committed offset in the source, translated to the target."""

    group: str
    topic: str
    partition: int
    upstream: int
    downstream: int


@pytest.fixture(scope="module", autouse=True)
def topic(regions: LocalFleet) -> None:
    create_topic(regions, TOPIC, "north", "south")


def read_messages(fleet: LocalFleet, cluster: str, topic: str = TOPIC) -> list[Message]:
    """Return all records that the topic holds now."""
    consumer = Consumer({**client_settings(fleet, cluster), "group.id": "tests", "enable.auto.commit": False})
    try:
        end = consumer.get_watermark_offsets(TopicPartition(topic, 0), DEADLINE_S)[1]
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        messages: list[Message] = []
        while end and (not messages or (messages[-1].offset() or 0) + 1 < end):
            message = consumer.poll(DEADLINE_S)
            assert message is not None
            assert message.error() is None
            messages.append(message)
        return messages
    finally:
        consumer.close()


def read_values(fleet: LocalFleet, cluster: str, topic: str = TOPIC) -> list[str]:
    return [(message.value() or b"").decode() for message in read_messages(fleet, cluster, topic)]


def wait_for_values(fleet: LocalFleet, cluster: str, expected: set[str]) -> None:
    wait_until(
        lambda: has_topic(fleet, cluster, TOPIC) and expected <= set(read_values(fleet, cluster)),
        DEADLINE_S,
        f"{len(expected)} records in {cluster}",
    )


def find_mirror_status(fleet: LocalFleet, mirror: str) -> MirrorStatus:
    return next(status for status in fleet.status().mirrors if status.mirror == mirror)


def split_text(raw: bytes) -> tuple[str, bytes]:
    (length,) = struct.unpack_from(">h", raw)
    return raw[2 : 2 + length].decode(), raw[2 + length :]


def parse_offset_sync(message: Message) -> OffsetSync:
    topic, rest = split_text(message.key() or b"")
    (partition,) = struct.unpack(">i", rest)
    return OffsetSync(topic, partition, *struct.unpack(">qq", message.value() or b""))


def parse_checkpoint(message: Message) -> Checkpoint:
    group, rest = split_text(message.key() or b"")
    topic, rest = split_text(rest)
    (partition,) = struct.unpack(">i", rest)
    version, upstream, downstream = struct.unpack_from(">hqq", message.value() or b"")
    assert version == 0
    return Checkpoint(group, topic, partition, upstream, downstream)


def test_records_of_both_regions_arrive_in_one_topic_of_each_aggregate(regions: LocalFleet) -> None:
    sent = {region: [f"{region} {number}" for number in range(25)] for region in ("north", "south")}
    for region, sent_by_region in sent.items():
        produce(regions, region, TOPIC, sent_by_region)
    for aggregate in AGGREGATES:
        wait_for_values(regions, aggregate, {*sent["north"], *sent["south"]})
        for region, sent_by_region in sent.items():
            arrived = [value for value in read_values(regions, aggregate) if value.startswith(region)]
            assert arrived == sent_by_region


def test_the_probe_topic_is_not_replicated_and_the_tracer_topic_is(regions: LocalFleet) -> None:
    for topic in ("fleetgauge.probe", "fleetgauge.tracers"):
        create_topic(regions, topic, "north")
    for aggregate in AGGREGATES:
        wait_until(
            lambda aggregate=aggregate: has_topic(regions, aggregate, "fleetgauge.tracers"),
            DEADLINE_S,
            f"tracers in {aggregate}",
        )
        assert not has_topic(regions, aggregate, "fleetgauge.probe")


def test_every_offset_sync_maps_a_record_to_its_replica(regions: LocalFleet) -> None:
    for region in ("north", "south"):
        source = read_values(regions, region)
        for aggregate in AGGREGATES:
            target = read_values(regions, aggregate)
            messages = read_messages(regions, aggregate, f"mm2-offset-syncs.{region}.internal")
            syncs = [sync for sync in map(parse_offset_sync, messages) if sync.topic == TOPIC]
            assert syncs
            assert all(source[sync.upstream] == target[sync.downstream] for sync in syncs)


def test_the_checkpoint_of_a_group_skips_no_unread_record_in_the_aggregate(regions: LocalFleet) -> None:
    consumer = Consumer(
        {**client_settings(regions, "north"), "group.id": "readers", "enable.auto.commit": False}
    )
    consumer.commit(offsets=[TopicPartition(TOPIC, 0, 10)], asynchronous=False)
    consumer.close()

    def read_checkpoints() -> list[Checkpoint]:
        topic = "north.checkpoints.internal"
        if not has_topic(regions, "south-all", topic):
            return []
        checkpoints = map(parse_checkpoint, read_messages(regions, "south-all", topic))
        return [checkpoint for checkpoint in checkpoints if checkpoint.group == "readers"]

    wait_until(lambda: bool(read_checkpoints()), DEADLINE_S, "a checkpoint")
    last = read_checkpoints()[-1]
    assert (last.topic, last.partition, last.upstream) == (TOPIC, 0, 10)
    unread = read_values(regions, "north")[10:]
    assert set(unread) <= set(read_values(regions, "south-all")[last.downstream :])


def test_a_hung_mirror_does_not_stop_the_other_mirror(regions: LocalFleet) -> None:
    fault = regions.fault_mirror("hang", "north-all")
    assert (fault.mirror, fault.kind) == ("north-all", "hang")
    assert find_mirror_status(regions, "north-all").state == "hung"
    assert not regions.status().ready
    produce(regions, "south", TOPIC, ["while north-all hangs"])
    wait_for_values(regions, "south-all", {"while north-all hangs"})
    assert "while north-all hangs" not in read_values(regions, "north-all")
    regions.fault_mirror("heal", "north-all")
    regions.wait_ready()
    wait_for_values(regions, "north-all", {"while north-all hangs"})


def test_a_killed_mirror_loses_no_record_and_resumes(regions: LocalFleet) -> None:
    before = find_mirror_status(regions, "south-all").pid
    regions.fault_mirror("kill", "south-all")
    assert find_mirror_status(regions, "south-all").state == "dead"
    with pytest.raises(RequestError, match="mirror south-all is dead: heal it first"):
        regions.fault_mirror("hang", "south-all")
    produce(regions, "north", TOPIC, [f"while south-all is dead {number}" for number in range(25)])
    regions.fault_mirror("heal", "south-all")
    regions.wait_ready()
    assert find_mirror_status(regions, "south-all").pid not in (None, before)
    wait_for_values(regions, "south-all", {*read_values(regions, "north"), *read_values(regions, "south")})


def test_a_killed_aggregate_keeps_its_data_and_is_replicated_into_again(regions: LocalFleet) -> None:
    values_before = read_values(regions, "north-all")
    regions.fault("kill", "north-all", 1)
    produce(regions, "south", TOPIC, ["while north-all is dead"])
    regions.fault("heal", "north-all", 1)
    regions.wait_ready()
    assert read_values(regions, "north-all")[: len(values_before)] == values_before
    wait_for_values(regions, "north-all", {"while north-all is dead"})


def test_a_mirror_that_restarts_while_one_source_is_dead_replicates_the_other(regions: LocalFleet) -> None:
    regions.fault("kill", "north", 1)
    regions.fault_mirror("kill", "south-all")
    regions.fault_mirror("heal", "south-all")
    produce(regions, "south", TOPIC, ["while north is dead"])
    wait_for_values(regions, "south-all", {"while north is dead"})
    regions.fault("heal", "north", 1)
    regions.wait_ready()
    produce(regions, "north", TOPIC, ["north is back"])
    wait_for_values(regions, "south-all", {"north is back"})


def test_the_command_hangs_a_mirror_for_a_limited_time_and_shows_its_state(regions: LocalFleet) -> None:
    folder = ("--dir", str(regions.fleet_file.parent))
    hung = run_fleet_command("fault", "hang", "--mirror", "north-all", "--for", "1", *folder, "--json")
    assert set(json.loads(hung.stdout)) == {"mirror", "kind", "at"}
    regions.wait_ready()
    status = json.loads(run_fleet_command("status", *folder, "--json").stdout)
    assert [(mirror["mirror"], mirror["state"]) for mirror in status["mirrors"]] == [
        (aggregate, "up") for aggregate in AGGREGATES
    ]
    table = run_fleet_command("status", *folder).stderr
    assert re.search(r"north-all\s*│\s*north, south\s*│\s*up", table)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("--mirror", "west"), "there is no mirror 'west': the mirrors are north-all, south-all"),
        (("north",), "give a cluster and a broker, or --mirror: hang orders 2, hang --mirror north-all"),
    ],
)
def test_an_unknown_mirror_is_reported_in_one_line(
    arguments: tuple[str, ...], line: str, regions: LocalFleet
) -> None:
    result = run_fleet_command("fault", "hang", *arguments, "--dir", str(regions.fleet_file.parent))
    assert (result.returncode, result.stdout, result.stderr) == (2, "", f"fleetgauge: {line}\n")


def test_the_fleet_file_names_the_four_clusters_and_their_regions(regions: LocalFleet) -> None:
    fleet = load_fleet(regions.fleet_file)
    assert {cluster.id: cluster.region for cluster in fleet.clusters} == {
        "north": "north",
        "south": "south",
        "north-all": "north",
        "south-all": "south",
    }
