"""Random worlds of mirrors against an oracle that knows where every message lies."""

from collections import Counter

import pytest

from tests.oracle.random_mirrors import TRAITS, random_world
from tests.unit.operations.recovery.judging import RULES, case_of, positions, violations
from tests.unit.operations.recovery.mutants import mutant

WORLDS = 2_000

#: What is changed, in which module, from what to what.
MUTANTS = {
    "the largest over sources": ("mapping", "earliest = min(known)", "earliest = max(known)"),
    "the record at the position counts as consumed": ("replication_runs", "(one.dst_offset < position)", "1"),
    "one past, though it is that very record": (
        "mapping",
        "at.dst_offset + (at.src_offset < seen.next_src)",
        "at.dst_offset + 1",
    ),
    "one past without a guard": ("mapping", "at.src_offset < seen.next_src\n", "True\n"),
    "the next checkpoint of passive": (
        "replication_runs",
        "return self[at - 1] if at else None\n\n    def floor_dst",
        "return self[min(at, len(self) - 1)]\n\n    def floor_dst",
    ),
    "the next checkpoint of active": (
        "replication_runs",
        "at = bisect_right(self._dst, dst_offset)\n        return self[at - 1] if at else None",
        "at = bisect_right(self._dst, dst_offset)\n        return self[min(at, len(self) - 1)]",
    ),
    "the last copy alone": ("replication_runs", "if not (self._is_gone(", "if False and not (self._is_gone("),
    "all copies are one": (
        "replication_runs",
        "        self._copies.append(Copy(row))\n        return Change.COPIED_AGAIN\n",
        "        return Change.KNOWN\n",
    ),
    "a copy holds no more than was told": (
        "replication_runs",
        "return not room\n",
        "return not room\n        return True\n",
    ),
    "a copy is gone with its last record": ("replication_runs", "<= log.start for", "<= log.start + 1 for"),
    "topics that were made anew are the same": (
        "offset_sync_store",
        "self.ids = ids\n        self.epoch += 1\n        return self._made_anew()",
        "self.ids = ids\n        return Change.KNOWN",
    ),
    "two topics of one name are one": ("mapping", "if active.ids and passive.ids and", "if False and"),
    "what a cut took is still there": ("offset_sync_store", "self._copies.cut(dst_offset)", "pass"),
    "a watermark behind the position": (
        "watermarks",
        "self._before.count_dst(dst_offset)",
        "len(self._before)",
    ),
    "a watermark before what is left": (
        "watermarks",
        "min(self._after.count_src(src_offset), self._after.count_dst(end))",
        "len(self._after)",
    ),
    "a fence is a watermark": ("watermarks", "row.origin is Origin.IDLE_WATERMARK and", ""),
}


def test_no_message_is_passed_over_and_no_more_read_again_than_said() -> None:
    traits: Counter[str] = Counter()
    bounded = 0
    for seed in range(WORLDS):
        case = case_of(random_world(seed))
        assert not list(violations(case))
        traits.update(case.world.traits)
        bounded += not case.answer(len(case.world.active), "watermark").unbounded
    # All that may happen has, and the answers say something, else the worlds would prove nothing.
    assert all(traits[one] > WORLDS * TRAITS[one] / 2 for one in TRAITS)
    assert bounded > WORLDS / 2


@pytest.mark.parametrize("seed", range(0, WORLDS, 37))
def test_the_same_history_gives_the_same_answer_and_each_rule_one_no_earlier(seed: int) -> None:
    case, again = case_of(random_world(seed)), case_of(random_world(seed))
    for position in positions(case.world):
        answers = [case.answer(position, rule) for rule in RULES]
        assert answers == [again.answer(position, rule) for rule in RULES]
        assert answers == [case.answer(position, rule) for rule in RULES]
        assert [one.resume for one in answers] == sorted(one.resume for one in answers)


@pytest.mark.parametrize("change", MUTANTS.values(), ids=MUTANTS)
def test_a_mutant_is_found(change: tuple[str, str, str]) -> None:
    code = mutant(*change)
    assert any(True for seed in range(WORLDS) for _ in violations(case_of(random_world(seed), code)))
