"""Our own mapping held to worlds that know the truth; MirrorMaker 2's memory beside it."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from fleetgauge_operations.recovery.offsets import checkpoint, mapping, offset_sync_store
from tests.oracle.mirrors import Message, Told, World
from tests.oracle.offset_sync_store import OffsetSyncStore

RULES = ("uber", "plus_one", "watermark")
#: In a world with one of these nobody but us knows which topic offsets are of.
_ANEW = frozenset({"cut", "source_anew", "destination_anew"})
#: Without them, no replay is longer than what lies between checkpoints.
_UNEVEN = _ANEW | {"copied_again", "gaps", "retention", "stale"}


@dataclass(frozen=True, slots=True)
class Code:
    """The modules that are judged: ours, or a mutant of them."""

    checkpoint: Any = checkpoint
    history: Any = offset_sync_store
    mapping: Any = mapping


OURS = Code()


@dataclass(frozen=True, slots=True)
class Case:
    """A world as those see it who map positions in it."""

    world: World
    code: Code
    active: Mapping[str, Any]
    passive: Mapping[str, Any]
    log: Any

    def answer(self, position: int, rule: str) -> Any:
        rule = self.code.mapping.Rule(rule)
        return self.code.mapping.mapped(position, self.active, self.passive, self.log, rule)


def case_of(world: World, code: Code = OURS) -> Case:
    active, passive = (histories(world, side, code) for side in ("active", "passive"))
    log = code.checkpoint.Log(world.passive_start, len(world.passive))
    return Case(world, code, active, passive, log)


def histories(world: World, side: str, code: Code = OURS) -> dict[str, Any]:
    """By source, what was observed on that side, as a collector would keep it; of every source, known or
    not."""
    ids_of = code.checkpoint.TopicIds
    found = {}
    for (where, source), rows in world.rows.items():
        if where == side:
            one = code.history.History(code.checkpoint.Route(source, side, "t", 0), ids=None)
            _take_in(one, rows, code)
            if one.ids:
                one.renew(ids_of(one.ids.source, world.ids[side]))
            found[source] = one
    return found


def _take_in(one: Any, rows: Iterable[Told], code: Code) -> None:
    of = code.checkpoint
    for row in rows:
        one.renew(of.TopicIds(*row.ids))
        one.append(of.Checkpoint(row.src, row.dst, 0, of.Origin(row.kind)))


def positions(world: World) -> list[int]:
    """Some of all, in order; those at and behind checkpoints among them."""
    end = len(world.active)
    edges = [row.dst for (side, _), rows in world.rows.items() if side == "active" for row in rows][:2]
    some = {*range(0, end, max(1, end // 5)), end, *edges, *(edge + 1 for edge in edges)}
    return sorted(one for one in some if one <= end)


def violations(case: Case) -> Iterator[str]:
    """Whatever must never be."""
    world = case.world
    for rule in RULES:
        answers = [(at, case.answer(at, rule)) for at in positions(world)]
        for position, answer in answers:
            where = f"world {world.seed}, {rule}, position {position}: {answer.resume}"
            owed, left = world.first_owed(position), world.first_left(position)
            if not world.passive_start <= answer.resume <= owed:
                yield f"{where} passes over what lies at {owed}"
            if answer.early_at_most is not None and left - answer.resume > answer.early_at_most:
                yield f"{where} is further before {left} than the {answer.early_at_most} that it says"
            even = not (_UNEVEN & world.traits or answer.unbounded)
            if even and answer.resume < left - span(world, position):
                yield f"{where} is further before {left} than two spans between checkpoints"
        for (before, one), (after, next_one) in pairwise(answers):
            if next_one.resume < one.resume:
                yield f"world {world.seed}, {rule}: {one.resume} at {before}, {next_one.resume} at {after}"


def span(world: World, position: int) -> int:
    """The longest that two checkpoints' worth of a source's records takes, before its first that is not
    consumed."""
    reached = world.reached(position)
    return max((_span(world.passive, one, reached.get(one), world.every) for _, one in world.rows), default=0)


def _span(log: tuple[Message | None, ...], source: str, reached: tuple[int, int] | None, every: int) -> int:
    at = [(n, one.key) for n, one in enumerate(log) if one and one.source == source]
    done = [n for n, key in at if reached and key <= reached]
    left = next((n for n, key in at if not reached or key > reached), len(log))
    before = done[-2 * every :]
    return left - before[0] if before else left


def by_mirror_maker(case: Case, position: int) -> Any:
    """From what MirrorMaker 2 would remember of the same syncs; None if it takes one log for another."""
    if _ANEW & case.world.traits:
        return None
    active, passive = (
        {source: _remembered(case, side, source) for where, source in case.world.rows if where == side}
        for side in ("active", "passive")
    )
    return mapping.mapped(position, active, passive, case.log, mapping.Rule.PLUS_ONE)


def _remembered(case: Case, side: str, source: str) -> offset_sync_store.History:
    store = OffsetSyncStore()
    for row in case.world.rows[side, source]:
        if row.kind == "sync":
            store.sync(row.src, row.dst)
    one = offset_sync_store.History(checkpoint.Route(source, side, "t", 0), ids=None)
    for sync in store.kept():
        one.append(checkpoint.Checkpoint(sync.upstream, sync.downstream))
    return one
