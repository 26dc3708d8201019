from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_operations.recovery.offsets.checkpoint import Log, TopicIds
from fleetgauge_operations.recovery.offsets.mapping import (
    Answer,
    Rule,
    Why,
    best,
    mapped,
)
from fleetgauge_operations.recovery.offsets.offset_sync_store import History
from tests.unit.operations.recovery.known import Pairs, known

#: Uber's figure 6: which message of which region lies where.
FIGURE_6 = {
    "active": ["B1", "B2", "A1", "A2", "B3", "B4", "A3", "A4"],
    "passive": ["A1", "A2", "B1", "B2", "A3", "A4", "B3", "B4"],
}
LOG = Log(0, 8)


def every(log: list[str], nth: int) -> dict[str, History]:
    """A checkpoint for every nth message of each source."""
    pairs: dict[str, list[tuple[int, int]]] = {"A": [], "B": []}
    for offset, message in enumerate(log):
        number = int(message[1:])
        if number % nth == 0:
            pairs[message[0]].append((number - 1, offset))
    return {source: known(some) for source, some in pairs.items()}


def figure_6(position: int, rule: Rule, nth: int = 2) -> Answer:
    return mapped(position, every(FIGURE_6["active"], nth), every(FIGURE_6["passive"], nth), LOG, rule)


def of_a(pairs: Pairs = (), watermarks: Pairs = (), fences: Pairs = ()) -> Mapping[str, History]:
    return {"A": known(pairs, watermarks, fences)}


def duplicates(resume: int) -> list[str]:
    consumed = FIGURE_6["active"][:6]
    return [one for one in FIGURE_6["passive"][resume:] if one in consumed]


def test_figure_6_as_published() -> None:
    answer = figure_6(6, Rule.UBER)
    assert answer.resume == 1
    assert [one.resume for one in answer.per_source.values()] == [1, 7]
    assert duplicates(1) == ["A2", "B1", "B2", "B3", "B4"]


def test_figure_6_one_past_what_is_consumed() -> None:
    assert figure_6(6, Rule.PLUS_ONE).resume == 2
    assert len(duplicates(2)) == 4


def test_figure_6_with_a_checkpoint_for_each_message_is_as_good_as_it_can_be() -> None:
    assert [figure_6(6, rule, nth=1).resume for rule in Rule] == [4, 4, 4]
    assert FIGURE_6["passive"].index("A3") == 4
    assert duplicates(4) == ["B3", "B4"]


def test_a_checkpoint_of_the_very_next_record_says_where_that_lies() -> None:
    active, passive = of_a([(1, 3)]), of_a([(1, 1), (2, 4)])
    assert [mapped(6, active, passive, LOG, rule).resume for rule in Rule] == [1, 2, 4]


def test_the_best_answer_is_by_the_simplest_rule_that_gives_it() -> None:
    sides = [every(FIGURE_6[side], 2) for side in ("active", "passive")]
    answer = best(6, sides[0], sides[1], LOG)
    assert (answer.rule, answer.resume) == (Rule.PLUS_ONE, 2)
    answer = best(6, of_a([(1, 3)]), of_a([(1, 1), (2, 4)]), LOG)
    assert (answer.rule, answer.resume) == (Rule.WATERMARK, 4)
    # Consumed up to the record at the position and no further: all agree, and the published rule will do.
    same = of_a([(0, 0), (5, 5)])
    assert best(5, same, same, LOG).rule is Rule.UBER


@pytest.mark.parametrize("rule", Rule)
def test_the_record_at_the_position_is_still_to_be_read(rule: Rule) -> None:
    assert mapped(5, of_a([(5, 5)]), of_a([(5, 7)]), LOG, rule).resume == 7


def test_no_rule_goes_back_as_the_position_goes_on() -> None:
    # The record at 5 is not consumed at 5, which would make the answer by an earlier checkpoint one less.
    active, passive = of_a([(0, 0), (5, 5)]), of_a([(0, 0)])
    for rule in Rule:
        answers = [mapped(at, active, passive, LOG, rule).resume for at in range(9)]
        assert answers == sorted(answers)


@pytest.mark.parametrize("rule", Rule)
def test_the_answer_lies_in_the_log(rule: Rule) -> None:
    early = mapped(9, of_a([(5, 5)]), of_a([(5, 7)]), Log(20, 30), rule)
    assert (early.resume, early.possible_loss) == (20, True)
    late = mapped(9, of_a([(5, 5)]), of_a([(5, 7)]), Log(0, 8), rule)
    assert (late.resume <= 8, late.possible_loss) == (True, False)


@pytest.mark.parametrize(
    ("active", "passive", "why"),
    [
        ({}, of_a([(0, 0)]), Why.NOT_IN_ACTIVE),
        (of_a(), of_a([(0, 0)]), Why.NOT_IN_ACTIVE),
        (of_a([(9, 9)]), of_a([(0, 0)]), Why.NOT_IN_ACTIVE),
        (of_a([(0, 0)]), {}, Why.NOT_IN_PASSIVE),
        (of_a([(0, 0)]), of_a(), Why.NOT_IN_PASSIVE),
        (of_a([(0, 0)]), of_a([(2, 3)]), Why.NOT_IN_PASSIVE),
        ({"A": known([(0, 0)], ids=TopicIds("new", "d"))}, of_a([(0, 0)]), Why.MADE_ANEW),
    ],
)
def test_a_source_of_which_too_little_is_known_is_unbounded(
    active: Mapping[str, History], passive: Mapping[str, History], why: Why
) -> None:
    others = {"B": known([(0, 1)])}
    for rule in Rule:
        answer = mapped(6, {**active, **others}, {**passive, **others}, Log(4, 90), rule)
        assert (answer.unbounded, answer.resume, answer.early_at_most) == (True, 4, None)
        assert answer.per_source["A"].why is why
        assert answer.per_source["B"].resume is not None


def test_without_any_source_all_is_read_again() -> None:
    assert mapped(6, {}, {}, Log(4, 90)).unbounded


def a_silent_source(
    count: int = 100_000, spacing: int = 100
) -> tuple[dict[str, History], dict[str, History]]:
    """Ten messages of A, then so many of B, all consumed; A's last is looked for once B is through."""
    end = 10 + count
    sides = []
    for _ in range(2):
        of_b = [(n, 10 + n) for n in range(0, count, spacing)]
        sides.append({"A": known([(0, 0), (9, 9)], watermarks=[(10, end)]), "B": known(of_b)})
    return sides[0], sides[1]


def test_a_silent_source_holds_everything_back_unless_it_has_a_watermark() -> None:
    active, passive = a_silent_source()
    end = 100_010
    answers = {rule: mapped(end, active, passive, Log(0, end), rule) for rule in Rule}
    assert [answers[rule].resume for rule in Rule] == [9, 10, 99_911]
    assert answers[Rule.WATERMARK].per_source["A"].why is Why.WATERMARK
    assert answers[Rule.WATERMARK].early_at_most == end - 99_911 == 99


def test_a_watermark_of_passive_needs_all_of_the_source_to_be_consumed() -> None:
    passive = of_a([(0, 0)], watermarks=[(10, 70)])
    log = Log(0, 80)
    assert mapped(50, of_a([(0, 0), (8, 8)]), passive, log).resume == 1
    assert mapped(50, of_a([(0, 0), (9, 9)]), passive, log).resume == 70
    assert mapped(9, of_a([(0, 0), (9, 9)]), passive, log).resume == 1


def test_a_watermark_of_active_says_that_all_of_the_source_is_consumed() -> None:
    active, passive = of_a([(0, 0)], watermarks=[(10, 40)]), of_a([(0, 0)], watermarks=[(10, 70)])
    log = Log(0, 80)
    assert mapped(39, active, passive, log).resume == 1
    assert mapped(40, active, passive, log).resume == 70


def test_a_source_that_never_wrote_is_bounded_by_watermarks_alone() -> None:
    active, passive = of_a(watermarks=[(0, 40)]), of_a(watermarks=[(0, 70)])
    assert mapped(40, active, passive, Log(0, 80)).resume == 70
    assert mapped(39, active, passive, Log(0, 80)).unbounded
    assert mapped(40, active, passive, Log(0, 80), Rule.PLUS_ONE).unbounded


def test_a_watermark_beyond_the_logs_end_is_of_another_log() -> None:
    passive = of_a([(0, 0)], watermarks=[(1, 70)])
    assert mapped(9, of_a([(0, 0)]), passive, Log(0, 60)).resume == 1


def test_a_fence_lifts_what_was_copied_again() -> None:
    twice = [(0, 0), (30, 30), (10, 60), (40, 90)]
    active = of_a([(0, 0), (40, 40)])
    log = Log(0, 120)
    assert mapped(45, active, of_a(twice), log).resume == 31
    assert mapped(45, active, of_a(twice, fences=[(38, 85)]), log).resume == 85


def test_how_early_it_may_be_is_said() -> None:
    active, passive = of_a([(0, 0), (10, 10), (20, 20)]), of_a([(0, 0), (10, 30), (20, 60)])
    answer = mapped(15, active, passive, Log(0, 100))
    assert (answer.resume, answer.early_at_most) == (31, 29)
    # All that is known is consumed: the first that is not may be the next to be written.
    assert mapped(25, active, passive, Log(0, 100)).early_at_most == 39


@given(st.data())
def test_with_one_source_and_every_record_known_the_answer_is_exact(data: st.DataObject) -> None:
    gaps = st.lists(st.integers(1, 5), min_size=1, max_size=30)
    src, dst = 0, [0, 0]
    sides: tuple[list[tuple[int, int]], list[tuple[int, int]]] = ([], [])
    for step in data.draw(gaps):
        src += step
        for side in (0, 1):
            dst[side] += data.draw(st.integers(1, 5))
            sides[side].append((src, dst[side]))
    position = data.draw(st.integers(sides[0][0][1], dst[0] + 3))
    log = Log(0, dst[1] + 1)
    left = [there for (_, here), (_, there) in zip(*sides, strict=True) if here >= position]
    answer = mapped(position, of_a(sides[0]), of_a(sides[1]), log)
    assert answer.resume <= min(left, default=log.end)
    consumed = [there for (_, here), (_, there) in zip(*sides, strict=True) if here < position]
    assert answer.resume > max(consumed, default=-1)
