"""Ingested snapshots of simulated mirrors, and the decisions based on them."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from fleetgauge_core.fleet import FailoverGroups, Mirror, Recovery
from fleetgauge_operations.recovery.offsets.checkpoint import (
    Checkpoint,
    CheckpointOrigin,
    LogRange,
    PartitionRoute,
    TopicIds,
)
from fleetgauge_operations.recovery.offsets.mirror_maker import OffsetSync
from fleetgauge_operations.recovery.offsets.mirror_state import CheckpointRecord, ReplicationState
from fleetgauge_operations.recovery.offsets.sync_ingest import (
    LogEnds,
    MirrorSnapshot,
    ObservedSync,
    ingest_snapshot,
)
from fleetgauge_operations.recovery.plan.sync_decision import (
    ClusterPair,
    CommittedPosition,
    PassivePartition,
    SyncDecision,
    SyncVerdict,
    decide_sync,
    passive_topic,
)

SOURCES = ("north", "south")
AGGREGATES = ("north-all", "south-all")
PAIR = ClusterPair(*AGGREGATES)
RECOVERY = Recovery(
    mirrors=tuple(
        Mirror(source=source, destination=destination, names="kept")
        for destination in AGGREGATES
        for source in SOURCES
    ),
    groups=(FailoverGroups(groups=".*", active="north-all", passive="south-all"),),
)
IDS = TopicIds("s", "d")


@dataclass
class SimulatedMirror:
    """Replicates a source's records in order, with an offset sync every ``sync_every`` records."""

    source: list[str]
    log: list[str]
    sync_every: int
    next: int = 0
    syncs: list[OffsetSync] = field(default_factory=list)
    restarted: bool = False

    def copy(self) -> None:
        if self.next < len(self.source):
            if self.next % self.sync_every == 0:
                self.syncs.append(OffsetSync("orders", 0, self.next, len(self.log)))
            self.log.append(self.source[self.next])
            self.next += 1

    def restart(self, back: int) -> None:
        """Restart at an older offset, as if killed before a commit, with a sync of the first record."""
        self.restarted = True
        self.next = max(0, self.next - back)
        if self.next < len(self.source):
            self.syncs.append(OffsetSync("orders", 0, self.next, len(self.log)))
            self.log.append(self.source[self.next])
            self.next += 1


class SimulatedReplication:
    """Two sources with one topic, merged into two aggregates in two orders."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.sources: dict[str, list[str]] = {name: [] for name in SOURCES}
        self.logs: dict[str, list[str]] = {name: [] for name in AGGREGATES}
        self.mirrors = {
            (source, destination): SimulatedMirror(
                self.sources[source], self.logs[destination], self.random.choice((1, 3, 10))
            )
            for source in SOURCES
            for destination in AGGREGATES
        }
        self.idle = self.random.choice((*SOURCES, None))
        self.restarts = self.random.random() < 0.5

    @property
    def has_recopies(self) -> bool:
        """Whether records may be duplicated without any sync that shows it, so that no bound holds."""
        return any(mirror.restarted for mirror in self.mirrors.values())

    def advance(self, most: int) -> None:
        for _ in range(self.random.randrange(most)):
            mirror = self.random.choice(list(self.mirrors.values()))
            match self.random.random():
                case chance if chance < 0.4:
                    source = self.random.choice(SOURCES)
                    if source != self.idle or len(self.sources[source]) < 3:
                        self.sources[source].append(f"{source} {len(self.sources[source])}")
                case chance if chance < 0.98 or not self.restarts:
                    mirror.copy()
                case _:
                    mirror.restart(self.random.randrange(8))

    def take_snapshot(self, source: str, destination: str, at_ms: int) -> MirrorSnapshot:
        """Take a snapshot while replication continues."""
        mirror = self.mirrors[source, destination]
        syncs, mirror.syncs = tuple(ObservedSync(sync, at_ms) for sync in mirror.syncs), []
        self.advance(4)
        end = len(mirror.log)
        self.advance(4)
        ends = {("orders", 0): LogEnds(end, len(mirror.source))}
        return MirrorSnapshot(source, destination, syncs, {"orders": IDS}, ends, at_ms)


def build_passive_partition(
    replication: SimulatedReplication, has_members: bool = False, **committed: int | None
) -> PassivePartition:
    return PassivePartition(
        "orders", 0, LogRange(0, len(replication.logs["south-all"])), has_members, **committed
    )


def decide(
    replication: SimulatedReplication, state: ReplicationState, committed: int, now_ms: int
) -> SyncDecision:
    position = CommittedPosition("orders", 0, committed, len(replication.logs["north-all"]))
    return decide_sync(position, build_passive_partition(replication), PAIR, RECOVERY, state, now_ms)


def observe_replication(seed: int) -> tuple[SimulatedReplication, ReplicationState, list[CheckpointRecord]]:
    replication, state = SimulatedReplication(seed), ReplicationState()
    records: list[CheckpointRecord] = []
    for number in range(replication.random.randrange(1, 12)):
        replication.advance(60)
        for source, destination in replication.random.sample(list(replication.mirrors), 4):
            records += ingest_snapshot(state, replication.take_snapshot(source, destination, number * 1000))
    replication.advance(30)
    return replication, state, records


def last_safe_offset(replication: SimulatedReplication, committed: int) -> int:
    """Return the highest offset at which a group can resume without skipping a record.

    A duplicated record may be read twice. A record that a restarted mirror is about to replicate again will
    still come: that its first copy is skipped cannot be detected (see offset_sync_store).
    """
    log = replication.logs["south-all"]
    consumed = set(replication.logs["north-all"][:committed])
    upcoming = {
        record
        for source in SOURCES
        for record in replication.sources[source][replication.mirrors[source, "south-all"].next :]
    }
    last = {record: at for at, record in enumerate(log)}
    left = (at for record, at in last.items() if record not in consumed and record not in upcoming)
    return min(left, default=len(log))


@pytest.mark.parametrize("seeds", [range(first, first + 250) for first in range(0, 1_000, 250)])
def test_no_unconsumed_record_is_skipped(seeds: range) -> None:
    answered = exact = bounded = 0
    for seed in seeds:
        replication, state, _ = observe_replication(seed)
        for committed in range(len(replication.logs["north-all"]) + 1):
            decision = decide(replication, state, committed, now_ms=0)
            if decision.resume is not None:
                last = last_safe_offset(replication, committed)
                assert decision.resume <= last, (seed, committed, decision)
                if decision.early_at_most is not None and not replication.has_recopies:
                    assert last - decision.resume <= decision.early_at_most
                    bounded += 1
                answered += 1
                exact += decision.resume == last
    assert answered > 1_000
    assert exact > answered / 20
    assert bounded > answered / 20


def test_a_state_restored_from_stored_checkpoints_gives_the_same_decisions() -> None:
    for seed in range(50):
        replication, state, records = observe_replication(seed)
        restored_state = ReplicationState(records)
        for mirror in replication.mirrors:
            restored_state.mark_inspected(*mirror, at_ms=0)
        for committed in range(0, len(replication.logs["north-all"]) + 1, 7):
            first, second = (
                decide(replication, each_state, committed, 0) for each_state in (state, restored_state)
            )
            assert (first.resume, first.rule) == (second.resume, second.rule)


def build_route(source: str, destination: str) -> PartitionRoute:
    return PartitionRoute(source, destination, "orders", 0)


def build_checkpoints(
    at_ms: int = 0, ids: TopicIds = IDS
) -> Iterator[tuple[PartitionRoute, TopicIds, Checkpoint]]:
    for destination in AGGREGATES:
        for number, source in enumerate(SOURCES):
            yield build_route(source, destination), ids, Checkpoint(0, 10 * number, at_ms)
            yield build_route(source, destination), ids, Checkpoint(9, 10 * number + 9, at_ms)
            yield (
                build_route(source, destination),
                ids,
                Checkpoint(10, 20, at_ms, CheckpointOrigin.IDLE_WATERMARK),
            )


def build_full_state(at_ms: int = 0) -> ReplicationState:
    state = ReplicationState()
    for destination in AGGREGATES:
        for source in SOURCES:
            state.mark_inspected(source, destination, at_ms)
    for partition_route, ids, checkpoint in build_checkpoints(at_ms):
        state.apply_checkpoint(partition_route, ids, checkpoint)
    return state


LOG = LogRange(0, 20)


def decide_verdict(
    state: ReplicationState,
    passive_partition: PassivePartition | None = None,
    committed: int = 20,
    now_ms: int = 1_000,
    topic: str = "orders",
) -> SyncVerdict:
    passive_partition = passive_partition or PassivePartition("orders", 0, LOG, has_members=False)
    return decide_sync(
        CommittedPosition(topic, 0, committed, 20), passive_partition, PAIR, RECOVERY, state, now_ms
    ).verdict


def test_a_translated_offset_is_written_once() -> None:
    assert decide_verdict(build_full_state()) is SyncVerdict.WRITE
    assert (
        decide_verdict(build_full_state(), PassivePartition("orders", 0, LOG, False, 20))
        is SyncVerdict.UNCHANGED
    )


def test_nothing_is_written_for_a_group_with_members() -> None:
    assert (
        decide_verdict(build_full_state(), PassivePartition("orders", 0, LOG, True))
        is SyncVerdict.GROUP_HAS_MEMBERS
    )


def test_a_topic_without_a_replica_is_unknown() -> None:
    assert (
        decide_verdict(build_full_state(), PassivePartition("orders", 0, None, False))
        is SyncVerdict.UNKNOWN_TOPIC
    )
    assert (
        decide_verdict(build_full_state(), PassivePartition("other", 0, LogRange(0, 5), False), topic="other")
        is SyncVerdict.UNKNOWN_TOPIC
    )


def test_a_mirror_without_progress_is_stale() -> None:
    assert decide_verdict(build_full_state(), now_ms=120_000) is SyncVerdict.WRITE
    assert decide_verdict(build_full_state(), now_ms=120_001) is SyncVerdict.STALE


def test_a_fence_is_not_progress() -> None:
    state = build_full_state()
    state.apply_checkpoint(
        build_route("north", "south-all"), IDS, Checkpoint(30, 20, 120_000, CheckpointOrigin.FENCE)
    )
    assert decide_verdict(state, now_ms=120_001) is SyncVerdict.STALE


def test_a_recreated_topic_differs_from_an_unbounded_one() -> None:
    assert decide_verdict(ReplicationState()) is SyncVerdict.UNBOUNDED
    state = build_full_state()
    state.apply_checkpoint(
        build_route("north", "south-all"),
        TopicIds("s", "other"),
        Checkpoint(40, 0, 0, CheckpointOrigin.FENCE),
    )
    assert decide_verdict(state) is SyncVerdict.TOPIC_RECREATED


def test_possible_loss_is_a_verdict() -> None:
    short = PassivePartition("orders", 0, LogRange(17, 20), False)
    assert decide_verdict(build_full_state(), short, committed=15) is SyncVerdict.POSSIBLE_LOSS


def test_an_offset_moves_backwards_only_after_a_reset() -> None:
    state = build_full_state()
    ahead = PassivePartition("orders", 0, LOG, False, committed=20)
    assert decide_verdict(state, ahead, committed=15) is SyncVerdict.BACKWARDS
    ours = PassivePartition("orders", 0, LOG, False, committed=20, synced_position=20)
    assert decide_verdict(state, ours, committed=15) is SyncVerdict.WRITE
    assert (
        decide_verdict(state, PassivePartition("orders", 0, LOG, False, 20, synced_position=3), committed=15)
        is SyncVerdict.BACKWARDS
    )


def test_a_source_counts_as_absent_only_if_inspected_recently() -> None:
    state = ReplicationState()
    for partition_route, ids, checkpoint in build_checkpoints():
        if partition_route.source == "north":
            state.apply_checkpoint(partition_route, ids, checkpoint)
    assert decide_verdict(state) is SyncVerdict.UNBOUNDED
    for destination in AGGREGATES:
        state.mark_inspected("south", destination, at_ms=1_000)
    assert decide_verdict(state) is SyncVerdict.WRITE
    state.mark_progress(build_route("north", "north-all"), 130_000)
    state.mark_progress(build_route("north", "south-all"), 130_000)
    assert decide_verdict(state, now_ms=121_000) is SyncVerdict.WRITE
    assert decide_verdict(state, now_ms=121_001) is SyncVerdict.UNBOUNDED


def build_sync(upstream: int, downstream: int, at_ms: int = 0) -> ObservedSync:
    return ObservedSync(OffsetSync("orders", 0, upstream, downstream), at_ms)


def build_snapshot(
    *syncs: ObservedSync, ends: LogEnds, ids: TopicIds = IDS, at_ms: int = 0
) -> MirrorSnapshot:
    return MirrorSnapshot("north", "north-all", syncs, {"orders": ids}, {("orders", 0): ends}, at_ms)


def ingest_origins(state: ReplicationState, snapshot: MirrorSnapshot) -> list[CheckpointOrigin]:
    return [record.checkpoint.origin for record in ingest_snapshot(state, snapshot)]


def test_a_sync_beyond_the_log_end_is_ignored() -> None:
    assert ingest_origins(ReplicationState(), build_snapshot(build_sync(7, 7), ends=LogEnds(5, 5))) == [
        CheckpointOrigin.FENCE
    ]


def test_syncs_of_a_recreated_topic_are_ignored_during_the_sync_delay() -> None:
    state, other = ReplicationState(), TopicIds("s", "other")
    ingest_snapshot(state, build_snapshot(build_sync(4, 4), ends=LogEnds(9, 9)))
    assert ingest_origins(state, build_snapshot(build_sync(8, 8), ends=LogEnds(9, 9), ids=other)) == [
        CheckpointOrigin.FENCE
    ]
    late = build_snapshot(build_sync(8, 8, at_ms=59_999), ends=LogEnds(9, 9), ids=other, at_ms=59_999)
    assert ingest_origins(state, late) == []
    own = build_snapshot(build_sync(8, 8, at_ms=60_000), ends=LogEnds(9, 9), ids=other, at_ms=60_000)
    assert ingest_origins(state, own) == [CheckpointOrigin.SYNC, CheckpointOrigin.IDLE_WATERMARK]


def test_syncs_before_a_rewind_are_ignored_in_the_first_snapshot() -> None:
    old_and_new = (build_sync(0, 0), build_sync(99, 99), build_sync(0, 100), build_sync(199, 299))
    state = ReplicationState()
    ingest_snapshot(state, build_snapshot(*old_and_new, ends=LogEnds(300, 200)))
    history = state.history(build_route("north", "north-all"))
    assert history is not None
    assert (history.count, history.has_recopies) == (2, False)


def test_records_of_a_recreated_topic_are_not_skipped() -> None:
    state = build_full_state()
    new = TopicIds("recreated", "d")
    for destination in AGGREGATES:
        state.apply_checkpoint(
            build_route("north", destination), new, Checkpoint(0, 20, 0, CheckpointOrigin.IDLE_WATERMARK)
        )
    assert decide_verdict(state, committed=15) is SyncVerdict.TOPIC_RECREATED


def test_watermarks_are_taken_at_intervals_and_when_a_mirror_catches_up() -> None:
    state = ReplicationState()
    assert ingest_origins(state, build_snapshot(ends=LogEnds(9, 9))) == [CheckpointOrigin.FENCE]
    later = build_snapshot(ends=LogEnds(10, 10), at_ms=5_000)
    assert ingest_snapshot(state, later, watermark_every_ms=10_000) == ()
    caught_up = build_snapshot(build_sync(10, 10), ends=LogEnds(11, 11), at_ms=6_000)
    new_records = ingest_snapshot(state, caught_up, watermark_every_ms=10_000)
    assert [record.checkpoint.origin for record in new_records] == [
        CheckpointOrigin.SYNC,
        CheckpointOrigin.IDLE_WATERMARK,
    ]
    idle = build_snapshot(ends=LogEnds(30, 11), at_ms=9_000)
    assert ingest_snapshot(state, idle, watermark_every_ms=10_000) == ()
    assert state.last_progress_ms(build_route("north", "north-all")) == 9_000


def test_a_replica_keeps_the_topic_name_or_is_prefixed_with_the_source_alias() -> None:
    kept = Mirror(source="a", destination="b", names="kept", topics="orders.*")
    prefixed = Mirror(source="a", destination="b", source_alias="primary")
    assert (kept.destination_topic("orders"), kept.source_topic("orders")) == ("orders", "orders")
    assert kept.source_topic("payments") is None
    assert (prefixed.destination_topic("orders"), prefixed.source_topic("primary.orders")) == (
        "primary.orders",
        "orders",
    )
    assert prefixed.source_topic("orders") is None
    recovery = Recovery(mirrors=(prefixed,))
    assert passive_topic(recovery, ClusterPair("a", "b"), "orders") == "primary.orders"
    assert passive_topic(RECOVERY, PAIR, "orders") == "orders"
    assert passive_topic(RECOVERY, PAIR, "__consumer_offsets") is None
