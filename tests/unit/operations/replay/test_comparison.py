"""Findings of a replay are compared with those that an incident expects."""

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
from tests.unit.operations.replay.sample_incidents import build_hang_pulses, build_incident, detect_as_watch

HANG = build_incident(build_hang_pulses())
FALSE_ALARM = replace(HANG, expected=())
SLOWER_RULES = replace(DEFAULT_THRESHOLDS, unanswered_ms=12_000)
INSENSITIVE_RULES = replace(DEFAULT_THRESHOLDS, unanswered_ms=60_000)


def compare(
    thresholds: Thresholds = DEFAULT_THRESHOLDS, is_expected: bool = True
) -> list[tuple[str, float | None]]:
    comparisons = compare_findings(HANG if is_expected else FALSE_ALARM, thresholds)
    return [(comparison.verdict.value, comparison.later_s) for comparison in comparisons]


def test_the_same_rules_detect_the_same_findings() -> None:
    assert compare() == [("same", 0)]


def test_slower_rules_detect_a_finding_later() -> None:
    assert compare(SLOWER_RULES) == [("later", 10)]
    detected_later = replace(HANG, expected=detect_findings(HANG, SLOWER_RULES))
    (comparison,) = compare_findings(detected_later, DEFAULT_THRESHOLDS)
    assert comparison.verdict is ReplayVerdict.EARLIER


def test_insensitive_rules_miss_a_finding() -> None:
    assert compare(INSENSITIVE_RULES) == [("missed", None)]


def test_a_false_alarm_expects_no_findings() -> None:
    assert compare(is_expected=False) == [("new", None)]
    assert compare(INSENSITIVE_RULES, is_expected=False) == []


def test_findings_before_the_incident_do_not_count() -> None:
    later = build_incident([*build_hang_pulses(), *build_hang_pulses(240, 270, 360)[36:]], since=at(200))
    (comparison,) = compare_findings(later, DEFAULT_THRESHOLDS)
    assert comparison.either.opened_at >= at(200)


def test_each_episode_of_a_broker_is_compared_with_its_counterpart() -> None:
    twice = build_incident([*build_hang_pulses(), *build_hang_pulses(240, 270, 360)[36:]])
    assert [episode.cleared_at is not None for episode in build_episodes(twice.expected)] == [True, True]
    first_only = replace(twice, expected=twice.expected[:2])
    assert [comparison.verdict for comparison in compare_findings(first_only, DEFAULT_THRESHOLDS)] == [
        ReplayVerdict.SAME,
        ReplayVerdict.NEW,
    ]


def test_an_incident_without_pulses_has_no_findings() -> None:
    assert detect_findings(replace(HANG, pulses=()), DEFAULT_THRESHOLDS) == ()


_GAPS_S = st.sampled_from([5, 5, 5, 5, 12, 34, 71])
_REACHABLE = st.lists(st.booleans(), min_size=3, max_size=3)


@given(st.lists(st.tuples(_GAPS_S, _REACHABLE), min_size=1, max_size=40), st.sampled_from([0.3, 1, 7]))
def test_a_replay_detects_what_a_watch_detected_whatever_its_sweep_interval(
    steps: list[tuple[int, list[bool]]], sweep_interval_s: float
) -> None:
    now_s, pulses, unreachable_s = 0, [], [0, 0, 0]
    for gap_s, reachable in steps:
        now_s += gap_s
        unreachable_s = [
            0 if is_reachable else before_s + gap_s
            for is_reachable, before_s in zip(reachable, unreachable_s, strict=True)
        ]
        brokers = (
            hung(seconds, broker_id) if seconds else broker(broker_id)
            for broker_id, seconds in enumerate(unreachable_s, 1)
        )
        pulses.append(pulse(now_s, *brokers))
    detected = detect_as_watch(pulses, timedelta(seconds=sweep_interval_s))
    replayed = detect_findings(
        replace(build_incident(pulses), since=pulses[0].emitted_at), DEFAULT_THRESHOLDS
    )
    replayed_events = [finding.event for finding in replayed if finding.is_alert or finding.is_cleared]
    assert replayed_events == [finding.event for finding in detected]


@pytest.mark.parametrize("count", [0, 1])
def test_an_alert_that_opened_earlier_has_no_episode(count: int) -> None:
    assert len(build_episodes(HANG.expected[1 - count :])) == count
