from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_core.detection import DEFAULT_THRESHOLDS, Thresholds, build_episodes
from fleetgauge_operations.replay.comparison import ReplayVerdict, compare_findings, detect_findings
from tests.unit.core.detection.pulses import (
    at,
    broker,
    hung,
    pulse,
)
from tests.unit.operations.replay.stories import hang, incident, watched

HANG = incident(hang())


def verdicts(limits: Thresholds = DEFAULT_THRESHOLDS, wanted: bool = True) -> list[tuple[str, float | None]]:
    one = HANG if wanted else replace(HANG, wanted=())
    return [(pair.verdict.value, pair.later_s) for pair in compare_findings(one, limits)]


def test_the_rules_that_found_it_find_it_again() -> None:
    assert verdicts() == [("same", 0)]


def test_rules_that_are_slower_name_it_later() -> None:
    slower = replace(DEFAULT_THRESHOLDS, unanswered_ms=12_000)
    (found,) = verdicts(slower)
    assert found == ("later", 10)
    assert [
        pair.verdict
        for pair in compare_findings(replace(HANG, wanted=detect_findings(HANG, slower)), DEFAULT_THRESHOLDS)
    ] == [ReplayVerdict.EARLIER]


def test_rules_that_are_blind_miss_it() -> None:
    assert verdicts(replace(DEFAULT_THRESHOLDS, unanswered_ms=60_000)) == [("missed", None)]


def test_a_false_alarm_is_one_for_as_long_as_it_is_named() -> None:
    assert verdicts(wanted=False) == [("new", None)]
    assert verdicts(replace(DEFAULT_THRESHOLDS, unanswered_ms=60_000), wanted=False) == []


def test_what_was_before_it_does_not_count() -> None:
    later = incident([*hang(), *hang(240, 270, 360)[36:]], since=at(200))
    assert [pair.either.opened_at >= at(200) for pair in compare_findings(later, DEFAULT_THRESHOLDS)] == [
        True
    ]


def test_each_time_that_a_broker_is_named_is_compared_with_its_like() -> None:
    twice = incident([*hang(), *hang(240, 270, 360)[36:]])
    assert [one.cleared_at is not None for one in build_episodes(twice.wanted)] == [True, True]
    only_the_first = replace(twice, wanted=twice.wanted[:2])
    assert [one.verdict for one in compare_findings(only_the_first, DEFAULT_THRESHOLDS)] == [
        ReplayVerdict.SAME,
        ReplayVerdict.NEW,
    ]


def test_one_without_a_pulse_finds_nothing() -> None:
    assert detect_findings(replace(HANG, pulses=()), DEFAULT_THRESHOLDS) == ()


_GAPS_S = st.sampled_from([5, 5, 5, 5, 12, 34, 71])
_SEEN = st.lists(st.booleans(), min_size=3, max_size=3)


@given(st.lists(st.tuples(_GAPS_S, _SEEN), min_size=1, max_size=40), st.sampled_from([0.3, 1, 7]))
def test_it_finds_what_a_watch_found_that_looked_as_often_as_it_liked(
    story: list[tuple[int, list[bool]]], looks_every_s: float
) -> None:
    now, pulses, gone_s = 0, [], [0, 0, 0]
    for gap_s, seen in story:
        now += gap_s
        gone_s = [0 if there else before + gap_s for there, before in zip(seen, gone_s, strict=True)]
        pulses.append(pulse(now, *(hung(s, n) if s else broker(n) for n, s in enumerate(gone_s, 1))))
    live = watched(pulses, timedelta(seconds=looks_every_s))
    again = detect_findings(replace(incident(pulses), since=pulses[0].emitted_at), DEFAULT_THRESHOLDS)
    assert [one.event for one in again if one.is_alert or one.is_cleared] == [one.event for one in live]


@pytest.mark.parametrize("count", [0, 1])
def test_an_end_without_a_beginning_is_no_episode(count: int) -> None:
    assert len(build_episodes(HANG.wanted[1 - count :])) == count
