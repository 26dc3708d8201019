"""Looks at simulated mirrors at any moments: what is decided passes over nothing that is not consumed."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from fleetgauge_core.fleet import Mirror, RecoveredGroups, Recovery
from fleetgauge_operations.recovery.offsets.checkpoint import (
    Checkpoint,
    Log,
    Origin,
    Route,
    TopicIds,
)
from fleetgauge_operations.recovery.offsets.mirror_maker import OffsetSync
from fleetgauge_operations.recovery.offsets.mirror_state import Fact, Known
from fleetgauge_operations.recovery.offsets.sync_ingest import (
    Ends,
    MirrorLook,
    Told,
    learned,
)
from fleetgauge_operations.recovery.plan.sync_decision import (
    Decision,
    Pair,
    Passive,
    Position,
    Verdict,
    decided,
    topic_there,
)

SOURCES = ("north", "south")
AGGREGATES = ("north-all", "south-all")
PAIR = Pair(*AGGREGATES)
RECOVERY = Recovery(
    mirrors=tuple(
        Mirror(source=source, destination=destination, names="kept")
        for destination in AGGREGATES
        for source in SOURCES
    ),
    groups=(RecoveredGroups(groups=".*", active="north-all", passive="south-all"),),
)
IDS = TopicIds("s", "d")


@dataclass
class SimulatedMirror:
    """Copies a source's records in order; every so many it tells of one."""

    source: list[str]
    log: list[str]
    told_every: int
    next: int = 0
    told: list[OffsetSync] = field(default_factory=list)
    began_again: bool = False

    def copy(self) -> None:
        if self.next < len(self.source):
            if self.next % self.told_every == 0:
                self.told.append(OffsetSync("orders", 0, self.next, len(self.log)))
            self.log.append(self.source[self.next])
            self.next += 1

    def begin_again(self, back: int) -> None:
        """As one does that was killed before it committed. It tells of the first record that it copies."""
        self.began_again = True
        self.next = max(0, self.next - back)
        if self.next < len(self.source):
            self.told.append(OffsetSync("orders", 0, self.next, len(self.log)))
            self.log.append(self.source[self.next])
            self.next += 1


class World:
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
    def copied_again(self) -> bool:
        """Records may be there twice without that anybody can tell, so no bound holds."""
        return any(mirror.began_again for mirror in self.mirrors.values())

    def happen(self, most: int) -> None:
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
                    mirror.begin_again(self.random.randrange(8))

    def look(self, source: str, destination: str, at_ms: int) -> MirrorLook:
        """Things go on while somebody looks."""
        mirror = self.mirrors[source, destination]
        told, mirror.told = tuple(Told(one, at_ms) for one in mirror.told), []
        self.happen(4)
        end = len(mirror.log)
        self.happen(4)
        ends = {("orders", 0): Ends(end, len(mirror.source))}
        return MirrorLook(source, destination, told, {"orders": IDS}, ends, at_ms)


def passive(world: World, connected: bool = False, **known: int | None) -> Passive:
    return Passive("orders", 0, Log(0, len(world.logs["south-all"])), connected, **known)


def decide(world: World, known: Known, committed: int, now_ms: int) -> Decision:
    position = Position("orders", 0, committed, len(world.logs["north-all"]))
    return decided(position, passive(world), PAIR, RECOVERY, known, now_ms)


def watched(seed: int) -> tuple[World, Known, list[Fact]]:
    world, known = World(seed), Known()
    facts: list[Fact] = []
    for number in range(world.random.randrange(1, 12)):
        world.happen(60)
        for source, destination in world.random.sample(list(world.mirrors), 4):
            facts += learned(known, world.look(source, destination, number * 1000))
    world.happen(30)
    return world, known, facts


def last_chance(world: World, committed: int) -> int:
    """Before or at which offset whoever has consumed so much has to go on.

    A record that is there twice may be read there twice. One that a mirror is about to copy again, as it
    has begun again before it, will come: that its first copy is passed over nobody can see, as nothing was
    told of that (history.py).
    """
    log = world.logs["south-all"]
    consumed = set(world.logs["north-all"][:committed])
    to_come = {
        record
        for source in SOURCES
        for record in world.sources[source][world.mirrors[source, "south-all"].next :]
    }
    last = {record: at for at, record in enumerate(log)}
    left = (at for record, at in last.items() if record not in consumed and record not in to_come)
    return min(left, default=len(log))


@pytest.mark.parametrize("seeds", [range(first, first + 250) for first in range(0, 1_000, 250)])
def test_nothing_is_passed_over_that_is_not_consumed(seeds: range) -> None:
    answered = exact = bounded = 0
    for seed in seeds:
        world, known, _ = watched(seed)
        for committed in range(len(world.logs["north-all"]) + 1):
            found = decide(world, known, committed, now_ms=0)
            if found.resume is not None:
                last = last_chance(world, committed)
                assert found.resume <= last, (seed, committed, found)
                if found.early_at_most is not None and not world.copied_again:
                    assert last - found.resume <= found.early_at_most
                    bounded += 1
                answered += 1
                exact += found.resume == last
    assert answered > 1_000
    assert exact > answered / 20
    assert bounded > answered / 20


def test_what_was_kept_says_the_same_as_what_was_learned() -> None:
    for seed in range(50):
        world, known, facts = watched(seed)
        again = Known(facts)
        for mirror in world.mirrors:
            again.look(*mirror, at_ms=0)
        for committed in range(0, len(world.logs["north-all"]) + 1, 7):
            one, other = (decide(world, each, committed, 0) for each in (known, again))
            assert (one.resume, one.rule) == (other.resume, other.rule)


def route(source: str, destination: str) -> Route:
    return Route(source, destination, "orders", 0)


def facts_of_both(at_ms: int = 0, ids: TopicIds = IDS) -> Iterator[tuple[Route, TopicIds, Checkpoint]]:
    for destination in AGGREGATES:
        for number, source in enumerate(SOURCES):
            yield route(source, destination), ids, Checkpoint(0, 10 * number, at_ms)
            yield route(source, destination), ids, Checkpoint(9, 10 * number + 9, at_ms)
            yield route(source, destination), ids, Checkpoint(10, 20, at_ms, Origin.IDLE_WATERMARK)


def known_of_both(at_ms: int = 0) -> Known:
    known = Known()
    for destination in AGGREGATES:
        for source in SOURCES:
            known.look(source, destination, at_ms)
    for one in facts_of_both(at_ms):
        known.learn(*one)
    return known


HERE = Log(0, 20)


def verdict(
    known: Known,
    there: Passive | None = None,
    committed: int = 20,
    now_ms: int = 1_000,
    topic: str = "orders",
) -> Verdict:
    there = there or Passive("orders", 0, HERE, connected=False)
    return decided(Position(topic, 0, committed, 20), there, PAIR, RECOVERY, known, now_ms).verdict


def test_what_is_known_is_written_once() -> None:
    assert verdict(known_of_both()) is Verdict.WRITE
    assert verdict(known_of_both(), Passive("orders", 0, HERE, False, 20)) is Verdict.UNCHANGED


def test_nothing_is_written_for_a_group_that_somebody_reads_in() -> None:
    assert verdict(known_of_both(), Passive("orders", 0, HERE, True)) is Verdict.CONNECTED


def test_a_topic_that_is_not_there_is_unknown() -> None:
    assert verdict(known_of_both(), Passive("orders", 0, None, False)) is Verdict.UNKNOWN_TOPIC
    assert (
        verdict(known_of_both(), Passive("other", 0, Log(0, 5), False), topic="other")
        is Verdict.UNKNOWN_TOPIC
    )


def test_a_mirror_of_which_nothing_comes_is_stale() -> None:
    assert verdict(known_of_both(), now_ms=120_000) is Verdict.WRITE
    assert verdict(known_of_both(), now_ms=120_001) is Verdict.STALE


def test_a_fence_alone_keeps_no_mirror_fresh() -> None:
    known = known_of_both()
    known.learn(route("north", "south-all"), IDS, Checkpoint(30, 20, 120_000, Origin.FENCE))
    assert verdict(known, now_ms=120_001) is Verdict.STALE


def test_a_topic_made_anew_is_told_from_one_of_which_nothing_is_known() -> None:
    assert verdict(Known()) is Verdict.UNBOUNDED
    known = known_of_both()
    known.learn(route("north", "south-all"), TopicIds("s", "other"), Checkpoint(40, 0, 0, Origin.FENCE))
    assert verdict(known) is Verdict.MADE_ANEW


def test_what_may_be_gone_there_is_told() -> None:
    short = Passive("orders", 0, Log(17, 20), False)
    assert verdict(known_of_both(), short, committed=15) is Verdict.POSSIBLE_LOSS


def test_a_group_goes_back_only_where_it_was_set_back() -> None:
    known = known_of_both()
    ahead = Passive("orders", 0, HERE, False, committed=20)
    assert verdict(known, ahead, committed=15) is Verdict.BACKWARDS
    ours = Passive("orders", 0, HERE, False, committed=20, of=20)
    assert verdict(known, ours, committed=15) is Verdict.WRITE
    assert verdict(known, Passive("orders", 0, HERE, False, 20, of=3), committed=15) is Verdict.BACKWARDS


def test_a_mirror_that_nobody_could_look_at_of_late_leaves_nothing_known() -> None:
    known = Known()
    for one in facts_of_both():
        if one[0].source == "north":
            known.learn(*one)
    assert verdict(known) is Verdict.UNBOUNDED
    for destination in AGGREGATES:
        known.look("south", destination, at_ms=1_000)
    assert verdict(known) is Verdict.WRITE
    known.keep_up(route("north", "north-all"), 130_000)
    known.keep_up(route("north", "south-all"), 130_000)
    assert verdict(known, now_ms=121_000) is Verdict.WRITE
    assert verdict(known, now_ms=121_001) is Verdict.UNBOUNDED


def sync(upstream: int, downstream: int, at_ms: int = 0) -> Told:
    return Told(OffsetSync("orders", 0, upstream, downstream), at_ms)


def look_at(*told: Told, ends: Ends, ids: TopicIds = IDS, at_ms: int = 0) -> MirrorLook:
    return MirrorLook("north", "north-all", told, {"orders": ids}, {("orders", 0): ends}, at_ms)


def origins(known: Known, look: MirrorLook) -> list[Origin]:
    return [fact.checkpoint.origin for fact in learned(known, look)]


def test_a_sync_beyond_the_end_is_of_another_log() -> None:
    assert origins(Known(), look_at(sync(7, 7), ends=Ends(5, 5))) == [Origin.FENCE]


def test_syncs_of_a_topic_that_has_changed_are_not_believed_until_those_held_back_have_come() -> None:
    known, other = Known(), TopicIds("s", "other")
    learned(known, look_at(sync(4, 4), ends=Ends(9, 9)))
    assert origins(known, look_at(sync(8, 8), ends=Ends(9, 9), ids=other)) == [Origin.FENCE]
    late = look_at(sync(8, 8, at_ms=59_999), ends=Ends(9, 9), ids=other, at_ms=59_999)
    assert origins(known, late) == []
    own = look_at(sync(8, 8, at_ms=60_000), ends=Ends(9, 9), ids=other, at_ms=60_000)
    assert origins(known, own) == [Origin.SYNC, Origin.IDLE_WATERMARK]


def test_what_goes_back_at_the_first_look_may_be_a_topic_that_was_made_anew() -> None:
    old_and_new = (sync(0, 0), sync(99, 99), sync(0, 100), sync(199, 299))
    known = Known()
    learned(known, look_at(*old_and_new, ends=Ends(300, 200)))
    history = known.history(route("north", "north-all"))
    assert history is not None
    assert (history.count, history.copied_again) == (2, False)


def test_records_of_a_topic_that_was_made_anew_are_not_passed_over() -> None:
    known = known_of_both()
    new = TopicIds("made anew", "d")
    for destination in AGGREGATES:
        known.learn(route("north", destination), new, Checkpoint(0, 20, 0, Origin.IDLE_WATERMARK))
    assert verdict(known, committed=15) is Verdict.MADE_ANEW


def test_watermarks_are_told_so_often_but_for_one_that_has_just_caught_up() -> None:
    known = Known()
    assert origins(known, look_at(ends=Ends(9, 9))) == [Origin.FENCE]
    later = look_at(ends=Ends(10, 10), at_ms=5_000)
    assert learned(known, later, watermark_every_ms=10_000) == ()
    caught_up = look_at(sync(10, 10), ends=Ends(11, 11), at_ms=6_000)
    found = learned(known, caught_up, watermark_every_ms=10_000)
    assert [fact.checkpoint.origin for fact in found] == [Origin.SYNC, Origin.IDLE_WATERMARK]
    idle = look_at(ends=Ends(30, 11), at_ms=9_000)
    assert learned(known, idle, watermark_every_ms=10_000) == ()
    assert known.kept_up_ms(route("north", "north-all")) == 9_000


def test_a_copied_topic_keeps_its_name_or_is_called_after_its_source() -> None:
    kept = Mirror(source="a", destination="b", names="kept", topics="orders.*")
    prefixed = Mirror(source="a", destination="b", source_alias="primary")
    assert (kept.called_there("orders"), kept.called_here("orders")) == ("orders", "orders")
    assert kept.called_here("payments") is None
    assert (prefixed.called_there("orders"), prefixed.called_here("primary.orders")) == (
        "primary.orders",
        "orders",
    )
    assert prefixed.called_here("orders") is None
    recovery = Recovery(mirrors=(prefixed,))
    assert topic_there(recovery, Pair("a", "b"), "orders") == "primary.orders"
    assert topic_there(RECOVERY, PAIR, "orders") == "orders"
    assert topic_there(RECOVERY, PAIR, "__consumer_offsets") is None
