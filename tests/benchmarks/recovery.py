"""Measures the mapping of positions between regions: speed, and how much is read again.

The peers are MirrorMaker 2 and Uber's published rule.

`map`: a merged topic of two sources on two aggregates, a checkpoint every hundred records. `mirror_maker`:
one mirrored partition, with the syncs that MirrorMaker 2 sends by default (`offset.lag.max` 100), its own
store of them as the peer; once undisturbed and once with a mirror that restarts from an earlier offset.
`idle`: one of two sources falls silent. `collect`: offset syncs from MirrorMaker's records to a Delta table,
a commit per snapshot of four mirrors of a thousand partitions. `decide`: where groups of such topics resume.
"""

import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from random import Random
from statistics import mean

from fleetgauge_core.fleet import FailoverGroups, Mirror, Recovery
from fleetgauge_operations.recovery.checkpoint_store import CheckpointStore
from fleetgauge_operations.recovery.offsets.checkpoint import (
    Checkpoint,
    CheckpointOrigin,
    LogRange,
    PartitionRoute,
    TopicIds,
)
from fleetgauge_operations.recovery.offsets.mapping import map_position
from fleetgauge_operations.recovery.offsets.mapping_rule import MappingRule
from fleetgauge_operations.recovery.offsets.mirror_state import CheckpointRecord, ReplicationState
from fleetgauge_operations.recovery.offsets.offset_sync_store import OffsetHistory
from fleetgauge_operations.recovery.offsets.sync_ingest import ingest_snapshot
from fleetgauge_operations.recovery.offsets.translation import translate
from fleetgauge_operations.recovery.plan.sync_decision import (
    ClusterPair,
    CommittedPosition,
    PassivePartition,
    SyncVerdict,
    decide_sync,
)
from tests.benchmarks import _merging
from tests.benchmarks._measure import Figure, Options, measure_duration, read_peak_bytes
from tests.oracle.offset_sync_store import OffsetSyncStore

CHECKPOINTS, POSITIONS = 10_000_000, 100_000
#: Checkpoints of a source on one aggregate, and the records between two of them.
ROWS, EVERY = 1_000, 100
SOURCES = "AB"
GROUPS = 10_000
#: Records that a mirror copies a second time after its restart.
COPIED_TWICE = 5_000
#: Topics of ten partitions each, and the number of snapshots of their mirrors.
TOPICS, SNAPSHOTS = 100, 30
SYNCS_A_SECOND = 5_000
#: Groups that consume ten partitions each.
MOVED_GROUPS = 1_000
PAIR = ClusterPair(*_merging.AGGREGATES)
RECOVERY = Recovery(
    mirrors=tuple(
        Mirror(source=source, destination=destination, names="kept")
        for destination in _merging.AGGREGATES
        for source in _merging.SOURCES
    ),
    groups=(FailoverGroups(groups=".*", active=PAIR.active, passive=PAIR.passive),),
)
_MB = 1_000_000

Aggregate = list[dict[str, OffsetHistory]]
"""A list with the histories of each partition by source."""


def measure(options: Options) -> Iterator[Figure]:
    """Run all cases, or the selected ones."""
    cases: dict[str, Callable[[Options], Iterator[Figure]]] = {
        "map": _measure_mapping,
        "mirror_maker": _compare_mirror_maker,
        "idle": _compare_idle_source,
        "collect": _measure_collection,
        "decide": _measure_decisions,
    }
    for name, case in cases.items():
        if not options.only or name in options.only:
            yield from case(options)


def _measure_mapping(options: Options) -> Iterator[Figure]:
    partitions = max(1, options.scale_rows(CHECKPOINTS) // (2 * len(SOURCES) * ROWS))
    rows = partitions * 2 * len(SOURCES) * ROWS
    random = Random(1)
    sides: list[Aggregate] = []
    loading = measure_duration(
        lambda: sides.extend(_simulate_aggregate(partitions, random) for _ in range(2))
    )
    yield Figure(f"{rows:,} checkpoints loaded", loading.cpu_s, "s of CPU")
    end = 2 * ROWS * EVERY
    positions = [
        (random.randrange(partitions), random.randrange(end)) for _ in range(options.scale_rows(POSITIONS))
    ]
    active, passive = sides

    def work() -> None:
        for partition, position in positions:
            map_position(position, active[partition], passive[partition], LogRange(0, end))

    duration = measure_duration(work)
    yield Figure(f"{len(positions):,} positions mapped", duration.wall_s, "s", 30)
    yield Figure("positions mapped", duration.cpu_s, "s of CPU")
    yield Figure("maximum memory", round(read_peak_bytes(os.getpid()) / _MB), "MB", 4_000)


def _simulate_aggregate(partitions: int, random: Random) -> Aggregate:
    return [{source: _simulate_history(source, random) for source in SOURCES} for _ in range(partitions)]


def _simulate_history(source: str, random: Random) -> OffsetHistory:
    """Return a history in which about every other record of the topic is from this source."""
    history = OffsetHistory(PartitionRoute(source, "g", "t", 0), TopicIds(source, "g"))
    dst = 0
    for src in range(0, ROWS * EVERY, EVERY):
        history.append(Checkpoint(src, dst))
        dst += random.randrange(EVERY, 3 * EVERY)
    return history


def _compare_mirror_maker(options: Options) -> Iterator[Figure]:
    end = options.scale_rows(1_000_000)
    again = end * 9 // 10 // EVERY * EVERY
    yield from _compare_with_store("undisturbed", end, [(at, at) for at in range(0, end, EVERY)], second=end)
    first = [(at, at) for at in range(0, again, EVERY)]
    second = [(at, at + COPIED_TWICE) for at in range(again - COPIED_TWICE, end, EVERY)]
    yield from _compare_with_store("restarted", end, first + second, second=again - COPIED_TWICE)


def _compare_with_store(
    name: str, end: int, syncs: Sequence[tuple[int, int]], second: int
) -> Iterator[Figure]:
    """Compare for groups that lag by one to all records, each order of magnitude equally likely.

    Records from offset ``second`` on have two copies, and groups resume in the second copy.
    """
    store = OffsetSyncStore()
    history = OffsetHistory(PartitionRoute("A", "d", "t", 0), TopicIds("A", "d"))
    for sync in syncs:
        store.sync(*sync)
        history.append(Checkpoint(*sync))
    random, log = Random(1), LogRange(0, end + COPIED_TWICE)
    committed = [max(0, end - round(end ** random.random())) for _ in range(GROUPS)]
    ours = [translate(offset, history, log).resume or 0 for offset in committed]
    translated = [store.translate(offset) or 0 for offset in committed]
    # A group whose offset cannot be translated starts at the beginning (auto.offset.reset=earliest).
    peers = [max(0, offset) for offset in translated]
    exact = [offset + COPIED_TWICE * (offset >= second) for offset in committed]
    ours_again, peers_again = (mean(map(int.__sub__, exact, resumed)) for resumed in (ours, peers))
    less = sum(map(int.__gt__, peers, ours))
    yield Figure(f"{name}: groups of {GROUPS:,} that read less with MirrorMaker 2", less, "groups", 0)
    yield Figure(f"{name}: groups that MirrorMaker 2 cannot translate", translated.count(-1), "groups")
    yield Figure(f"{name}: read again, mean", round(ours_again, 1), "records")
    yield Figure(f"{name}: read again with MirrorMaker 2, mean", round(peers_again, 1), "records")
    yield Figure(f"{name}: Fleetgauge to MirrorMaker 2", round(ours_again / peers_again, 4), "times", 1)


def _compare_idle_source(options: Options) -> Iterator[Figure]:
    silent, count = 10, options.scale_rows(100_000)
    end = silent + count
    side = {}
    for source in SOURCES:
        side[source] = OffsetHistory(PartitionRoute(source, "g", "t", 0), TopicIds(source, "g"))
    for src in range(silent):
        side["A"].append(Checkpoint(src, src))
    for src in range(0, count, EVERY):
        side["B"].append(Checkpoint(src, silent + src))
    side["A"].append(Checkpoint(silent, end, 0, CheckpointOrigin.IDLE_WATERMARK))
    again = {rule: end - map_position(end, side, side, LogRange(0, end), rule).resume for rule in MappingRule}
    for rule, offsets in again.items():
        yield Figure(f"a silent source: read again by {rule}", offsets, "offsets")
    ratio = round(again[MappingRule.WATERMARK] / again[MappingRule.UBER], 4)
    yield Figure("a silent source: watermark to the published rule", ratio, "times", 0.1)


def _measure_collection(options: Options) -> Iterator[Figure]:
    """Measure decoding and storing; the store gets snapshots one by one, as from the collector."""
    snapshots = list(_merging.MergingMirrors(options.scale_rows(TOPICS), SNAPSHOTS).take_snapshots())
    syncs = sum(len(snapshot.records) for at_once in snapshots for snapshot in at_once)
    state = ReplicationState()
    new: list[list[CheckpointRecord]] = []
    ingesting = measure_duration(lambda: new.extend(_ingest(state, at_once) for at_once in snapshots))
    with tempfile.TemporaryDirectory(prefix="fleetgauge-bench-") as lake:
        storing = measure_duration(lambda: _store(CheckpointStore(lake), new))
    both = ingesting + storing
    yield Figure(f"{syncs:,} offset syncs decoded and ingested", ingesting.cpu_s, "s of CPU")
    rows = sum(map(len, new))
    yield Figure(f"{rows:,} resulting rows stored in {len(new)} commits", storing.cpu_s, "s of CPU")
    yield Figure("collected", both.cpu_s, "s of CPU", syncs / SYNCS_A_SECOND)
    yield Figure("collected per second of CPU", round(syncs / max(both.cpu_s, 0.1)), "syncs")


def _ingest(state: ReplicationState, at_once: Sequence[_merging.EncodedSnapshot]) -> list[CheckpointRecord]:
    return [fact for snapshot in at_once for fact in ingest_snapshot(state, snapshot.decode())]


def _store(store: CheckpointStore, new: Sequence[Sequence[CheckpointRecord]]) -> None:
    ordinal = 0
    for number, facts in enumerate(new, 1):
        store.append(facts, ordinal, {f"syncs of {source}": number for source in _merging.SOURCES})
        ordinal += len(facts)


def _measure_decisions(options: Options) -> Iterator[Figure]:
    """Decide for ten groups per topic, with lags of each order of magnitude equally likely."""
    groups = options.scale_rows(MOVED_GROUPS)
    mirrors = _merging.MergingMirrors(min(groups, options.scale_rows(TOPICS)), SNAPSHOTS)
    state = ReplicationState()
    for at_once in mirrors.take_snapshots():
        _ingest(state, at_once)
    positions = [position for group in range(groups) for position in _simulate_positions(mirrors, group)]
    verdicts: Counter[SyncVerdict] = Counter()

    def work() -> None:
        for position, passive in positions:
            decision = decide_sync(position, passive, PAIR, RECOVERY, state, mirrors.now_ms)
            verdicts[decision.verdict] += 1

    duration = measure_duration(work)
    yield Figure(f"{groups:,} groups of {_merging.PARTITIONS} partitions decided", duration.wall_s, "s", 5)
    yield Figure("groups decided", duration.cpu_s, "s of CPU")
    yield Figure("partitions to be written", verdicts[SyncVerdict.WRITE], f"of {len(positions):,}")


def _simulate_positions(
    mirrors: _merging.MergingMirrors, group: int
) -> Iterator[tuple[CommittedPosition, PassivePartition]]:
    topic, random = mirrors.topics[group % len(mirrors.topics)], Random(group)
    for number in range(_merging.PARTITIONS):
        active, passive = (mirrors.merged[aggregate][topic, number] for aggregate in _merging.AGGREGATES)
        position = CommittedPosition(
            topic, number, active.end - round(active.end ** random.random()), active.end
        )
        yield position, PassivePartition(topic, number, LogRange(0, passive.end), has_members=False)
