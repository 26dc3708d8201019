"""`fleetgauge recover` on real mirrors: what it keeps, what it writes for groups, and what it refuses."""

import json
import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka import (
    Consumer,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import NewTopic
from deltalake import DeltaTable

from fleetgauge_core.fleet import Tracers, load
from fleetgauge_core.kafka import Delivery, Extents, TracerProducer
from fleetgauge_core.tables import (
    GROUP_MINUTES,
    MIRROR_MINUTES,
    PRODUCER_MINUTES,
    Table,
)
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_local.layout import REGIONS
from fleetgauge_operations.recovery.checkpoint_store import CheckpointStore
from fleetgauge_operations.recovery.offsets.checkpoint import Origin
from fleetgauge_operations.recovery.tracers.plan.delays import Way
from fleetgauge_operations.recovery.tracers.plan.tracer import Tracer
from fleetgauge_operations.recovery.tracers.tracer_loop import Tracing
from tests.receiver import Receiver
from tests.regions import (
    DEADLINE_S,
    admin,
    call,
    client,
    committed,
    consume,
    described,
    end_of,
    make_topic,
    merged,
    partition_of,
    planned,
    produce,
    running,
    wait_for_records,
    wait_for_verdict,
)
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def regions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalFleet]:
    with LocalFleet(tmp_path_factory.mktemp("recover"), REGIONS.clusters, mirrors=REGIONS.mirrors) as fleet:
        yield fleet


@pytest.fixture
def config(regions: LocalFleet, tmp_path: Path) -> Path:
    """The fleet's file, with a lake of its own."""
    return described(regions, tmp_path)


def test_a_group_goes_on_in_the_other_aggregate_without_loss(regions: LocalFleet, config: Path) -> None:
    merged(regions, "went-on")
    read = consume(regions, "north-all", "readers-1", "went-on", count=100)
    found = wait_for_verdict(config, "readers-1", "went-on", "write")
    dry = call(config, "sync", "--group", "readers-1", "--json")
    assert (dry.exit_code, committed(regions, "south-all", "readers-1", "went-on")) == (0, None)
    done = call(config, "sync", "--group", "readers-1", "--execute", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)[0]["written"]
    resume = partition_of(done, "readers-1", "went-on")["resume"]
    assert committed(regions, "south-all", "readers-1", "went-on") == resume >= found["resume"]
    rest = consume(regions, "south-all", "readers-1", "went-on")
    everything = {f"{region} {number}" for region in ("north", "south") for number in range(60)}
    assert {*read, *rest} == everything
    again = rest.index(next(one for one in rest if one not in read)) if {*rest} - {*read} else len(rest)
    assert again <= partition_of(done, "readers-1", "went-on")["early_at_most"]


def test_a_group_is_not_moved_while_somebody_reads_in_it_there(regions: LocalFleet, config: Path) -> None:
    merged(regions, "connected")
    consume(regions, "north-all", "readers-2", "connected", count=100)
    wait_for_verdict(config, "readers-2", "connected", "write")
    reader = Consumer({**client(regions, "south-all"), "group.id": "readers-2", "enable.auto.commit": False})
    reader.subscribe(["connected"])
    try:
        wait_until(lambda: bool(reader.poll(0.2)) or bool(reader.assignment()), DEADLINE_S, "a member")
        done = call(config, "sync", "--group", "readers-2", "--execute", "--json")
        assert done.exit_code == 1
        assert partition_of(done, "readers-2", "connected")["verdict"] == "connected"
        assert committed(regions, "south-all", "readers-2", "connected") is None
    finally:
        reader.close()


def test_a_topic_that_no_mirror_brings_is_unknown(regions: LocalFleet, config: Path) -> None:
    make_topic(regions, "only-here", "north-all")
    produce(regions, "north-all", "only-here", ["one", "two"])
    consume(regions, "north-all", "readers-3", "only-here")
    done = call(config, "sync", "--group", "readers-3", "--execute", "--json")
    assert (done.exit_code, partition_of(done, "readers-3", "only-here")["verdict"]) == (1, "unknown_topic")


def test_a_topic_made_anew_is_told_and_nothing_written(regions: LocalFleet, config: Path) -> None:
    merged(regions, "made-anew")
    consume(regions, "north-all", "readers-4", "made-anew", count=100)
    with running(config):
        wait_for_verdict(config, "readers-4", "made-anew", "write")
        wait_until(
            lambda: any(
                fact.route.topic == "made-anew" for fact in CheckpointStore(lake_of(config)).read().facts
            ),
            DEADLINE_S,
            "facts in the lake",
        )
    there = Extents(load(config).cluster("south-all").access, "tests")
    there.start()
    before = there.topics(["made-anew"])["made-anew"]
    deleting = admin(regions, "south-all")
    deleting.delete_topics(["made-anew"])["made-anew"].result(DEADLINE_S)

    def is_made_anew() -> bool:
        """The mirror makes it too, when it next looks for topics."""
        making = admin(regions, "south-all")
        with suppress(KafkaException):
            making.create_topics([NewTopic("made-anew", 1, 1)])["made-anew"].result(DEADLINE_S)
        after = there.topics(["made-anew"]).get("made-anew")
        return after is not None and after.topic_id != before.topic_id

    wait_until(is_made_anew, DEADLINE_S, "another topic of that name")
    found = wait_for_verdict(config, "readers-4", "made-anew", "made_anew")
    assert found["resume"] is None
    assert call(config, "sync", "--group", "readers-4", "--execute", "--json").exit_code == 1
    assert committed(regions, "south-all", "readers-4", "made-anew") is None


def lake_of(config: Path) -> str:
    return str(yaml.safe_load(config.read_text())["lake"])


def test_what_may_be_gone_there_is_told_and_nothing_written(regions: LocalFleet, config: Path) -> None:
    merged(regions, "shortened")
    consume(regions, "north-all", "readers-5", "shortened", count=100)
    wait_for_verdict(config, "readers-5", "shortened", "write")
    deleting = admin(regions, "south-all")
    # Twenty of the 120 are not consumed, so the first of them lies at 100 there or before.
    gone = TopicPartition("shortened", 0, 110)
    next(iter(deleting.delete_records([gone]).values())).result(DEADLINE_S)
    done = call(config, "sync", "--group", "readers-5", "--execute", "--json")
    assert (done.exit_code, partition_of(done, "readers-5", "shortened")["verdict"]) == (1, "possible_loss")
    assert committed(regions, "south-all", "readers-5", "shortened") is None


def test_a_mirror_that_stands_still_is_stale_and_nothing_written(regions: LocalFleet, tmp_path: Path) -> None:
    config = described(regions, tmp_path, stale_s=5)
    merged(regions, "stood-still")
    consume(regions, "north-all", "readers-6", "stood-still", count=100)
    with running(config):
        wait_for_verdict(config, "readers-6", "stood-still", "write")
        regions.fault_mirror("hang", "south-all")
        try:
            produce(regions, "north", "stood-still", ["while south-all stands still"])
            found = wait_for_verdict(config, "readers-6", "stood-still", "stale")
            assert found["silent_s"] > 5
            assert call(config, "sync", "--group", "readers-6", "--execute", "--json").exit_code == 1
            assert committed(regions, "south-all", "readers-6", "stood-still") is None
        finally:
            regions.fault_mirror("heal", "south-all")
    regions.wait_ready()


def test_a_group_set_back_where_it_reads_is_set_back_there_too(regions: LocalFleet, config: Path) -> None:
    merged(regions, "set-back")
    consume(regions, "north-all", "readers-7", "set-back", count=110)
    wait_for_verdict(config, "readers-7", "set-back", "write")
    assert call(config, "sync", "--group", "readers-7", "--execute").exit_code == 0
    far = committed(regions, "south-all", "readers-7", "set-back")
    assert call(config, "sync", "--group", "readers-7", "--execute").exit_code == 0
    assert committed(regions, "south-all", "readers-7", "set-back") == far
    moving = Consumer({**client(regions, "north-all"), "group.id": "readers-7", "enable.auto.commit": False})
    moving.commit(offsets=[TopicPartition("set-back", 0, 100)], asynchronous=False)
    moving.close()
    assert planned(config, "readers-7", "set-back")["verdict"] == "write"
    by_hand = Consumer({**client(regions, "south-all"), "group.id": "readers-7", "enable.auto.commit": False})
    by_hand.commit(offsets=[TopicPartition("set-back", 0, 120)], asynchronous=False)
    by_hand.close()
    assert planned(config, "readers-7", "set-back")["verdict"] == "backwards"


def test_a_collector_that_is_killed_keeps_every_row_once(regions: LocalFleet, config: Path) -> None:
    merged(regions, "kept")

    def syncs() -> list[tuple[object, ...]]:
        rows = DeltaTable(f"{lake_of(config)}/recovery/checkpoints").to_pyarrow_table().to_pylist()
        return [
            (row["source"], row["destination"], row["src_offset"], row["dst_offset"])
            for row in rows
            if row["topic"] == "kept" and row["origin"] == "sync"
        ]

    table = Path(lake_of(config), "recovery/checkpoints/_delta_log")
    with running(config) as process:
        wait_until(lambda: table.exists() and bool(syncs()), DEADLINE_S, "syncs in the lake")
        os.kill(process.pid, signal.SIGKILL)
        process.wait(DEADLINE_S)
    before = syncs()
    for region in ("north", "south"):
        produce(regions, region, "kept", [f"{region} more {number}" for number in range(60)])
    for aggregate in ("north-all", "south-all"):
        wait_for_records(regions, aggregate, "kept", 240)
    with running(config):
        wait_until(lambda: len(syncs()) > len(before), DEADLINE_S, "new syncs in the lake")
    after = syncs()
    assert len(after) == len(set(after))
    assert set(before) < set(after)


@pytest.mark.parametrize("idle", [None, "south"])
def test_an_aggregate_dies_and_its_group_goes_on_and_comes_back(
    regions: LocalFleet, tmp_path: Path, idle: str | None
) -> None:
    topic, group = f"died-{idle}", f"readers-died-{idle}"
    there = {"groups": group, "active": "north-all", "passive": "south-all"}
    back = {"groups": group, "active": "south-all", "passive": "north-all"}
    config = described(regions, tmp_path, [there])
    merged(regions, topic)
    sources = [one for one in ("north", "south") if one != idle]
    sent = {f"{region} {number}" for region in ("north", "south") for number in range(60)}
    with running(config, "--execute"):
        read = consume(regions, "north-all", group, topic)
        for number in range(200):
            region = sources[number % len(sources)]
            produce(regions, region, topic, [f"{region} later {number}"])
            sent.add(f"{region} later {number}")
        read += consume(regions, "north-all", group, topic)
        wait_until(
            lambda: planned(config, group, topic)["verdict"] == "unchanged", DEADLINE_S, "it to be written"
        )
        forecast = planned(config, group, topic)
        regions.fault("kill", "north-all", 1)
        dead = time.monotonic()
        said = call(config, "plan", "--group", group)
        assert (said.exit_code, "cannot be seen: north-all to south-all" in said.output) == (1, True), (
            said.output
        )
        wait_for_records(regions, "south-all", topic, len(sent))
        rest = consume(regions, "south-all", group, topic)
        assert time.monotonic() - dead < DEADLINE_S
    assert {*read, *rest} == sent
    twice = [one for one in rest if one in read]
    assert len(twice) <= end_of(regions, "south-all", topic) - forecast["resume"]
    regions.fault("heal", "north-all", 1)
    regions.wait_ready()
    wait_for_records(regions, "north-all", topic, len(sent))
    config = described(regions, tmp_path, [back])
    wait_until(
        lambda: planned(config, group, topic)["verdict"] in {"write", "unchanged"}, DEADLINE_S, "the way back"
    )
    produce(regions, sources[0], topic, ["after all"])
    for aggregate in ("north-all", "south-all"):
        wait_for_records(regions, aggregate, topic, len(sent) + 1)
    wait_until(
        lambda: call(config, "sync", "--group", group, "--execute").exit_code == 0, DEADLINE_S, "it written"
    )
    assert {*rest, *consume(regions, "north-all", group, topic)} >= {"after all"}
    # Nothing went round: each aggregate holds what was sent, and copies of a mirror's restart at most.
    assert end_of(regions, "south-all", topic) == len(sent) + 1


def test_a_drill_says_what_a_failover_costs_tries_it_and_keeps_it(
    regions: LocalFleet, tmp_path: Path
) -> None:
    config = described(regions, tmp_path)
    merged(regions, "drilled")
    consume(regions, "north-all", "readers-8", "drilled", count=100)
    wait_for_verdict(config, "readers-8", "drilled", "write")
    way = ("drill", "--from", "north-all", "--to", "south-all", "--group", "readers-8")

    said = call(config, *way, "--json")
    assert said.exit_code == 0, said.output
    forecast = json.loads(said.stdout)
    assert forecast["verdict"] == "READY"
    assert committed(regions, "south-all", "readers-8", "drilled") is None

    done = call(config, *way, "--execute", "--json")
    assert done.exit_code == 0, done.output
    (group,) = json.loads(done.stdout)["groups"]
    resume = group["partitions"][0]["resume"]
    assert committed(regions, "south-all", "readers-8", "drilled") == resume
    assert group["missing"] == 0
    # Both sides hold the same 120 records, 20 of them not consumed.
    assert group["replayed"] == group["replay_forecast"] == 120 - resume - 20
    assert group["replayed"] <= group["replay_at_most"]
    assert group["first_record_ms"] > 0

    rows = DeltaTable(f"{lake_of(config)}/recovery/drills").to_pyarrow_table().to_pylist()
    assert sorted((row["group_id"], row["executed"], row["ready"]) for row in rows) == [
        ("readers-8", False, True),
        ("readers-8", True, True),
    ]


def test_a_drill_of_a_group_that_is_not_ready_says_why_and_writes_nothing(
    regions: LocalFleet, config: Path
) -> None:
    make_topic(regions, "not-ready", "north-all")
    produce(regions, "north-all", "not-ready", ["one"])
    consume(regions, "north-all", "readers-9", "not-ready")
    way = ("drill", "--from", "north-all", "--to", "south-all", "--execute", "--json")
    done = call(config, *way, "--group", "readers-9", "--group", "nobody")
    assert done.exit_code == 1
    found = json.loads(done.stdout)
    assert found["verdict"] == "NOT_READY"
    assert [(one["group_id"], one["executed"], one["reasons"]) for one in found["groups"]] == [
        ("readers-9", False, "unknown_topic"),
        ("nobody", False, "nothing_committed"),
    ]


def test_a_failback_says_what_never_got_across_and_what_is_new(regions: LocalFleet, tmp_path: Path) -> None:
    config = described(regions, tmp_path)
    merged(regions, "stranded")
    way = ("failback", "--primary", "north", "--secondary", "south-all", "--json")

    def of_the_topic(*more: str) -> tuple[int, dict[str, Any]]:
        done = call(config, *way, *more)
        assert done.exit_code in (0, 1), done.output
        parts = json.loads(done.stdout)["partitions"]
        return done.exit_code, next(one for one in parts if one["topic"] == "stranded")

    began = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    regions.fault_mirror("hang", "south-all")
    try:
        produce(regions, "north", "stranded", [f"stranded {number}" for number in range(50)])
        code, found = of_the_topic("--since", began)
        assert code == 1
        assert (found["stranded"]["count"], found["stranded"]["offsets"]) == (50, [60, 61, 62])
        assert found["stranded"]["bytes"] == sum(len(f"stranded {number}") for number in range(50))
        assert found["at_risk"][1] == 110
    finally:
        regions.fault_mirror("heal", "south-all")
    regions.wait_ready()
    wait_for_records(regions, "south-all", "stranded", 170)
    _, found = of_the_topic("--since", began)
    assert found["stranded"]["count"] == 0
    assert found["new"] == [120, 170]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("--from", "north-all", "--to", "south-all", "--execute"), "name them with --group"),
        (("--from", "south", "--to", "north"), "recovery.groups has none that go on from south in north"),
    ],
)
def test_a_drill_that_cannot_be_is_one_line(config: Path, arguments: Sequence[str], line: str) -> None:
    done = call(config, "drill", *arguments)
    assert done.exit_code == 2
    assert line in done.stderr


def test_readiness_is_kept_every_minute_and_what_lasts_is_told(regions: LocalFleet, tmp_path: Path) -> None:
    merged(regions, "judged")
    consume(regions, "north-all", "readers-judged", "judged", count=100)
    with Receiver().listening() as hook:
        config = described(regions, tmp_path)
        document = yaml.safe_load(config.read_text())
        document["recovery"]["tracers"] = {"every_s": 1, "vantage": "here"}
        document["recovery"]["objectives"] = {"rpo_s": 20}
        document["notifiers"] = [{"kind": "webhook", "url": hook.url}]
        config.write_text(yaml.safe_dump(document))

        def rows(table: Table) -> list[dict[str, Any]]:
            where = Path(lake_of(config), table.path, "_delta_log")
            return DeltaTable(str(where.parent)).to_pyarrow_table().to_pylist() if where.exists() else []

        def told(status: str) -> list[Any]:
            return [one for one in hook.bodies if (one["kind"], one["status"]) == ("MIRROR_BEHIND", status)]

        with running(config, "--execute"):
            wait_until(lambda: bool(rows(MIRROR_MINUTES)), 3 * DEADLINE_S, "a minute's row")
            regions.fault_mirror("hang", "south-all")
            try:
                wait_until(lambda: len(told("firing")) >= 2, 3 * DEADLINE_S, "both ways into south-all")
            finally:
                regions.fault_mirror("heal", "south-all")
            wait_until(lambda: len(told("resolved")) >= 2, 3 * DEADLINE_S, "their end")
    # Of each the minute before the mirror hung, which is the first.
    backwards = sorted(rows(MIRROR_MINUTES), key=lambda row: row["minute"], reverse=True)
    well = {(row["source"], row["destination"]): row for row in backwards}
    assert set(well) == {(one, all_) for one in ("north", "south") for all_ in ("north-all", "south-all")}
    assert all(row["tracers"] > 5 and row["looped"] == 0 for row in well.values())
    own = [row for row in rows(GROUP_MINUTES) if row["group_id"] == "readers-judged"]
    first = min(own, key=lambda row: row["minute"])
    assert (first["reasons"], first["ready"], first["unbounded"], first["lost_at_most"]) == ("", True, 0, 0)
    acks = {row["cluster_id"]: row for row in rows(PRODUCER_MINUTES)}
    assert set(acks) == {"north", "south"}
    assert all(row["vantage"] == "here" and row["acknowledged"] > 5 for row in acks.values())
    assert {(one["cluster"], one["severity"]) for one in told("firing")} == {
        ("north", "page"),
        ("south", "page"),
    }
    facts = CheckpointStore(lake_of(config)).read().facts
    assert any(fact.checkpoint.origin is Origin.TRACER for fact in facts)


def test_a_tracer_that_comes_home_again_is_a_loop(regions: LocalFleet, tmp_path: Path) -> None:
    """As a mirror in a circle would bring it: the same header, once more, in the topic it began in."""
    fleet = load(described(regions, tmp_path))
    tracers = Tracers(every_s=1, topic="fleetgauge.tracers")
    tracing = Tracing(fleet, tracers, "circle", lambda: time.time_ns() // 1_000_000)
    seen: dict[str, int] = {"north": 0, "south": 0}

    def look() -> dict[str, int]:
        for way, delay in tracing.told().delays.items():
            if way.destination == "north-all":
                seen[way.source] += delay.looped
        return seen

    tracing.start()
    try:
        wait_until(
            lambda: bool(tracing.told().delays[Way("north", "north-all")].took_ms), DEADLINE_S, "a tracer"
        )
        back = TracerProducer(fleet.cluster("north").access, tracers.topic, "circle")
        back.start()
        came: list[Delivery] = []
        once = Tracer("north", tracers.topic, 0, "another", 1, 0)
        for _ in range(2):
            back.send(once.headers, came.append)
        wait_until(lambda: back.poll(0.1) is None and len(came) == 2, DEADLINE_S, "both written")
        wait_until(lambda: look() == {"north": 1, "south": 0}, DEADLINE_S, "the loop to be seen")
        back.stop()
    finally:
        tracing.stop()


def test_tracers_that_came_before_anybody_looked_for_them_are_not_late(
    regions: LocalFleet, tmp_path: Path
) -> None:
    """As where the destination is away when tracing begins: its mirror is there again before its reader."""
    fleet = load(described(regions, tmp_path))
    tracers = Tracers(every_s=1, topic="fleetgauge.tracers")
    tracing = Tracing(fleet, tracers, "unseen", lambda: time.time_ns() // 1_000_000)

    def late_s() -> float:
        return tracing.told().delays[Way("north", "south-all")].late_s or 0.0

    regions.fault("hang", "south-all", 1)
    tracing.start()
    try:
        # By then the reader has given up once, and waits before it tries again.
        wait_until(lambda: late_s() > 11, DEADLINE_S, "a mirror that is late")
        regions.fault("heal", "south-all", 1)
        wait_until(lambda: late_s() < 5, 3 * DEADLINE_S, "a mirror that is abreast")
    finally:
        regions.fault("heal", "south-all", 1)
        tracing.stop()
    regions.wait_ready()
