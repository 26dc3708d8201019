"""map_position in random simulated mirrorings, in which the position of every message is known."""

from collections import Counter

import pytest

from tests.oracle.random_mirrors import TRAITS, simulate_mirroring
from tests.unit.operations.recovery.mapping_cases import RULES, build_case, find_violations, sample_positions
from tests.unit.operations.recovery.mutants import build_mutant

SIMULATIONS = 2_000

#: By description: the module, the text to replace, and its replacement.
MUTANTS = {
    "maximum instead of minimum over sources": (
        "mapping",
        "earliest = min(bounds)",
        "earliest = max(bounds)",
    ),
    "the record at the position counts as consumed": (
        "replication_runs",
        "(floor.dst_offset < position)",
        "1",
    ),
    "one past a checkpoint of the next record itself": (
        "mapping",
        "floor.dst_offset + (floor.src_offset < consumed.next_src)",
        "floor.dst_offset + 1",
    ),
    "one past without a check that it is consumed": (
        "mapping",
        "floor.src_offset < consumed.next_src\n",
        "True\n",
    ),
    "ceiling instead of floor in passive": (
        "replication_runs",
        "return self[index - 1] if index else None\n\n    def floor_dst",
        "return self[min(index, len(self) - 1)]\n\n    def floor_dst",
    ),
    "ceiling instead of floor in active": (
        "replication_runs",
        "index = bisect_right(self._dst, dst_offset)\n        return self[index - 1] if index else None",
        "index = bisect_right(self._dst, dst_offset)\n        return self[min(index, len(self) - 1)]",
    ),
    "only the first run is considered": (
        "replication_runs",
        "if not (self._is_expired(",
        "if False and not (self._is_expired(",
    ),
    "new runs are ignored": (
        "replication_runs",
        "        self._runs.append(ReplicationRun(row))\n        return HistoryUpdate.RECOPIED\n",
        "        return HistoryUpdate.UNCHANGED\n",
    ),
    "a run holds no more records than its checkpoints": (
        "replication_runs",
        "return not room\n",
        "return not room\n        return True\n",
    ),
    "a run expires one offset too early": ("replication_runs", "<= log.start for", "<= log.start + 1 for"),
    "recreated topics keep their history": (
        "offset_sync_store",
        "self.ids = ids\n        self.epoch += 1\n        return self._invalidate()",
        "self.ids = ids\n        return HistoryUpdate.UNCHANGED",
    ),
    "source topic ids are not compared": ("mapping", "if active.ids and passive.ids and", "if False and"),
    "truncated runs are kept": ("offset_sync_store", "self._runs.truncate(dst_offset)", "pass"),
    "a watermark after the position is used": (
        "watermarks",
        "self._before.count_dst(dst_offset)",
        "len(self._before)",
    ),
    "a watermark beyond the unconsumed record is used": (
        "watermarks",
        "min(self._after.count_src(src_offset), self._after.count_dst(end))",
        "len(self._after)",
    ),
    "a fence is used as a watermark": (
        "watermarks",
        "watermark.origin is CheckpointOrigin.IDLE_WATERMARK and",
        "",
    ),
}


def test_no_message_is_skipped_and_replay_stays_within_the_bound() -> None:
    traits: Counter[str] = Counter()
    bounded = 0
    for seed in range(SIMULATIONS):
        case = build_case(simulate_mirroring(seed))
        assert not list(find_violations(case))
        traits.update(case.mirroring.traits)
        bounded += not case.map_position(len(case.mirroring.active), "watermark").is_unbounded
    # Every trait occurs often enough and most results are bounded; otherwise the simulations prove nothing.
    assert all(traits[trait] > SIMULATIONS * TRAITS[trait] / 2 for trait in TRAITS)
    assert bounded > SIMULATIONS / 2


@pytest.mark.parametrize("seed", range(0, SIMULATIONS, 37))
def test_results_are_deterministic_and_ascend_with_the_rules(seed: int) -> None:
    case, same_case = build_case(simulate_mirroring(seed)), build_case(simulate_mirroring(seed))
    for position in sample_positions(case.mirroring):
        results = [case.map_position(position, rule) for rule in RULES]
        assert results == [same_case.map_position(position, rule) for rule in RULES]
        assert results == [case.map_position(position, rule) for rule in RULES]
        assert [result.resume for result in results] == sorted(result.resume for result in results)


@pytest.mark.parametrize("change", MUTANTS.values(), ids=MUTANTS)
def test_every_mutant_is_detected(change: tuple[str, str, str]) -> None:
    code = build_mutant(*change)
    assert any(
        True
        for seed in range(SIMULATIONS)
        for _ in find_violations(build_case(simulate_mirroring(seed), code))
    )
