"""Positions mapped between regions: how fast, and how much is read again beside MirrorMaker 2 and Uber's
rule.

`map`: a merged topic of two sources on two aggregates, a checkpoint every hundred records. `mirror_maker`:
one mirrored partition, with the syncs that MirrorMaker 2 sends by default (`offset.lag.max` 100), its own
memory of them as the peer; once undisturbed and once with a mirror that begins again. `idle`: one of two
sources falls silent. `collect`: offset syncs from MirrorMaker's records to a Delta table, a commit for each
look at four mirrors of a thousand partitions. `decide`: where groups go on, whose topics were looked at so.
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
from tests.benchmarks._measure import Figure, Options, peak_bytes, spent
from tests.oracle.offset_sync_store import OffsetSyncStore

CHECKPOINTS, POSITIONS = 10_000_000, 100_000
#: Of a source on one aggregate.
ROWS, EVERY = 1_000, 100
SOURCES = "AB"
GROUPS = 10_000
#: So many records are copied a second time by a mirror that begins again.
AGAIN = 5_000
#: Topics of ten partitions each, and how often their mirrors are looked at.
TOPICS, LOOKS = 100, 30
SYNCS_A_SECOND = 5_000
#: Of ten partitions each.
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
"""By partition, histories by source."""


def measure(options: Options) -> Iterator[Figure]:
    """Speed and memory, then what is read again."""
    cases: dict[str, Callable[[Options], Iterator[Figure]]] = {
        "map": _map,
        "mirror_maker": _mirror_maker,
        "idle": _idle,
        "collect": _collect,
        "decide": _decide,
    }
    for name, case in cases.items():
        if not options.only or name in options.only:
            yield from case(options)


def _map(options: Options) -> Iterator[Figure]:
    partitions = max(1, options.rows(CHECKPOINTS) // (2 * len(SOURCES) * ROWS))
    rows = partitions * 2 * len(SOURCES) * ROWS
    random = Random(1)
    sides: list[Aggregate] = []
    taken = spent(lambda: sides.extend(_aggregate(partitions, random) for _ in range(2)))
    yield Figure(f"{rows:,} checkpoints taken in", taken.cpu_s, "s of processor")
    end = 2 * ROWS * EVERY
    asked = [(random.randrange(partitions), random.randrange(end)) for _ in range(options.rows(POSITIONS))]
    active, passive = sides

    def work() -> None:
        for partition, position in asked:
            map_position(position, active[partition], passive[partition], LogRange(0, end))

    took = spent(work)
    yield Figure(f"{len(asked):,} positions mapped", took.wall_s, "s", 30)
    yield Figure("positions mapped", took.cpu_s, "s of processor")
    yield Figure("memory at most", round(peak_bytes(os.getpid()) / _MB), "MB", 4_000)


def _aggregate(partitions: int, random: Random) -> Aggregate:
    return [{source: _merged(source, random) for source in SOURCES} for _ in range(partitions)]


def _merged(source: str, random: Random) -> OffsetHistory:
    """About every other record of the topic is of this source."""
    history = OffsetHistory(PartitionRoute(source, "g", "t", 0), TopicIds(source, "g"))
    dst = 0
    for src in range(0, ROWS * EVERY, EVERY):
        history.append(Checkpoint(src, dst))
        dst += random.randrange(EVERY, 3 * EVERY)
    return history


def _mirror_maker(options: Options) -> Iterator[Figure]:
    end = options.rows(1_000_000)
    again = end * 9 // 10 // EVERY * EVERY
    yield from _beside("undisturbed", end, [(at, at) for at in range(0, end, EVERY)], second=end)
    first = [(at, at) for at in range(0, again, EVERY)]
    second = [(at, at + AGAIN) for at in range(again - AGAIN, end, EVERY)]
    yield from _beside("begun again", end, first + second, second=again - AGAIN)


def _beside(name: str, end: int, syncs: Sequence[tuple[int, int]], second: int) -> Iterator[Figure]:
    """Groups lag by anything from one record to all there are, each order of magnitude as likely.

    From ``second`` on, records are there twice, and the last copy is gone on in.
    """
    store = OffsetSyncStore()
    history = OffsetHistory(PartitionRoute("A", "d", "t", 0), TopicIds("A", "d"))
    for one in syncs:
        store.sync(*one)
        history.append(Checkpoint(*one))
    random, log = Random(1), LogRange(0, end + AGAIN)
    committed = [max(0, end - round(end ** random.random())) for _ in range(GROUPS)]
    ours = [translate(one, history, log).resume or 0 for one in committed]
    found = [store.translate(one) or 0 for one in committed]
    # What it cannot translate a group reads from the beginning, if it is set to.
    theirs = [max(0, one) for one in found]
    exact = [one + AGAIN * (one >= second) for one in committed]
    again = [mean(map(int.__sub__, exact, some)) for some in (ours, theirs)]
    less = sum(map(int.__gt__, theirs, ours))
    yield Figure(f"{name}: groups of {GROUPS:,} that MirrorMaker 2 lets read less", less, "groups", 0)
    yield Figure(f"{name}: groups that it cannot translate", found.count(-1), "groups")
    yield Figure(f"{name}: read again, mean", round(again[0], 1), "records")
    yield Figure(f"{name}: read again by MirrorMaker 2's memory, mean", round(again[1], 1), "records")
    yield Figure(f"{name}: ours to MirrorMaker 2's", round(again[0] / again[1], 4), "times", 1)


def _idle(options: Options) -> Iterator[Figure]:
    silent, count = 10, options.rows(100_000)
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
    yield Figure("a silent source: to the published rule", ratio, "times", 0.1)


def _collect(options: Options) -> Iterator[Figure]:
    """Looks are given to the store one by one, as the collector does that keeps after each."""
    looks = list(_merging.Merging(options.rows(TOPICS), LOOKS).looks())
    syncs = sum(len(one.records) for look in looks for one in look)
    known = ReplicationState()
    new: list[list[CheckpointRecord]] = []
    pure = spent(lambda: new.extend(_learned(known, look) for look in looks))
    with tempfile.TemporaryDirectory(prefix="fleetgauge-bench-") as lake:
        keeping = spent(lambda: _keep(CheckpointStore(lake), new))
    both = pure + keeping
    yield Figure(f"{syncs:,} offset syncs read and learned from", pure.cpu_s, "s of processor")
    rows = sum(map(len, new))
    yield Figure(f"{rows:,} rows of them kept in {len(new)} commits", keeping.cpu_s, "s of processor")
    yield Figure("collected", both.cpu_s, "s of processor", syncs / SYNCS_A_SECOND)
    yield Figure("collected a second of processor", round(syncs / max(both.cpu_s, 0.1)), "syncs")


def _learned(known: ReplicationState, look: Sequence[_merging.Unread]) -> list[CheckpointRecord]:
    return [fact for one in look for fact in ingest_snapshot(known, one.read())]


def _keep(store: CheckpointStore, new: Sequence[Sequence[CheckpointRecord]]) -> None:
    ordinal = 0
    for number, facts in enumerate(new, 1):
        store.append(facts, ordinal, {f"syncs of {source}": number for source in _merging.SOURCES})
        ordinal += len(facts)


def _decide(options: Options) -> Iterator[Figure]:
    """A topic has ten groups, which lag by anything, each order of magnitude as likely."""
    groups = options.rows(MOVED_GROUPS)
    merging = _merging.Merging(min(groups, options.rows(TOPICS)), LOOKS)
    known = ReplicationState()
    for look in merging.looks():
        _learned(known, look)
    asked = [one for group in range(groups) for one in _positions(merging, group)]
    verdicts: Counter[SyncVerdict] = Counter()

    def work() -> None:
        for position, passive in asked:
            found = decide_sync(position, passive, PAIR, RECOVERY, known, merging.now_ms)
            verdicts[found.verdict] += 1

    took = spent(work)
    yield Figure(f"{groups:,} groups of {_merging.PARTITIONS} partitions decided", took.wall_s, "s", 5)
    yield Figure("groups decided", took.cpu_s, "s of processor")
    yield Figure("partitions that are to be written", verdicts[SyncVerdict.WRITE], f"of {len(asked):,}")


def _positions(merging: _merging.Merging, group: int) -> Iterator[tuple[CommittedPosition, PassivePartition]]:
    topic, random = merging.topics[group % len(merging.topics)], Random(group)
    for number in range(_merging.PARTITIONS):
        active, passive = (merging.merged[one][topic, number] for one in _merging.AGGREGATES)
        position = CommittedPosition(
            topic, number, active.end - round(active.end ** random.random()), active.end
        )
        yield position, PassivePartition(topic, number, LogRange(0, passive.end), has_members=False)
