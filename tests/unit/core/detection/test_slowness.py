"""Brokers that are slow, against others and against themselves."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from random import Random
from statistics import median_low

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetgauge_core.contract import (
    BrokerPulse,
    Leg,
    LegPulse,
    ProbePulse,
)
from fleetgauge_core.detection import (
    DEFAULT_THRESHOLDS,
    Finding,
    FleetState,
    History,
    HistoryOf,
    Phase,
    judge,
    learnt,
    remember,
)
from fleetgauge_core.detection.slowness import Took, measured
from tests.unit.core.detection.pulses import (
    away,
    broker,
    hung,
    pulse,
    recall,
)

EVERY_S = 5
HOUR_S = 3_600


def pace(broker_id: int, p50_ms: float, p99_ms: float | None = None, succeeded: int = 25) -> BrokerPulse:
    """One whose leader leg took so long in the last 15 s."""
    p50_us, p99_us = round(p50_ms * 1000), round((p99_ms or p50_ms) * 1000)
    leader = LegPulse(Leg.LEADER, succeeded, succeeded, 0, 0, None, 300, p50_us, p99_us)
    return broker(broker_id, leader=leader)


def usual(broker_id: int) -> BrokerPulse:
    return pace(broker_id, 4, 12)


def fold(pulses: Iterable[ProbePulse], state: FleetState | None = None) -> tuple[FleetState, list[Finding]]:
    state, found = state or FleetState(), []
    for one in pulses:
        state, findings = judge(state, one)
        found += findings
    return state, found


def story(
    of_broker_1: Sequence[BrokerPulse],
    others: Sequence[BrokerPulse] = (usual(2), usual(3)),
    start_s: float = 0,
) -> list[ProbePulse]:
    """A pulse every 5 s."""
    return [pulse(start_s + EVERY_S * n, one, *others) for n, one in enumerate(of_broker_1)]


def slowly(seconds: float, p50_ms: float, p99_ms: float | None = None) -> list[BrokerPulse]:
    return [pace(1, p50_ms, p99_ms)] * round(seconds / EVERY_S)


def well(seconds: float) -> list[BrokerPulse]:
    return [usual(1)] * round(seconds / EVERY_S)


def named(findings: Iterable[Finding]) -> list[tuple[int | None, str]]:
    return [(one.event.broker_id, one.event.kind) for one in findings if one.names]


def seconds_of(one: Finding) -> float:
    return (one.event.at - pulse(0).emitted_at).total_seconds()


# Naming ------------------------------------------------------------------------


def test_brokers_that_are_all_as_slow_are_nobodys_finding() -> None:
    assert fold(story(slowly(600, 300), [pace(2, 280), pace(3, 320)]))[1] == []


def test_a_broker_that_is_slow_for_a_minute_is_named_alone_and_once() -> None:
    _, findings = fold(story(well(60) + slowly(600, 50)))
    assert named(findings) == [(1, "DEGRADED")]
    assert seconds_of(findings[0]) - 60 <= 60


def test_less_than_a_minute_is_not_named() -> None:
    assert fold(story([*well(60), *slowly(45, 300), *well(300)]))[1] == []


def test_neither_three_times_the_peers_nor_the_floor_is_enough_alone() -> None:
    assert fold(story(well(60) + slowly(600, 19.9, 90)))[1] == []
    assert fold(story(well(60) + slowly(600, 50, 90), [pace(2, 17, 80), pace(3, 17, 80)]))[1] == []


def test_a_slow_tail_is_named_when_most_windows_of_two_minutes_hold_it() -> None:
    tail, none = pace(1, 4, 200), usual(1)
    mostly = [one for turn in range(8) for one in [none if turn % 4 == 3 else tail] * 3]
    _, findings = fold(story(mostly))
    assert named(findings) == [(1, "DEGRADED")]
    assert json.loads(findings[0].event.evidence)["slow"] == "some"


@pytest.mark.parametrize(
    ("windows", "is_named"),
    [
        ({"zone-a": 6}, True),
        ({"zone-a": 5}, False),
        ({"zone-a": 7, "zone-b": 5}, True),
        ({"zone-a": 6, "zone-b": 5}, False),
        ({"zone-a": 12, "zone-b": 4}, False),
        ({"zone-a": 12, "zone-b": 5, "zone-c": 4}, True),
        ({"zone-a": 12, "zone-b": 4, "zone-c": 5}, True),
        ({"zone-a": 12, "zone-b": 12, "zone-c": 0}, True),
        ({"zone-a": 12, "zone-b": 4, "zone-c": 4}, False),
    ],
)
def test_vantages_together_see_a_tail_and_none_of_them_alone(windows: dict[str, int], is_named: bool) -> None:
    def seen(vantage: str, turn: int) -> BrokerPulse:
        return pace(1, 4, 200) if turn < windows[vantage] else usual(1)

    rounds = [
        pulse(EVERY_S * n, seen(vantage, n // 3), usual(2), usual(3), vantage=vantage)
        for n in range(36)
        for vantage in windows
    ]
    assert named(fold(rounds)[1]) == [(1, "DEGRADED")] * is_named


def test_now_and_then_a_collection_of_garbage_is_no_finding() -> None:
    spiky = [one for turn in range(40) for one in [pace(1, 4, 180) if turn % 3 == 0 else usual(1)] * 3]
    assert fold(story(spiky))[1] == []


def test_with_two_brokers_the_slow_one_is_named() -> None:
    assert named(fold(story(slowly(120, 60), [usual(2)]))[1]) == [(1, "DEGRADED")]


def test_a_broker_alone_is_named_from_a_higher_floor_on() -> None:
    assert fold(story(slowly(300, 99, 99), []))[1] == []
    assert named(fold(story(slowly(120, 101), []))[1]) == [(1, "DEGRADED")]


def test_what_has_always_been_so_of_one_broker_is_not_named_once_there_is_an_hour_of_it() -> None:
    """It stands further away, say: 19 ms for 4, under the floor, and sometimes over it."""
    farther = slowly(1.1 * HOUR_S, 19, 40)
    state, findings = fold(story(farther))
    assert findings == []
    more = story(slowly(300, 55, 90), start_s=1.1 * HOUR_S)
    assert fold(more, state)[1] == []
    assert named(fold(more)[1]) == [(1, "DEGRADED")]
    much_more = story(slowly(300, 60, 200), start_s=1.1 * HOUR_S)
    assert named(fold(much_more, state)[1]) == [(1, "DEGRADED")]


def test_what_was_so_from_the_start_is_held_against_a_broker_only_where_it_is_much() -> None:
    random = Random(3)
    around_the_floor = [pace(1, random.uniform(17, 26)) for _ in range(round(HOUR_S / EVERY_S))]
    assert fold(story(around_the_floor))[1] == []
    assert fold(story(slowly(HOUR_S, 49)))[1] == []
    assert named(fold(story(slowly(120, 51)))[1]) == [(1, "DEGRADED")]


def test_whoever_was_well_for_a_minute_has_shown_what_it_can() -> None:
    assert named(fold(story(well(60) + slowly(120, 21)))[1]) == [(1, "DEGRADED")]
    assert named(fold(story(well(60) + slowly(120, 20)))[1]) == []


def test_a_start_that_was_slow_is_forgotten_when_better_was_seen() -> None:
    warming_up = story(slowly(120, 15) + well(60) + slowly(120, 25))
    assert named(fold(warming_up)[1]) == [(1, "DEGRADED")]


def test_slowness_does_not_become_what_is_usual() -> None:
    state, findings = fold(story(well(1.1 * HOUR_S) + slowly(2 * HOUR_S, 60)))
    assert [one.names for one in findings] == [True]
    assert [phase for _, phase in state.open_findings()] == [Phase.DEGRADED]


def test_too_few_probes_say_nothing() -> None:
    assert fold(story([pace(1, 300, succeeded=9)] * 60))[1] == []
    assert fold(story([away(1)] * 60))[1] == []


def test_a_broker_that_hangs_is_down_and_not_slow() -> None:
    stops = [hung(EVERY_S * n) for n in range(1, 60)]
    assert named(fold(story([*well(60), *stops]))[1]) == [(1, "BROKER_DOWN")]


def test_what_waited_for_a_broker_that_is_down_again_and_again_does_not_make_it_slow_as_well() -> None:
    client, leader = hung(8).legs
    gone = replace(hung(8), legs=(client, replace(leader, p50_us=2_000_000, p99_us=5_000_000)))
    turns = [gone, gone, pace(1, 2_000, 5_000), pace(1, 2_000, 5_000)] * 12
    assert set(named(fold(story([*well(60), *turns]))[1])) == {(1, "BROKER_DOWN")}


def test_most_vantages_have_to_see_it() -> None:
    def seen(*slow_from: str) -> list[tuple[int | None, str]]:
        pulses = [
            pulse(
                EVERY_S * n,
                pace(1, 60) if vantage in slow_from else usual(1),
                usual(2),
                usual(3),
                vantage=vantage,
            )
            for n in range(40)
            for vantage in ("zone-a", "zone-b", "zone-c")
        ]
        return named(fold(pulses)[1])

    assert seen("zone-a") == []
    assert seen("zone-a", "zone-c") == [(1, "DEGRADED")]


def test_a_quiet_day_of_brokers_that_are_as_uneven_as_real_ones_names_nobody() -> None:
    """Medians of 3 ms or so, tails to 90 ms, and in one window of 20 a pause of up to 300 ms."""
    random = Random(7)

    def window(broker_id: int) -> BrokerPulse:
        p50_ms = 3 * random.lognormvariate(0, 0.5)
        pause_ms = random.uniform(100, 300) if random.random() < 0.05 else 0
        return pace(broker_id, p50_ms, max(p50_ms * random.uniform(2, 10), pause_ms))

    _, findings = fold(pulse(15 * n, *map(window, range(5))) for n in range(24 * 240))
    assert findings == []


# Clearing ------------------------------------------------------------------------


def test_it_is_cleared_thirty_seconds_after_the_last_slow_probe() -> None:
    """The window of a pulse looks back 15 s: the first without slow probes is that long after the end."""
    _, findings = fold(story(slowly(300, 60) + well(300)))
    last_slow_s = 300 - EVERY_S
    assert [one.clears for one in findings] == [False, True]
    assert seconds_of(findings[1]) - last_slow_s == 20
    assert findings[0].event.fingerprint == findings[1].event.fingerprint


def test_a_tail_has_to_be_away_for_longer() -> None:
    tail = [pace(1, 4, 200)] * 60
    between = [*well(45), pace(1, 4, 200)]
    _, findings = fold(story([*tail, *between, *between, *well(120)]))
    assert [one.clears for one in findings] == [False, True]
    assert seconds_of(findings[1]) == 300 + 100 + 60


def test_a_broker_that_tells_nothing_stays_named() -> None:
    state, _ = fold(story(slowly(120, 60)))
    state, findings = fold(story([away(1)] * 60, start_s=120), state)
    assert findings == []
    assert len(state.open_findings()) == 1


def test_a_watch_that_starts_again_neither_names_again_nor_forgets_to_clear() -> None:
    _, before = fold(story(slowly(120, 60)))
    state = remember(recall(before))
    _, findings = fold(story(slowly(120, 60) + well(60), start_s=120), state)
    assert [one.clears for one in findings] == [True]


def test_a_watch_that_starts_again_knows_what_a_broker_usually_takes() -> None:
    """One without peers is slow at 60 ms only beside its own last hour."""
    state, histories = FleetState(), dict[HistoryOf, History]()
    for one in story([pace(1, 4)] * round(HOUR_S / EVERY_S), others=()):
        before, (state, _) = state, judge(state, one)
        histories |= learnt(before, state, one)
    slow = story(slowly(120, 60), others=(), start_s=HOUR_S)
    for start, names in ((state, [True]), (remember([], histories), [True]), (FleetState(), [])):
        assert [one.names for one in fold(slow, start)[1]] == names


# For all histories ---------------------------------------------------------------

_PACES = st.tuples(st.integers(1_000, 400_000), st.integers(0, 400_000))


@given(st.lists(_PACES, min_size=1, max_size=9))
def test_peers_are_the_median_of_the_others(paces: list[tuple[int, int]]) -> None:
    brokers = [pace(number, a / 1000, (a + b) / 1000) for number, (a, b) in enumerate(paces)]
    found = measured(pulse(0, *brokers), DEFAULT_THRESHOLDS)
    for number, (a, b) in enumerate(paces):
        others = [one for other, one in enumerate(paces) if other != number]
        assert found[number].took == Took(a, a + b)
        wanted = (
            Took(median_low(a for a, _ in others), median_low(a + b for a, b in others)) if others else None
        )
        assert found[number].peers == wanted


@given(st.lists(st.lists(st.sampled_from([4, 15, 50, 300]), min_size=3, max_size=3), max_size=60))
@settings(deadline=None)
def test_whoever_is_named_was_slower_than_its_peers_in_a_window_of_most_of_the_last_two_minutes(
    paces: list[list[int]],
) -> None:
    pulses = [
        pulse(15 * n, *(pace(number, one) for number, one in enumerate(of_brokers)))
        for n, of_brokers in enumerate(paces)
    ]
    _, findings = fold(pulses)
    for one in findings:
        if one.names and one.event.broker_id is not None:
            last = paces[: round(seconds_of(one) / 15) + 1][-8:]
            slower = sum(
                of_brokers[one.event.broker_id]
                > 3 * sorted(p for n, p in enumerate(of_brokers) if n != one.event.broker_id)[0]
                for of_brokers in last
            )
            assert slower >= 4
