"""What is found of a cluster beside its brokers: paths, vantages, the whole of it, and silence."""

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetgauge_core.contract import BrokerPulse, ProbePulse
from fleetgauge_core.detection import (
    Chain,
    Finding,
    FleetState,
    Phase,
    Subject,
    expect,
    judge,
    pass_time,
    remember,
    retire,
    rewound,
)
from tests.unit.core.detection.pulses import (
    at,
    broker,
    changes,
    hung,
    leg,
    pulse,
    recall,
)

BROKERS = (1, 2, 3)
ZONES = ("zone-a", "zone-b", "zone-c")
PULSE_S = 5

#: At a second, from a vantage: which brokers it does not reach.
Sick = Callable[[int, str], Iterable[int]]


def story(seconds: int, sick: Sick, zones: Iterable[str] = ZONES, start_s: int = 0) -> list[ProbePulse]:
    """A pulse of each vantage every 5 s; who is sick has been for long."""
    return [
        pulse(
            second + nth / 10,
            *(hung(30, b) if b in sick(second, zone) else broker(b) for b in BROKERS),
            vantage=zone,
        )
        for second in range(start_s, start_s + seconds, PULSE_S)
        for nth, zone in enumerate(zones)
    ]


def fold(pulses: Iterable[ProbePulse], state: FleetState | None = None) -> tuple[FleetState, list[Finding]]:
    state, found = state or FleetState(), []
    for one in pulses:
        state, findings = judge(state, one)
        found += findings
    return state, found


def told(findings: Iterable[Finding]) -> list[tuple[int, str | None, str]]:
    """Seconds, of whom, and what it is called from then on."""
    return [
        (int((one.event.at - at(0)).total_seconds()), one.subject.vantage, one.to_phase.value)
        for one in findings
        if one.names or one.clears
    ]


def is_named(one: Finding) -> bool:
    return one.names and one.event.broker_id is not None


# One vantage against others --------------------------------------------------------


def test_a_broker_that_one_vantage_alone_does_not_reach_is_that_vantages_path() -> None:
    _, findings = fold(story(120, lambda s, zone: {2} if zone == "zone-b" and 30 <= s < 90 else ()))
    assert told(findings) == [(30, "zone-b", "PATH"), (90, "zone-b", "HEALTHY")]
    named = findings[0].event
    assert (named.broker_id, named.kind) == (None, "PATH")
    evidence = json.loads(named.evidence)
    assert (evidence["vantage"], evidence["broker"]) == ("zone-b", 2)
    assert set(evidence["vantages"]) == set(ZONES)


def test_a_vantage_that_alone_does_not_reach_most_brokers_is_ill_itself() -> None:
    _, findings = fold(story(120, lambda s, zone: (1, 2) if zone == "zone-b" and 30 <= s < 90 else ()))
    assert told(findings) == [(30, "zone-b", "VANTAGE_ILL"), (90, "zone-b", "HEALTHY")]
    assert json.loads(findings[0].event.evidence) == {"vantage": "zone-b", "brokers": [1, 2]}


def test_of_two_vantages_neither_names_a_broker_that_the_other_reaches() -> None:
    _, findings = fold(story(60, lambda _, zone: {2} if zone == "zone-b" else (), zones=("zone-a", "zone-b")))
    assert [kind for _, _, kind in told(findings)] == ["PATH"]


def test_a_broker_that_is_down_is_nobodys_path_however_pulses_fall() -> None:
    _, findings = fold(story(120, lambda s, _: {2} if 31 <= s < 90 else ()))
    assert [(second, kind) for second, _, kind in told(findings)] == [(35, "BROKER_DOWN"), (90, "HEALTHY")]


@given(
    st.floats(20, 30),
    st.lists(st.tuples(st.floats(0, 4.9), st.floats(0, 1), st.floats(0, 0.6)), min_size=2, max_size=3),
)
@settings(max_examples=200, deadline=None)
def test_a_broker_that_hangs_for_all_is_nobodys_path_whenever_they_ask_and_speak(
    hung_s: float, vantages: list[tuple[float, float, float]]
) -> None:
    """Of each vantage: when in 5 s it speaks, how long before the hang it was answered and acknowledged."""

    def seen(second: float, answered_s: float, acknowledged_s: float) -> BrokerPulse:
        since = second - hung_s
        if since < 0:
            return broker(2)
        leader = leg(failed=int(max(0, since - 5)), outstanding=min(since, 5), success=since + acknowledged_s)
        return broker(2, answer=since + answered_s, in_sync=since < 9, leader=leader)

    spoken = sorted(
        (start_s + phase_s, number)
        for start_s in range(0, 60, PULSE_S)
        for number, (phase_s, *_) in enumerate(vantages)
    )
    _, findings = fold(
        pulse(second, broker(1), seen(second, *vantages[number][1:]), broker(3), vantage=f"zone-{number}")
        for second, number in spoken
    )
    assert [kind for _, _, kind in told(findings)] == ["BROKER_DOWN"]


def test_a_vantage_speaks_of_the_moment_from_which_it_saw_nothing() -> None:
    """Who looks as well and spoke in between need not speak again."""

    def pulses(spoke_s: float) -> list[ProbePulse]:
        first = [pulse(0, *map(broker, BROKERS), vantage=zone) for zone in ("zone-a", "zone-b")]
        return [
            *first,
            pulse(spoke_s, *map(broker, BROKERS), vantage="zone-a"),
            pulse(10, broker(1), hung(7, 2), broker(3), vantage="zone-b"),
        ]

    # Both signs hold since 5.7.
    assert told(fold(pulses(9.0))[1]) == [(10, "zone-b", "PATH")]
    assert told(fold(pulses(7.0))[1]) == []


def test_a_path_that_turns_out_to_be_a_broker_ends_as_one() -> None:
    _, findings = fold(story(120, lambda s, zone: {2} if s >= (30 if zone == "zone-b" else 60) else ()))
    assert [(vantage, kind) for _, vantage, kind in told(findings)] == [
        ("zone-b", "PATH"),
        (None, "BROKER_DOWN"),
        ("zone-b", "HEALTHY"),
    ]


def test_a_vantage_that_falls_silent_takes_its_path_along() -> None:
    state, _ = fold(story(60, lambda _, zone: {2} if zone == "zone-b" else ()))
    _, findings = fold(story(60, lambda *_: (), zones=("zone-a", "zone-c"), start_s=60), state)
    assert [kind for _, _, kind in told(findings)] == ["HEALTHY"]


def test_a_watch_that_starts_again_neither_ends_nor_doubles_what_vantages_find() -> None:
    for sick in ({2}, {1, 2}):

        def unreached(_: int, zone: str, sick: Iterable[int] = sick) -> Iterable[int]:
            return sick if zone == "zone-a" else ()

        _, before = fold(story(60, unreached))
        state = remember(recall(before))
        assert fold(story(60, unreached, start_s=60), state)[1] == []
        _, after = fold(story(60, lambda *_: (), start_s=60), state)
        assert [one.subject for one in after if one.clears] == [one.subject for one in before if one.names]


def test_a_vantage_that_a_watch_knows_of_and_never_hears_takes_all_of_its_own_along() -> None:
    """As above, but a watch began anew between its last word and the end of that."""
    for sick in ((2,), (1, 2, 3)):
        before, _ = fold(story(60, lambda _, zone, sick=sick: sick if zone == "zone-b" else ()))
        _, findings = fold(story(60, lambda _, zone, sick=sick: sick if zone == "zone-b" else ()))
        state = remember(recall(findings))
        assert state.open_findings() == before.open_findings() != ()
        after, _ = fold(story(60, lambda *_: (), ("zone-a", "zone-c"), start_s=60), state)
        assert after.open_findings() == ()


@pytest.mark.parametrize("clock_s", range(-60, 11, 5))
def test_a_vantage_whose_clock_is_wrong_never_makes_a_broker_sick(clock_s: int) -> None:
    """It may be as far behind as you like, and as far ahead as a watch lets it be."""
    pulses = story(150, lambda second, zone: [2] if zone == "zone-b" and second >= 60 else [])
    wrong = timedelta(seconds=clock_s)
    heard = [
        replace(one, emitted_at=one.emitted_at + wrong) if one.vantage == "zone-b" else one for one in pulses
    ]
    _, findings = fold(heard)
    named = [one for one in findings if one.names]
    assert [(one.subject.chain, one.subject.vantage) for one in named] == [(Chain.PATH, "zone-b")]


def test_of_clusters_that_are_not_watched_any_more_everything_is_over_and_forgotten() -> None:
    state, findings = fold(story(30, lambda *_: (2,)))
    down = [one.subject for one in findings if one.names]
    other, _ = judge(state, pulse(30, broker(1), cluster="payments"))
    kept, over = retire(other, lambda one: one == "orders", at(40))
    assert [(one.subject, one.clears, one.event.at) for one in over] == [(one, True, at(40)) for one in down]
    assert set(kept.clusters) == {"payments"}
    assert retire(kept, lambda one: one == "orders", at(41)) == (kept, ())


def test_a_watch_that_starts_does_not_name_whom_the_first_vantage_alone_does_not_reach() -> None:
    _, findings = fold(story(60, lambda _, zone: {2} if zone == "zone-a" else ()))
    assert not any(map(is_named, findings))


# The whole cluster ------------------------------------------------------------------


def test_a_cluster_of_which_nobody_answers_is_one_finding_and_not_many() -> None:
    _, findings = fold(story(120, lambda s, _: BROKERS if 30 <= s < 90 else ()))
    assert [(second, kind) for second, _, kind in told(findings)] == [(30, "CLUSTER_DOWN"), (90, "HEALTHY")]
    assert not any(map(is_named, findings))


def test_brokers_of_a_cluster_that_comes_back_are_given_time_and_then_named() -> None:
    _, findings = fold(story(120, lambda s, _: BROKERS if 30 <= s < 60 else (3,) if s >= 60 else ()))
    kinds = [(second, kind) for second, _, kind in told(findings)]
    assert kinds == [(30, "CLUSTER_DOWN"), (60, "HEALTHY"), (70, "BROKER_DOWN")]


def test_the_only_broker_of_a_cluster_is_named_itself() -> None:
    pulses = [pulse(0, broker()), *(pulse(PULSE_S * n, hung(30)) for n in range(1, 4))]
    assert [kind for _, _, kind in told(fold(pulses)[1])] == ["BROKER_DOWN"]


# Cut off -----------------------------------------------------------------------------


def cut_off(broker_id: int, fenced: bool = False) -> BrokerPulse:
    """It answers nobody and stays in sync."""
    return replace(hung(5, broker_id), in_sync=True, fenced=fenced)


def test_a_broker_that_its_cluster_goes_on_hearing_is_called_cut_off_after_half_a_minute() -> None:
    pulses = [pulse(PULSE_S * n, cut_off(1), broker(2)) for n in range(1, 20)]
    _, findings = fold([pulse(0, broker(1), broker(2)), *pulses, pulse(100, broker(1), broker(2))])
    kinds = [(second, kind) for second, _, kind in told(findings)]
    assert kinds == [(5, "BROKER_DOWN"), (35, "NETWORK_UNAVAILABLE"), (100, "HEALTHY")]
    assert len({one.event.fingerprint for one in findings}) == 1
    assert [one.clears for one in findings] == [False, False, True]
    state = remember(findings[:-1])
    assert state.open_findings() == ((Subject("orders", Chain.BROKER_DOWN, 1), Phase.NETWORK_UNAVAILABLE),)


def test_a_broker_that_is_fenced_meanwhile_is_down() -> None:
    pulses = [pulse(PULSE_S * n, cut_off(1, fenced=n > 10), broker(2)) for n in range(1, 20)]
    _, findings = fold([pulse(0, broker(1), broker(2)), *pulses])
    assert [kind for _, _, kind in told(findings)] == ["BROKER_DOWN", "NETWORK_UNAVAILABLE", "BROKER_DOWN"]


# Leaving ------------------------------------------------------------------------------


def test_a_broker_that_is_removed_while_it_is_down_is_cleared() -> None:
    state, _ = fold([pulse(0, broker(1), broker(2)), pulse(5, hung(5, 1), broker(2))])
    assert len(state.open_findings()) == 1
    without = [pulse(PULSE_S * n, broker(2)) for n in range(2, 8)]
    for start in (state, remember(fold([pulse(0, broker(1)), pulse(5, hung(5))])[1])):
        _, findings = fold(without, start)
        assert [one.event.broker_id for one in findings if one.clears] == [1]


def test_an_agent_that_starts_and_knows_no_broker_yet_clears_none() -> None:
    state, findings = fold([pulse(0, broker(1), broker(2)), pulse(5, hung(5, 1), broker(2))])
    state, later = fold([pulse(PULSE_S * n) for n in range(2, 20)], state)
    assert changes([*findings, *later]) == [(1, "BROKER_DOWN"), (None, "NO_DATA")]


@pytest.mark.parametrize("restarts", [False, True])
def test_a_cluster_is_down_until_one_of_its_brokers_answers_whoever_starts_meanwhile(restarts: bool) -> None:
    state, before = fold(story(60, lambda second, _: BROKERS if second >= 30 else ()))
    if restarts:
        state = remember(recall(before))
    state, meanwhile = fold([*(pulse(60 + PULSE_S * n) for n in range(60)), pulse(360, hung(330, 1))], state)
    state, after = fold([pulse(365, broker(1), hung(335, 2), hung(335, 3))], state)
    assert [kind for _, _, kind in told(before)] == ["CLUSTER_DOWN"]
    assert told(meanwhile) == []
    assert told(after) == [(365, None, "HEALTHY")]


def test_of_a_cluster_that_an_agent_never_reaches_nothing_is_heard() -> None:
    """Be it down since before the agent began, or in no network of it."""
    state = expect(FleetState(), ["orders"], at(0))
    _, findings = fold([pulse(PULSE_S * n) for n in range(20)], state)
    assert [(one.to_phase, one.event.at) for one in findings] == [(Phase.NO_DATA, at(30))]
    _, findings = fold([pulse(PULSE_S * n, *((broker(),) if n > 9 else ())) for n in range(20)], state)
    assert [(one.to_phase, one.event.at) for one in findings] == [
        (Phase.NO_DATA, at(30)),
        (Phase.HEALTHY, at(50)),
    ]


# Flapping ----------------------------------------------------------------------------


def flapping(times: int, calm_s: int) -> list[ProbePulse]:
    """Gone for two pulses of four, then well."""
    turns = [*[True, True, False, False] * times, *[False] * (calm_s // PULSE_S)]
    return [
        pulse(PULSE_S * n, hung(8) if gone else broker(leader=leg(success=0.2)), broker(2))
        for n, gone in enumerate([False, *turns])
    ]


def test_a_broker_that_flaps_is_named_a_third_time_and_then_held_until_it_has_been_calm() -> None:
    pulses = flapping(10, calm_s=300)
    _, findings = fold(pulses)
    kinds = [(second, kind) for second, _, kind in told(findings)]
    assert [kind for _, kind in kinds] == ["BROKER_DOWN", "HEALTHY"] * 3
    last_gone_s, cleared_s = 10 * 4 * PULSE_S - 2 * PULSE_S, kinds[-1][0]
    assert cleared_s - last_gone_s == PULSE_S + 120
    for cut in range(0, len(pulses), 7):
        _, before = fold(pulses[:cut])
        _, after = fold(pulses[cut:], remember(before))
        assert sum(one.names for one in [*before, *after]) == 3


def test_a_broker_that_hangs_again_after_a_while_does_not_flap() -> None:
    state, times = FleetState(), []
    for turn in range(6):
        start_s = 301 * turn
        state, findings = fold(
            [
                pulse(start_s, broker(), broker(2)),
                pulse(start_s + 5, hung(5), broker(2)),
                pulse(start_s + 10, broker(leader=leg(success=0.2)), broker(2)),
            ],
            state,
        )
        times += [one.names for one in findings if one.subject.chain is Chain.BROKER_DOWN]
    assert times == [True, False] * 6


# Silence -----------------------------------------------------------------------------


def test_a_cluster_of_which_nothing_is_heard_for_half_a_minute_is_without_data_once() -> None:
    state, _ = fold([pulse(0, broker()), pulse(2, broker(), cluster="payments")])
    state, findings = pass_time(state, at(31.5))
    assert [(one.event.cluster_id, one.to_phase, one.event.at) for one in findings] == [
        ("orders", Phase.NO_DATA, at(30))
    ]
    assert pass_time(state, at(31.9))[1] == ()
    _, findings = judge(state, pulse(40, broker()))
    assert [(one.event.cluster_id, one.clears) for one in findings] == [("orders", True)]


def test_what_comes_late_after_all_ends_a_silence_no_earlier_than_it_began() -> None:
    """Else whoever reads both in order of time takes it for open still."""
    state, findings = pass_time(fold([pulse(0, broker())])[0], at(40))
    for known, late_s in (
        (state, 15),
        (remember(recall(findings)), 15),
        (expect(state, ["orders"], at(1)), 8),
    ):
        after, ended = judge(known, pulse(late_s, broker()))
        assert [(one.clears, one.event.at) for one in ended] == [(True, at(30.001))]
        assert remember(recall([*findings, *ended])).open_findings() == after.open_findings() == ()


def test_a_silence_found_by_a_clock_that_was_an_hour_ahead_blinds_nobody() -> None:
    state, findings = pass_time(expect(FleetState(), ["orders"], at(3600)), at(3640))
    for known in (state, remember(recall(findings))):
        began = expect(known, ["orders"], at(0))
        state, found = fold(story(90, lambda second, _: (2,) if second >= 60 else ()), began)
        assert [kind for _, _, kind in told(found)] == ["HEALTHY", "BROKER_DOWN"]
        assert found[-1].event.at < at(90)
        _, again = pass_time(state, at(130))
        assert [one.to_phase for one in again] == [Phase.NO_DATA]
        silences = [one for one in (*findings, *found, *again) if one.subject.chain is Chain.NO_DATA]
        times = [one.event.at for one in recall(silences)]
        assert len(times) == len(set(times)) == 3
        assert times == sorted(times)


def test_by_a_clock_that_is_set_back_brokers_are_named_and_cleared_as_ever() -> None:
    """Watch and agent had the same clock, an hour ahead."""

    def sick(second: int, _: str) -> Iterable[int]:
        return (2,) if second >= 3660 or 60 <= second < 90 else ()

    ahead, before = fold(story(90, sick, start_s=3600))
    state = expect(rewound(ahead, at(0)), ["orders"], at(0))
    assert state.open_findings() == ahead.open_findings() != ()
    state, after = fold(story(120, sick), state)
    assert [kind for _, _, kind in told(before)] == ["BROKER_DOWN"]
    assert [kind for _, _, kind in told(after)] == ["HEALTHY", "BROKER_DOWN", "HEALTHY"]
    assert all(one.event.at < at(120) for one in after)
    assert [one.to_phase for one in pass_time(state, at(160))[1]] == [Phase.NO_DATA]


def test_a_cluster_that_was_never_heard_of_is_missed_as_well() -> None:
    state = expect(FleetState(), ["orders", "payments"], at(0))
    state, _ = judge(state, pulse(10, broker()))
    assert [one.event.cluster_id for one in pass_time(state, at(30))[1]] == ["payments"]


def test_who_looks_when_does_not_change_what_is_found() -> None:
    state, _ = judge(FleetState(), pulse(0, broker()))
    assert pass_time(state, at(30))[1] == pass_time(state, at(300))[1]
    assert pass_time(state, at(29.9))[1] == ()


def test_what_is_silent_while_a_watch_starts_is_not_said_again() -> None:
    state, _ = judge(FleetState(), pulse(0, broker()))
    _, findings = pass_time(state, at(60))
    again = expect(remember(findings), ["orders"], at(90))
    assert pass_time(again, at(300))[1] == ()
    assert [one.clears for one in judge(again, pulse(301, broker()))[1]] == [True]


# For all histories ---------------------------------------------------------------

_SICK = st.sets(st.sampled_from(BROKERS))
_HISTORIES = st.lists(st.tuples(_SICK, _SICK, _SICK), max_size=25)


def _pulses(history: list[tuple[set[int], ...]]) -> list[ProbePulse]:
    def sick(second: int, zone: str) -> Iterable[int]:
        return history[second // PULSE_S][ZONES.index(zone)]

    return story(PULSE_S * len(history), sick)


@given(_HISTORIES)
@settings(deadline=None)
def test_every_subjects_events_join_into_one_chain_and_ids_are_given_once(
    history: list[tuple[set[int], ...]],
) -> None:
    state, findings = fold(_pulses(history))
    ids = [one.event.event_id for one in findings]
    assert len(ids) == len(set(ids))
    last: dict[Subject, Phase] = {}
    for one in findings:
        assert one.from_phase is last.get(one.subject, Phase.HEALTHY)
        assert one.from_phase is not one.to_phase
        last[one.subject] = one.to_phase
    assert dict(state.open_findings()) == {one: phase for one, phase in last.items() if phase.names}


@given(_HISTORIES)
@settings(deadline=None)
def test_a_watch_remembers_all_that_is_open_from_its_events(history: list[tuple[set[int], ...]]) -> None:
    state, findings = fold(_pulses(history))
    remembered = remember(recall(findings))
    assert remembered.open_findings() == state.open_findings()


@given(_HISTORIES)
@settings(deadline=None)
def test_no_broker_is_named_that_most_vantages_reach(history: list[tuple[set[int], ...]]) -> None:
    for one in fold(_pulses(history))[1]:
        if is_named(one):
            vantages = json.loads(one.event.evidence)["vantages"]
            assert sum(one["unanswered"] and one["leg_silent"] for one in vantages.values()) >= 2


@given(_HISTORIES, st.integers(0, 30))
@settings(deadline=None)
def test_time_that_passes_alone_names_nobody_but_what_is_silent(
    history: list[tuple[set[int], ...]], seconds: int
) -> None:
    state, _ = fold(_pulses(history))
    _, findings = pass_time(state, at(PULSE_S * len(history)) + timedelta(seconds=seconds))
    assert all(one.to_phase is Phase.NO_DATA for one in findings)
