"""Positions in a merged topic are mapped to the passive cluster: an example, edge cases and properties."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_operations.recovery.offsets.checkpoint import LogRange, TopicIds
from fleetgauge_operations.recovery.offsets.mapping import (
    ConstraintBasis,
    MappingResult,
    map_position,
    map_with_best_rule,
)
from fleetgauge_operations.recovery.offsets.mapping_rule import MappingRule
from fleetgauge_operations.recovery.offsets.offset_sync_store import OffsetHistory
from tests.unit.operations.recovery.histories import Pairs, build_history

#: Uber's figure 6: the messages of both regions in the order of each aggregate.
FIGURE_6 = {
    "active": ["B1", "B2", "A1", "A2", "B3", "B4", "A3", "A4"],
    "passive": ["A1", "A2", "B1", "B2", "A3", "A4", "B3", "B4"],
}
LOG = LogRange(0, 8)


def checkpoint_every(log: list[str], nth: int) -> dict[str, OffsetHistory]:
    """Return a checkpoint for every nth message of each source."""
    pairs: dict[str, list[tuple[int, int]]] = {"A": [], "B": []}
    for offset, message in enumerate(log):
        number = int(message[1:])
        if number % nth == 0:
            pairs[message[0]].append((number - 1, offset))
    return {source: build_history(source_pairs) for source, source_pairs in pairs.items()}


def figure_6(position: int, rule: MappingRule, nth: int = 2) -> MappingResult:
    return map_position(
        position,
        checkpoint_every(FIGURE_6["active"], nth),
        checkpoint_every(FIGURE_6["passive"], nth),
        LOG,
        rule,
    )


def history_of_a(
    pairs: Pairs = (), watermarks: Pairs = (), fences: Pairs = ()
) -> Mapping[str, OffsetHistory]:
    return {"A": build_history(pairs, watermarks, fences)}


def find_duplicates(resume: int) -> list[str]:
    consumed = FIGURE_6["active"][:6]
    return [message for message in FIGURE_6["passive"][resume:] if message in consumed]


def test_figure_6_by_the_published_rule() -> None:
    result = figure_6(6, MappingRule.UBER)
    assert result.resume == 1
    assert [constraint.resume for constraint in result.per_source.values()] == [1, 7]
    assert find_duplicates(1) == ["A2", "B1", "B2", "B3", "B4"]


def test_figure_6_one_past_a_consumed_checkpoint() -> None:
    assert figure_6(6, MappingRule.PLUS_ONE).resume == 2
    assert len(find_duplicates(2)) == 4


def test_figure_6_with_a_checkpoint_per_message_is_optimal() -> None:
    assert [figure_6(6, rule, nth=1).resume for rule in MappingRule] == [4, 4, 4]
    assert FIGURE_6["passive"].index("A3") == 4
    assert find_duplicates(4) == ["B3", "B4"]


def test_a_checkpoint_of_the_next_record_gives_its_exact_offset() -> None:
    active, passive = history_of_a([(1, 3)]), history_of_a([(1, 1), (2, 4)])
    assert [map_position(6, active, passive, LOG, rule).resume for rule in MappingRule] == [1, 2, 4]


def test_the_best_result_uses_the_simplest_rule_that_gives_it() -> None:
    sides = [checkpoint_every(FIGURE_6[side], 2) for side in ("active", "passive")]
    result = map_with_best_rule(6, sides[0], sides[1], LOG)
    assert (result.rule, result.resume) == (MappingRule.PLUS_ONE, 2)
    result = map_with_best_rule(6, history_of_a([(1, 3)]), history_of_a([(1, 1), (2, 4)]), LOG)
    assert (result.rule, result.resume) == (MappingRule.WATERMARK, 4)
    # All records before the position are consumed, so all rules agree and the published rule is used.
    same = history_of_a([(0, 0), (5, 5)])
    assert map_with_best_rule(5, same, same, LOG).rule is MappingRule.UBER


@pytest.mark.parametrize("rule", MappingRule)
def test_the_record_at_the_position_is_not_consumed(rule: MappingRule) -> None:
    assert map_position(5, history_of_a([(5, 5)]), history_of_a([(5, 7)]), LOG, rule).resume == 7


def test_no_rule_resumes_earlier_for_a_later_position() -> None:
    # At position 5 the record at 5 is not consumed, so a result based on it would go back by one.
    active, passive = history_of_a([(0, 0), (5, 5)]), history_of_a([(0, 0)])
    for rule in MappingRule:
        results = [map_position(at, active, passive, LOG, rule).resume for at in range(9)]
        assert results == sorted(results)


@pytest.mark.parametrize("rule", MappingRule)
def test_the_resume_offset_is_within_the_log(rule: MappingRule) -> None:
    early = map_position(9, history_of_a([(5, 5)]), history_of_a([(5, 7)]), LogRange(20, 30), rule)
    assert (early.resume, early.possible_loss) == (20, True)
    late = map_position(9, history_of_a([(5, 5)]), history_of_a([(5, 7)]), LogRange(0, 8), rule)
    assert (late.resume <= 8, late.possible_loss) == (True, False)


@pytest.mark.parametrize(
    ("active", "passive", "basis"),
    [
        ({}, history_of_a([(0, 0)]), ConstraintBasis.NOT_IN_ACTIVE),
        (history_of_a(), history_of_a([(0, 0)]), ConstraintBasis.NOT_IN_ACTIVE),
        (history_of_a([(9, 9)]), history_of_a([(0, 0)]), ConstraintBasis.NOT_IN_ACTIVE),
        (history_of_a([(0, 0)]), {}, ConstraintBasis.NOT_IN_PASSIVE),
        (history_of_a([(0, 0)]), history_of_a(), ConstraintBasis.NOT_IN_PASSIVE),
        (history_of_a([(0, 0)]), history_of_a([(2, 3)]), ConstraintBasis.NOT_IN_PASSIVE),
        (
            {"A": build_history([(0, 0)], ids=TopicIds("new", "d"))},
            history_of_a([(0, 0)]),
            ConstraintBasis.RECREATED,
        ),
    ],
)
def test_a_source_without_usable_checkpoints_is_unbounded(
    active: Mapping[str, OffsetHistory], passive: Mapping[str, OffsetHistory], basis: ConstraintBasis
) -> None:
    other_source = {"B": build_history([(0, 1)])}
    for rule in MappingRule:
        result = map_position(
            6, {**active, **other_source}, {**passive, **other_source}, LogRange(4, 90), rule
        )
        assert (result.is_unbounded, result.resume, result.early_at_most) == (True, 4, None)
        assert result.per_source["A"].basis is basis
        assert result.per_source["B"].resume is not None


def test_without_any_source_the_result_is_unbounded() -> None:
    assert map_position(6, {}, {}, LogRange(4, 90)).is_unbounded


def build_idle_source(
    count: int = 100_000, spacing: int = 100
) -> tuple[dict[str, OffsetHistory], dict[str, OffsetHistory]]:
    """Return ten messages of A, then many of B, all consumed; A has a watermark after the last of B."""
    end = 10 + count
    sides = []
    for _ in range(2):
        pairs_of_b = [(n, 10 + n) for n in range(0, count, spacing)]
        sides.append(
            {"A": build_history([(0, 0), (9, 9)], watermarks=[(10, end)]), "B": build_history(pairs_of_b)}
        )
    return sides[0], sides[1]


def test_an_idle_source_holds_back_the_result_unless_it_has_a_watermark() -> None:
    active, passive = build_idle_source()
    end = 100_010
    results = {rule: map_position(end, active, passive, LogRange(0, end), rule) for rule in MappingRule}
    assert [results[rule].resume for rule in MappingRule] == [9, 10, 99_911]
    assert results[MappingRule.WATERMARK].per_source["A"].basis is ConstraintBasis.WATERMARK
    assert results[MappingRule.WATERMARK].early_at_most == end - 99_911 == 99


def test_a_passive_watermark_applies_only_if_the_source_is_consumed() -> None:
    passive = history_of_a([(0, 0)], watermarks=[(10, 70)])
    log = LogRange(0, 80)
    assert map_position(50, history_of_a([(0, 0), (8, 8)]), passive, log).resume == 1
    assert map_position(50, history_of_a([(0, 0), (9, 9)]), passive, log).resume == 70
    assert map_position(9, history_of_a([(0, 0), (9, 9)]), passive, log).resume == 1


def test_an_active_watermark_proves_that_the_source_is_consumed() -> None:
    active, passive = (
        history_of_a([(0, 0)], watermarks=[(10, 40)]),
        history_of_a([(0, 0)], watermarks=[(10, 70)]),
    )
    log = LogRange(0, 80)
    assert map_position(39, active, passive, log).resume == 1
    assert map_position(40, active, passive, log).resume == 70


def test_an_empty_source_is_bounded_by_watermarks_alone() -> None:
    active, passive = history_of_a(watermarks=[(0, 40)]), history_of_a(watermarks=[(0, 70)])
    assert map_position(40, active, passive, LogRange(0, 80)).resume == 70
    assert map_position(39, active, passive, LogRange(0, 80)).is_unbounded
    assert map_position(40, active, passive, LogRange(0, 80), MappingRule.PLUS_ONE).is_unbounded


def test_a_watermark_beyond_the_log_end_is_ignored() -> None:
    passive = history_of_a([(0, 0)], watermarks=[(1, 70)])
    assert map_position(9, history_of_a([(0, 0)]), passive, LogRange(0, 60)).resume == 1


def test_a_fence_raises_the_bound_after_a_recopy() -> None:
    twice = [(0, 0), (30, 30), (10, 60), (40, 90)]
    active = history_of_a([(0, 0), (40, 40)])
    log = LogRange(0, 120)
    assert map_position(45, active, history_of_a(twice), log).resume == 31
    assert map_position(45, active, history_of_a(twice, fences=[(38, 85)]), log).resume == 85


def test_early_at_most_bounds_the_distance_to_the_first_unconsumed_record() -> None:
    active, passive = history_of_a([(0, 0), (10, 10), (20, 20)]), history_of_a([(0, 0), (10, 30), (20, 60)])
    result = map_position(15, active, passive, LogRange(0, 100))
    assert (result.resume, result.early_at_most) == (31, 29)
    # All checkpoints are consumed, so the first unconsumed record may be the next one to be written.
    assert map_position(25, active, passive, LogRange(0, 100)).early_at_most == 39


@given(st.data())
def test_the_result_is_exact_with_one_source_and_all_records_known(data: st.DataObject) -> None:
    gaps = st.lists(st.integers(1, 5), min_size=1, max_size=30)
    src, dst = 0, [0, 0]
    sides: tuple[list[tuple[int, int]], list[tuple[int, int]]] = ([], [])
    for step in data.draw(gaps):
        src += step
        for side in (0, 1):
            dst[side] += data.draw(st.integers(1, 5))
            sides[side].append((src, dst[side]))
    position = data.draw(st.integers(sides[0][0][1], dst[0] + 3))
    log = LogRange(0, dst[1] + 1)
    unconsumed = [there for (_, here), (_, there) in zip(*sides, strict=True) if here >= position]
    result = map_position(position, history_of_a(sides[0]), history_of_a(sides[1]), log)
    assert result.resume <= min(unconsumed, default=log.end)
    consumed = [there for (_, here), (_, there) in zip(*sides, strict=True) if here < position]
    assert result.resume > max(consumed, default=-1)
