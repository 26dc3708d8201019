"""`fleetgauge recover` on real mirrors: stored syncs, synchronised group offsets, and refusals."""

import json
import os
import signal
import time
from collections.abc import Sequence
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

from fleetgauge_core.fleet import Tracers, load_fleet
from fleetgauge_core.kafka import DeliveryReport, TopicOffsets, TracerProducer
from fleetgauge_core.metadata import TopicChangeKind
from fleetgauge_core.tables import (
    GROUP_MINUTES,
    MIRROR_MINUTES,
    PRODUCER_MINUTES,
    Table,
)
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_operations.recovery.checkpoint_store import CheckpointStore
from fleetgauge_operations.recovery.offsets.checkpoint import CheckpointOrigin
from fleetgauge_operations.recovery.tracers.plan.delays import MirrorRoute
from fleetgauge_operations.recovery.tracers.plan.tracer import Tracer
from fleetgauge_operations.recovery.tracers.tracer_loop import TracerLoop
from tests.receiver import Receiver
from tests.regions import (
    DEADLINE_S,
    client_settings,
    consume,
    create_admin_client,
    create_producer,
    create_replicated_topic,
    create_topic,
    find_partition,
    plan_partition,
    produce,
    read_committed_offset,
    read_end_offset,
    run_recover,
    running_controller,
    wait_for_records,
    wait_for_verdict,
    write_fleet_file,
)
from tests.waiting import wait_until


@pytest.fixture
def config(regions: LocalFleet, tmp_path: Path) -> Path:
    """A fleet file with its own lake."""
    return write_fleet_file(regions, tmp_path)


def test_a_group_continues_in_the_other_aggregate_without_loss(regions: LocalFleet, config: Path) -> None:
    create_replicated_topic(regions, "continued")
    read = consume(regions, "north-all", "readers-1", "continued", count=100)
    planned = wait_for_verdict(config, "readers-1", "continued", "write")
    dry = run_recover(config, "sync", "--group", "readers-1", "--json")
    assert (dry.exit_code, read_committed_offset(regions, "south-all", "readers-1", "continued")) == (0, None)
    result = run_recover(config, "sync", "--group", "readers-1", "--execute", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)[0]["written"]
    resume = find_partition(result, "readers-1", "continued")["resume"]
    assert (
        read_committed_offset(regions, "south-all", "readers-1", "continued") == resume >= planned["resume"]
    )
    rest = consume(regions, "south-all", "readers-1", "continued")
    all_records = {f"{region} {number}" for region in ("north", "south") for number in range(60)}
    assert {*read, *rest} == all_records
    replayed = (
        rest.index(next(value for value in rest if value not in read)) if {*rest} - {*read} else len(rest)
    )
    assert replayed <= find_partition(result, "readers-1", "continued")["early_at_most"]


def test_the_offsets_of_a_group_with_members_are_not_written(regions: LocalFleet, config: Path) -> None:
    create_replicated_topic(regions, "connected")
    consume(regions, "north-all", "readers-2", "connected", count=100)
    wait_for_verdict(config, "readers-2", "connected", "write")
    reader = Consumer(
        {**client_settings(regions, "south-all"), "group.id": "readers-2", "enable.auto.commit": False}
    )
    reader.subscribe(["connected"])
    try:
        wait_until(lambda: bool(reader.poll(0.2)) or bool(reader.assignment()), DEADLINE_S, "a member")
        result = run_recover(config, "sync", "--group", "readers-2", "--execute", "--json")
        assert result.exit_code == 1
        assert find_partition(result, "readers-2", "connected")["verdict"] == "connected"
        assert read_committed_offset(regions, "south-all", "readers-2", "connected") is None
    finally:
        reader.close()


def test_a_topic_that_no_mirror_replicates_is_unknown(regions: LocalFleet, config: Path) -> None:
    create_topic(regions, "only-here", "north-all")
    produce(regions, "north-all", "only-here", ["one", "two"])
    consume(regions, "north-all", "readers-3", "only-here")
    result = run_recover(config, "sync", "--group", "readers-3", "--execute", "--json")
    assert (result.exit_code, find_partition(result, "readers-3", "only-here")["verdict"]) == (
        1,
        "unknown_topic",
    )


def test_a_recreated_topic_is_reported_and_no_offset_is_written(regions: LocalFleet, config: Path) -> None:
    create_replicated_topic(regions, "recreated")
    consume(regions, "north-all", "readers-4", "recreated", count=100)
    with running_controller(config):
        wait_for_verdict(config, "readers-4", "recreated", "write")
        wait_until(
            lambda: any(
                record.route.topic == "recreated"
                for record in CheckpointStore(read_lake_path(config)).read().records
            ),
            DEADLINE_S,
            "checkpoints in the lake",
        )
    topic_offsets = TopicOffsets(load_fleet(config).cluster("south-all").access, "tests")
    topic_offsets.start()
    before = topic_offsets.describe_topics(["recreated"])["recreated"]
    topic_admin = create_admin_client(regions, "south-all")
    topic_admin.delete_topics(["recreated"])["recreated"].result(DEADLINE_S)

    def is_recreated() -> bool:
        """Create the topic, unless the mirror has recreated it at its own next refresh."""
        topic_admin = create_admin_client(regions, "south-all")
        with suppress(KafkaException):
            topic_admin.create_topics([NewTopic("recreated", 1, 1)])["recreated"].result(DEADLINE_S)
        after = topic_offsets.describe_topics(["recreated"]).get("recreated")
        return after is not None and after.topic_id != before.topic_id

    wait_until(is_recreated, DEADLINE_S, "the recreated topic")
    partition = wait_for_verdict(config, "readers-4", "recreated", "made_anew")
    assert partition["resume"] is None
    assert run_recover(config, "sync", "--group", "readers-4", "--execute", "--json").exit_code == 1
    assert read_committed_offset(regions, "south-all", "readers-4", "recreated") is None


def read_lake_path(config: Path) -> str:
    return str(yaml.safe_load(config.read_text())["lake"])


def test_a_possible_loss_is_reported_and_no_offset_is_written(regions: LocalFleet, config: Path) -> None:
    create_replicated_topic(regions, "shortened")
    consume(regions, "north-all", "readers-5", "shortened", count=100)
    wait_for_verdict(config, "readers-5", "shortened", "write")
    topic_admin = create_admin_client(regions, "south-all")
    # The group has 20 of 120 records left, so its next record is at offset 100 or before.
    delete_before = TopicPartition("shortened", 0, 110)
    next(iter(topic_admin.delete_records([delete_before]).values())).result(DEADLINE_S)
    result = run_recover(config, "sync", "--group", "readers-5", "--execute", "--json")
    assert (result.exit_code, find_partition(result, "readers-5", "shortened")["verdict"]) == (
        1,
        "possible_loss",
    )
    assert read_committed_offset(regions, "south-all", "readers-5", "shortened") is None


def test_a_hung_mirror_is_stale_and_no_offset_is_written(regions: LocalFleet, tmp_path: Path) -> None:
    config = write_fleet_file(regions, tmp_path, stale_s=5)
    create_replicated_topic(regions, "stalled")
    consume(regions, "north-all", "readers-6", "stalled", count=100)
    with running_controller(config):
        wait_for_verdict(config, "readers-6", "stalled", "write")
        regions.fault_mirror("hang", "south-all")
        try:
            produce(regions, "north", "stalled", ["while south-all hangs"])
            partition = wait_for_verdict(config, "readers-6", "stalled", "stale")
            assert partition["silent_s"] > 5
            assert run_recover(config, "sync", "--group", "readers-6", "--execute", "--json").exit_code == 1
            assert read_committed_offset(regions, "south-all", "readers-6", "stalled") is None
        finally:
            regions.fault_mirror("heal", "south-all")
    regions.wait_ready()


def test_a_group_that_is_reset_to_an_earlier_offset_is_reset_in_the_other_aggregate_too(
    regions: LocalFleet, config: Path
) -> None:
    create_replicated_topic(regions, "reset")
    consume(regions, "north-all", "readers-7", "reset", count=110)
    wait_for_verdict(config, "readers-7", "reset", "write")

    offsets: list[int] = []

    def is_settled() -> bool:
        """Synchronise the group, and return whether its offset in the other aggregate is that of before."""
        assert run_recover(config, "sync", "--group", "readers-7", "--execute").exit_code == 0
        offsets.append(read_committed_offset(regions, "south-all", "readers-7", "reset"))
        return offsets[-2:-1] == offsets[-1:]

    # The mirrors publish their offset syncs bit by bit: until they have, an offset is earlier than need be.
    wait_until(is_settled, DEADLINE_S, "two equal offsets in a row")
    assert offsets == sorted(offsets)
    active_consumer = Consumer(
        {**client_settings(regions, "north-all"), "group.id": "readers-7", "enable.auto.commit": False}
    )
    active_consumer.commit(offsets=[TopicPartition("reset", 0, 100)], asynchronous=False)
    active_consumer.close()
    assert plan_partition(config, "readers-7", "reset")["verdict"] == "write"
    passive_consumer = Consumer(
        {**client_settings(regions, "south-all"), "group.id": "readers-7", "enable.auto.commit": False}
    )
    passive_consumer.commit(offsets=[TopicPartition("reset", 0, 120)], asynchronous=False)
    passive_consumer.close()
    assert plan_partition(config, "readers-7", "reset")["verdict"] == "backwards"


def test_a_killed_collector_stores_every_row_exactly_once(regions: LocalFleet, config: Path) -> None:
    create_replicated_topic(regions, "kept")

    def read_syncs() -> list[tuple[object, ...]]:
        rows = DeltaTable(f"{read_lake_path(config)}/recovery/checkpoints").to_pyarrow_table().to_pylist()
        return [
            (row["source"], row["destination"], row["src_offset"], row["dst_offset"])
            for row in rows
            if row["topic"] == "kept" and row["origin"] == "sync"
        ]

    table = Path(read_lake_path(config), "recovery/checkpoints/_delta_log")
    with running_controller(config) as process:
        wait_until(lambda: table.exists() and bool(read_syncs()), DEADLINE_S, "syncs in the lake")
        os.kill(process.pid, signal.SIGKILL)
        process.wait(DEADLINE_S)
    before = read_syncs()
    for region in ("north", "south"):
        produce(regions, region, "kept", [f"{region} more {number}" for number in range(60)])
    for aggregate in ("north-all", "south-all"):
        wait_for_records(regions, aggregate, "kept", 240)
    with running_controller(config):
        wait_until(lambda: len(read_syncs()) > len(before), DEADLINE_S, "new syncs in the lake")
    after = read_syncs()
    assert len(after) == len(set(after))
    assert set(before) < set(after)


@pytest.mark.parametrize("idle", [pytest.param(None, marks=pytest.mark.thorough), "south"])
def test_a_group_fails_over_from_a_dead_aggregate_and_back(
    regions: LocalFleet, tmp_path: Path, idle: str | None
) -> None:
    topic, group = f"died-{idle}", f"readers-died-{idle}"
    failover_groups = {"groups": group, "active": "north-all", "passive": "south-all"}
    failback_groups = {"groups": group, "active": "south-all", "passive": "north-all"}
    config = write_fleet_file(regions, tmp_path, [failover_groups])
    create_replicated_topic(regions, topic)
    sources = [region for region in ("north", "south") if region != idle]
    sent = {f"{region} {number}" for region in ("north", "south") for number in range(60)}
    with running_controller(config, "--execute"):
        read = consume(regions, "north-all", group, topic)
        producers = {region: create_producer(regions, region) for region in sources}
        for number in range(200):
            region = sources[number % len(sources)]
            # A batch of its own, which the mirror may end at.
            producers[region].produce(topic, f"{region} later {number}".encode(), partition=0)
            assert producers[region].flush(DEADLINE_S) == 0
            sent.add(f"{region} later {number}")
        read += consume(regions, "north-all", group, topic)
        forecast = wait_for_verdict(config, group, topic, "unchanged")
        regions.fault("kill", "north-all", 1)
        killed_s = time.monotonic()
        plan = run_recover(config, "plan", "--group", group)
        assert (plan.exit_code, "cannot be read: north-all to south-all" in plan.output) == (1, True), (
            plan.output
        )
        wait_for_records(regions, "south-all", topic, len(sent))
        rest = consume(regions, "south-all", group, topic)
        assert time.monotonic() - killed_s < DEADLINE_S
    assert {*read, *rest} == sent
    replayed = [value for value in rest if value in read]
    assert len(replayed) <= read_end_offset(regions, "south-all", topic) - forecast["resume"]
    regions.fault("heal", "north-all", 1)
    regions.wait_ready()
    wait_for_records(regions, "north-all", topic, len(sent))
    config = write_fleet_file(regions, tmp_path, [failback_groups])
    wait_for_verdict(config, group, topic, "write", "unchanged")
    produce(regions, sources[0], topic, ["after all"])
    for aggregate in ("north-all", "south-all"):
        wait_for_records(regions, aggregate, topic, len(sent) + 1)
    wait_until(
        lambda: run_recover(config, "sync", "--group", group, "--execute").exit_code == 0,
        DEADLINE_S,
        "the offsets to be written",
    )
    assert {*rest, *consume(regions, "north-all", group, topic)} >= {"after all"}
    # No record was replicated in a loop: the aggregate holds each record once.
    assert read_end_offset(regions, "south-all", topic) == len(sent) + 1


def test_a_drill_forecasts_a_failover_executes_it_and_stores_the_result(
    regions: LocalFleet, tmp_path: Path
) -> None:
    config = write_fleet_file(regions, tmp_path)
    create_replicated_topic(regions, "drilled")
    consume(regions, "north-all", "readers-8", "drilled", count=100)
    wait_for_verdict(config, "readers-8", "drilled", "write")
    command = ("drill", "--from", "north-all", "--to", "south-all", "--group", "readers-8")

    dry_run = run_recover(config, *command, "--json")
    assert dry_run.exit_code == 0, dry_run.output
    forecast = json.loads(dry_run.stdout)
    assert forecast["verdict"] == "READY"
    assert read_committed_offset(regions, "south-all", "readers-8", "drilled") is None

    result = run_recover(config, *command, "--execute", "--json")
    assert result.exit_code == 0, result.output
    (group,) = json.loads(result.stdout)["groups"]
    resume = group["partitions"][0]["resume"]
    assert read_committed_offset(regions, "south-all", "readers-8", "drilled") == resume
    assert group["missing"] == 0
    # Both sides hold the same 120 records, 20 of them not consumed.
    assert group["replayed"] == group["replay_forecast"] == 120 - resume - 20
    assert group["replayed"] <= group["replay_at_most"]
    assert group["first_record_ms"] > 0

    rows = DeltaTable(f"{read_lake_path(config)}/recovery/drills").to_pyarrow_table().to_pylist()
    assert sorted((row["group_id"], row["executed"], row["ready"]) for row in rows) == [
        ("readers-8", False, True),
        ("readers-8", True, True),
    ]


def test_a_drill_of_a_group_that_is_not_ready_reports_the_reasons_and_writes_nothing(
    regions: LocalFleet, config: Path
) -> None:
    create_topic(regions, "not-ready", "north-all")
    produce(regions, "north-all", "not-ready", ["one"])
    consume(regions, "north-all", "readers-9", "not-ready")
    command = ("drill", "--from", "north-all", "--to", "south-all", "--execute", "--json")
    result = run_recover(config, *command, "--group", "readers-9", "--group", "nobody")
    assert result.exit_code == 1
    drill = json.loads(result.stdout)
    assert drill["verdict"] == "NOT_READY"
    assert [(group["group_id"], group["executed"], group["reasons"]) for group in drill["groups"]] == [
        ("readers-9", False, "unknown_topic"),
        ("nobody", False, "nothing_committed"),
    ]


def test_a_failback_inspection_reports_records_that_were_not_replicated_and_new_ones(
    regions: LocalFleet, tmp_path: Path
) -> None:
    config = write_fleet_file(regions, tmp_path)
    create_replicated_topic(regions, "stranded")
    command = ("failback", "--primary", "north", "--secondary", "south-all", "--json")

    def inspect_topic(*more: str) -> tuple[int, dict[str, Any]]:
        result = run_recover(config, *command, *more)
        assert result.exit_code in (0, 1), result.output
        partitions = json.loads(result.stdout)["partitions"]
        return result.exit_code, next(
            partition for partition in partitions if partition["topic"] == "stranded"
        )

    began = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    regions.fault_mirror("hang", "south-all")
    try:
        produce(regions, "north", "stranded", [f"stranded {number}" for number in range(50)])
        code, partition = inspect_topic("--since", began)
        assert code == 1
        assert (partition["stranded"]["count"], partition["stranded"]["offsets"]) == (50, [60, 61, 62])
        assert partition["stranded"]["bytes"] == sum(len(f"stranded {number}") for number in range(50))
        assert partition["at_risk"][1] == 110
    finally:
        regions.fault_mirror("heal", "south-all")
    regions.wait_ready()
    wait_for_records(regions, "south-all", "stranded", 170)
    _, partition = inspect_topic("--since", began)
    assert partition["stranded"]["count"] == 0
    assert partition["new"] == [120, 170]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("--from", "north-all", "--to", "south-all", "--execute"), "name them with --group"),
        (("--from", "south", "--to", "north"), "recovery.groups has no entry from south to north"),
    ],
)
def test_an_invalid_drill_is_reported_in_one_line(config: Path, arguments: Sequence[str], line: str) -> None:
    result = run_recover(config, "drill", *arguments)
    assert result.exit_code == 2
    assert line in result.stderr


def test_readiness_is_stored_every_minute_and_lasting_findings_are_notified(
    regions: LocalFleet, tmp_path: Path
) -> None:
    create_replicated_topic(regions, "ready-topic")
    consume(regions, "north-all", "readers-ready", "ready-topic", count=100)
    with Receiver().listening() as hook:
        config = write_fleet_file(regions, tmp_path)
        document = yaml.safe_load(config.read_text())
        document["recovery"]["tracers"] = {"every_s": 1, "vantage": "here"}
        document["recovery"]["objectives"] = {"rpo_s": 20}
        document["notifiers"] = [{"kind": "webhook", "url": hook.url}]
        config.write_text(yaml.safe_dump(document))

        def rows(table: Table) -> list[dict[str, Any]]:
            log = Path(read_lake_path(config), table.path, "_delta_log")
            return DeltaTable(str(log.parent)).to_pyarrow_table().to_pylist() if log.exists() else []

        def notifications(status: str) -> list[Any]:
            return [
                body for body in hook.bodies if (body["kind"], body["status"]) == ("MIRROR_BEHIND", status)
            ]

        with running_controller(config, "--execute"):
            wait_until(lambda: bool(rows(MIRROR_MINUTES)), 3 * DEADLINE_S, "a minute's row")
            regions.fault_mirror("hang", "south-all")
            try:
                wait_until(
                    lambda: len(notifications("firing")) >= 2, 3 * DEADLINE_S, "both routes into south-all"
                )
            finally:
                regions.fault_mirror("heal", "south-all")
            wait_until(lambda: len(notifications("resolved")) >= 2, 3 * DEADLINE_S, "the resolutions")
    # Each route's first minute, before the mirror hung.
    newest_first = sorted(rows(MIRROR_MINUTES), key=lambda row: row["minute"], reverse=True)
    first_minutes = {(row["source"], row["destination"]): row for row in newest_first}
    assert set(first_minutes) == {
        (region, aggregate) for region in ("north", "south") for aggregate in ("north-all", "south-all")
    }
    assert all(row["tracers"] > 5 and row["looped"] == 0 for row in first_minutes.values())
    group_rows = [row for row in rows(GROUP_MINUTES) if row["group_id"] == "readers-ready"]
    first = min(group_rows, key=lambda row: row["minute"])
    assert (first["reasons"], first["ready"], first["unbounded"], first["lost_at_most"]) == ("", True, 0, 0)
    acks = {row["cluster_id"]: row for row in rows(PRODUCER_MINUTES)}
    assert set(acks) == {"north", "south"}
    assert all(row["vantage"] == "here" and row["acknowledged"] > 5 for row in acks.values())
    assert {(body["cluster"], body["severity"]) for body in notifications("firing")} == {
        ("north", "page"),
        ("south", "page"),
    }
    records = CheckpointStore(read_lake_path(config)).read().records
    assert any(record.checkpoint.origin is CheckpointOrigin.TRACER for record in records)


def test_a_tracer_that_returns_to_its_source_is_reported_as_a_loop(
    regions: LocalFleet, tmp_path: Path
) -> None:
    """A replication loop would write the same headers again to the topic where the tracer began."""
    fleet = load_fleet(write_fleet_file(regions, tmp_path))
    tracers = Tracers(every_s=1, topic="fleetgauge.tracers")
    tracing = TracerLoop(fleet, tracers, "circle", lambda: time.time_ns() // 1_000_000)
    loops: dict[str, int] = {"north": 0, "south": 0}

    def count_loops() -> dict[str, int]:
        for route, delay in tracing.take_report().delays.items():
            if route.destination == "north-all":
                loops[route.source] += delay.looped
        return loops

    tracing.start()
    try:
        wait_until(
            lambda: bool(tracing.take_report().delays[MirrorRoute("north", "north-all")].delays_ms),
            DEADLINE_S,
            "a tracer",
        )
        producer = TracerProducer(fleet.cluster("north").access, tracers.topic, "circle")
        producer.start()
        reports: list[DeliveryReport] = []
        tracer = Tracer("north", tracers.topic, 0, "another", 1, 0)
        for _ in range(2):
            producer.send(tracer.headers, reports.append)
        wait_until(lambda: producer.poll(0.1) is None and len(reports) == 2, DEADLINE_S, "both deliveries")
        wait_until(lambda: count_loops() == {"north": 1, "south": 0}, DEADLINE_S, "the loop to be detected")
        producer.stop()
    finally:
        tracing.stop()


def test_tracers_go_on_after_their_topic_was_deleted_at_its_source_and_at_its_destination(
    regions: LocalFleet, tmp_path: Path
) -> None:
    fleet = load_fleet(write_fleet_file(regions, tmp_path))
    tracers = Tracers(every_s=1, topic="fleetgauge.tracers")
    changes: set[tuple[str, TopicChangeKind]] = set()
    tracing = TracerLoop(
        fleet,
        tracers,
        "deleted",
        lambda: time.time_ns() // 1_000_000,
        lambda cluster, _, change: changes.add((cluster, change.kind)),
    )

    def wait_for_tracers() -> None:
        awaited = {MirrorRoute("north", f"{region}-all") for region in ("north", "south")}
        tracing.take_report()

        def is_replicated() -> bool:
            # A report covers the time since the one before it, in which one of the mirrors alone may deliver.
            delays = tracing.take_report().delays
            awaited.difference_update(route for route, delay in delays.items() if delay.delays_ms)
            return not awaited

        wait_until(is_replicated, DEADLINE_S, "tracers")

    tracing.start()
    try:
        wait_for_tracers()
        for cluster in ("north", "north-all"):
            client = create_admin_client(regions, cluster)
            client.delete_topics([tracers.topic])[tracers.topic].result()
            wait_until(
                lambda recreated=(cluster, TopicChangeKind.RECREATED): recreated in changes,
                DEADLINE_S,
                "the new topic",
            )
            wait_for_tracers()
    finally:
        tracing.stop()


def test_tracers_replicated_before_their_reader_started_do_not_count_as_late(
    regions: LocalFleet, tmp_path: Path
) -> None:
    """The destination is down when tracing starts, and its mirror recovers before its reader."""
    fleet = load_fleet(write_fleet_file(regions, tmp_path))
    tracers = Tracers(every_s=1, topic="fleetgauge.tracers")
    tracing = TracerLoop(fleet, tracers, "unseen", lambda: time.time_ns() // 1_000_000)

    def late_s() -> float:
        return tracing.take_report().delays[MirrorRoute("north", "south-all")].late_s or 0.0

    regions.fault("hang", "south-all", 1)
    tracing.start()
    try:
        # By then the reader has failed once, and waits before its next attempt.
        wait_until(lambda: late_s() > 11, DEADLINE_S, "a mirror that is late")
        regions.fault("heal", "south-all", 1)
        wait_until(lambda: late_s() < 5, 3 * DEADLINE_S, "a mirror that has caught up")
    finally:
        regions.fault("heal", "south-all", 1)
        tracing.stop()
    regions.wait_ready()
