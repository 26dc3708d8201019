"""Findings of paths, vantages and whole clusters, and missing pulses."""

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetgauge_core.contract import BrokerPulse, ProbePulse
from fleetgauge_core.detection import (
    Finding,
    FindingSubject,
    FleetHealth,
    HealthCondition,
    HealthState,
    detect_no_data,
    expect_pulses,
    fold_pulse,
    remove_clusters,
    restore_fleet_health,
    rewind_clock,
)
from tests.unit.core.detection.pulses import (
    at,
    broker,
    encode_and_parse,
    fold_pulses,
    hung,
    leg,
    list_transitions,
    pulse,
)

BROKERS = (1, 2, 3)
ZONES = ("zone-a", "zone-b", "zone-c")
PULSE_S = 5

#: Returns the brokers that a vantage does not reach at a second.
Unreached = Callable[[int, str], Iterable[int]]


def history(
    seconds: int, unreached: Unreached, zones: Iterable[str] = ZONES, start_s: int = 0
) -> list[ProbePulse]:
    """One pulse of each vantage every 5 s; an unreached broker has been so for 30 s."""
    return [
        pulse(
            second + nth / 10,
            *(hung(30, b) if b in unreached(second, zone) else broker(b) for b in BROKERS),
            vantage=zone,
        )
        for second in range(start_s, start_s + seconds, PULSE_S)
        for nth, zone in enumerate(zones)
    ]


def alert_transitions(findings: Iterable[Finding]) -> list[tuple[int, str | None, str]]:
    """Return the second, the vantage and the new state of each finding that opens or clears an alert."""
    return [
        (int((finding.event.at - at(0)).total_seconds()), finding.subject.vantage, finding.to_state.value)
        for finding in findings
        if finding.is_alert or finding.is_cleared
    ]


def is_broker_alert(finding: Finding) -> bool:
    return finding.is_alert and finding.event.broker_id is not None


# Faults of a vantage --------------------------------------------------------


def test_a_broker_that_only_one_vantage_does_not_reach_is_a_path_finding() -> None:
    _, findings = fold_pulses(history(120, lambda s, zone: {2} if zone == "zone-b" and 30 <= s < 90 else ()))
    assert alert_transitions(findings) == [(30, "zone-b", "PATH"), (90, "zone-b", "HEALTHY")]
    event = findings[0].event
    assert (event.broker_id, event.kind) == (None, "PATH")
    evidence = json.loads(event.evidence)
    assert (evidence["vantage"], evidence["broker"]) == ("zone-b", 2)
    assert set(evidence["vantages"]) == set(ZONES)


def test_a_vantage_that_alone_does_not_reach_most_brokers_is_faulty() -> None:
    _, findings = fold_pulses(
        history(120, lambda s, zone: (1, 2) if zone == "zone-b" and 30 <= s < 90 else ())
    )
    assert alert_transitions(findings) == [(30, "zone-b", "VANTAGE_ILL"), (90, "zone-b", "HEALTHY")]
    assert json.loads(findings[0].event.evidence) == {"vantage": "zone-b", "brokers": [1, 2]}


def test_of_two_vantages_neither_raises_the_alert_of_a_broker_that_the_other_reaches() -> None:
    _, findings = fold_pulses(
        history(60, lambda _, zone: {2} if zone == "zone-b" else (), zones=("zone-a", "zone-b"))
    )
    assert [kind for _, _, kind in alert_transitions(findings)] == ["PATH"]


def test_a_broker_that_is_down_is_no_path_finding_whatever_the_order_of_pulses() -> None:
    _, findings = fold_pulses(history(120, lambda s, _: {2} if 31 <= s < 90 else ()))
    assert [(second, kind) for second, _, kind in alert_transitions(findings)] == [
        (35, "BROKER_DOWN"),
        (90, "HEALTHY"),
    ]


@given(
    st.floats(20, 30),
    st.lists(st.tuples(st.floats(0, 4.9), st.floats(0, 1), st.floats(0, 0.6)), min_size=2, max_size=3),
)
@settings(max_examples=200, deadline=None)
def test_a_hung_broker_is_no_path_finding_whatever_the_phases_of_the_vantages(
    hung_s: float, vantages: list[tuple[float, float, float]]
) -> None:
    """A vantage has a phase of its pulses, and ages of its last answer and acknowledgement at the hang."""

    def observe(second: float, answered_s: float, acknowledged_s: float) -> BrokerPulse:
        since = second - hung_s
        if since < 0:
            return broker(2)
        leader = leg(failed=int(max(0, since - 5)), outstanding=min(since, 5), success=since + acknowledged_s)
        return broker(2, answer=since + answered_s, in_sync=since < 9, leader=leader)

    pulse_times = sorted(
        (start_s + phase_s, number)
        for start_s in range(0, 60, PULSE_S)
        for number, (phase_s, *_) in enumerate(vantages)
    )
    _, findings = fold_pulses(
        pulse(second, broker(1), observe(second, *vantages[number][1:]), broker(3), vantage=f"zone-{number}")
        for second, number in pulse_times
    )
    assert [kind for _, _, kind in alert_transitions(findings)] == ["BROKER_DOWN"]


def test_an_observation_counts_from_when_both_signs_began_to_hold() -> None:
    """Another vantage that sent a pulse since then contradicts without sending one more."""

    def pulses(other_pulse_s: float) -> list[ProbePulse]:
        first = [pulse(0, *map(broker, BROKERS), vantage=zone) for zone in ("zone-a", "zone-b")]
        return [
            *first,
            pulse(other_pulse_s, *map(broker, BROKERS), vantage="zone-a"),
            pulse(10, broker(1), hung(7, 2), broker(3), vantage="zone-b"),
        ]

    # Both signs have held since second 5.7.
    assert alert_transitions(fold_pulses(pulses(9.0))[1]) == [(10, "zone-b", "PATH")]
    assert alert_transitions(fold_pulses(pulses(7.0))[1]) == []


def test_a_path_finding_clears_when_the_broker_is_down() -> None:
    _, findings = fold_pulses(
        history(120, lambda s, zone: {2} if s >= (30 if zone == "zone-b" else 60) else ())
    )
    assert [(vantage, kind) for _, vantage, kind in alert_transitions(findings)] == [
        ("zone-b", "PATH"),
        (None, "BROKER_DOWN"),
        ("zone-b", "HEALTHY"),
    ]


def test_the_path_finding_of_a_vantage_without_pulses_clears() -> None:
    state, _ = fold_pulses(history(60, lambda _, zone: {2} if zone == "zone-b" else ()))
    _, findings = fold_pulses(history(60, lambda *_: (), zones=("zone-a", "zone-c"), start_s=60), state)
    assert [kind for _, _, kind in alert_transitions(findings)] == ["HEALTHY"]


def test_a_restarted_watch_neither_clears_nor_repeats_the_findings_of_vantages() -> None:
    for brokers in ({2}, {1, 2}):

        def unreached(_: int, zone: str, brokers: Iterable[int] = brokers) -> Iterable[int]:
            return brokers if zone == "zone-a" else ()

        _, before = fold_pulses(history(60, unreached))
        state = restore_fleet_health(encode_and_parse(before))
        assert fold_pulses(history(60, unreached, start_s=60), state)[1] == []
        _, after = fold_pulses(history(60, lambda *_: (), start_s=60), state)
        assert [finding.subject for finding in after if finding.is_cleared] == [
            finding.subject for finding in before if finding.is_alert
        ]


def test_restored_findings_of_a_vantage_that_never_sends_a_pulse_are_cleared() -> None:
    """The watch restarts after the last pulse of the vantage."""
    for brokers in ((2,), (1, 2, 3)):
        before, _ = fold_pulses(
            history(60, lambda _, zone, brokers=brokers: brokers if zone == "zone-b" else ())
        )
        _, findings = fold_pulses(
            history(60, lambda _, zone, brokers=brokers: brokers if zone == "zone-b" else ())
        )
        state = restore_fleet_health(encode_and_parse(findings))
        assert state.open_findings() == before.open_findings() != ()
        after, _ = fold_pulses(history(60, lambda *_: (), ("zone-a", "zone-c"), start_s=60), state)
        assert after.open_findings() == ()


@pytest.mark.parametrize("clock_s", range(-60, 11, 5))
def test_a_vantage_with_a_wrong_clock_never_raises_the_alert_of_a_broker(clock_s: int) -> None:
    """The clock may be far behind, or as far ahead as the watch accepts."""
    pulses = history(150, lambda second, zone: [2] if zone == "zone-b" and second >= 60 else [])
    clock_error = timedelta(seconds=clock_s)
    received = [
        replace(probe_pulse, emitted_at=probe_pulse.emitted_at + clock_error)
        if probe_pulse.vantage == "zone-b"
        else probe_pulse
        for probe_pulse in pulses
    ]
    _, findings = fold_pulses(received)
    alerts = [finding for finding in findings if finding.is_alert]
    assert [(finding.subject.condition, finding.subject.vantage) for finding in alerts] == [
        (HealthCondition.PATH, "zone-b")
    ]


def test_removing_a_cluster_clears_its_findings() -> None:
    state, findings = fold_pulses(history(30, lambda *_: (2,)))
    down = [finding.subject for finding in findings if finding.is_alert]
    other, _ = fold_pulse(state, pulse(30, broker(1), cluster="payments"))
    kept, cleared = remove_clusters(other, lambda cluster_id: cluster_id == "orders", at(40))
    assert [(finding.subject, finding.is_cleared, finding.event.at) for finding in cleared] == [
        (subject, True, at(40)) for subject in down
    ]
    assert set(kept.clusters) == {"payments"}
    assert remove_clusters(kept, lambda cluster_id: cluster_id == "orders", at(41)) == (kept, ())


def test_a_starting_watch_does_not_trust_the_first_vantage_alone() -> None:
    _, findings = fold_pulses(history(60, lambda _, zone: {2} if zone == "zone-a" else ()))
    assert not any(map(is_broker_alert, findings))


# The whole cluster ------------------------------------------------------------------


def test_a_cluster_without_a_reachable_broker_is_one_finding() -> None:
    _, findings = fold_pulses(history(120, lambda s, _: BROKERS if 30 <= s < 90 else ()))
    assert [(second, kind) for second, _, kind in alert_transitions(findings)] == [
        (30, "CLUSTER_DOWN"),
        (90, "HEALTHY"),
    ]
    assert not any(map(is_broker_alert, findings))


def test_brokers_of_a_returning_cluster_have_time_to_return() -> None:
    _, findings = fold_pulses(history(120, lambda s, _: BROKERS if 30 <= s < 60 else (3,) if s >= 60 else ()))
    kinds = [(second, kind) for second, _, kind in alert_transitions(findings)]
    assert kinds == [(30, "CLUSTER_DOWN"), (60, "HEALTHY"), (70, "BROKER_DOWN")]


def test_the_only_broker_of_a_cluster_is_down_itself() -> None:
    pulses = [pulse(0, broker()), *(pulse(PULSE_S * n, hung(30)) for n in range(1, 4))]
    assert [kind for _, _, kind in alert_transitions(fold_pulses(pulses)[1])] == ["BROKER_DOWN"]


# Network unavailable -----------------------------------------------------------------------------


def cut_off(broker_id: int, fenced: bool = False) -> BrokerPulse:
    """A broker that no vantage reaches and that stays in sync."""
    return replace(hung(5, broker_id), in_sync=True, fenced=fenced)


def test_an_unreachable_broker_that_still_replicates_is_network_unavailable_after_thirty_seconds() -> None:
    pulses = [pulse(PULSE_S * n, cut_off(1), broker(2)) for n in range(1, 20)]
    _, findings = fold_pulses([pulse(0, broker(1), broker(2)), *pulses, pulse(100, broker(1), broker(2))])
    kinds = [(second, kind) for second, _, kind in alert_transitions(findings)]
    assert kinds == [(5, "BROKER_DOWN"), (35, "NETWORK_UNAVAILABLE"), (100, "HEALTHY")]
    assert len({finding.event.fingerprint for finding in findings}) == 1
    assert [finding.is_cleared for finding in findings] == [False, False, True]
    state = restore_fleet_health(findings[:-1])
    assert state.open_findings() == (
        (FindingSubject("orders", HealthCondition.BROKER_DOWN, 1), HealthState.NETWORK_UNAVAILABLE),
    )


def test_a_network_unavailable_broker_that_is_fenced_is_down() -> None:
    pulses = [pulse(PULSE_S * n, cut_off(1, fenced=n > 10), broker(2)) for n in range(1, 20)]
    _, findings = fold_pulses([pulse(0, broker(1), broker(2)), *pulses])
    assert [kind for _, _, kind in alert_transitions(findings)] == [
        "BROKER_DOWN",
        "NETWORK_UNAVAILABLE",
        "BROKER_DOWN",
    ]


# Removed brokers ------------------------------------------------------------------------------


def test_the_alert_of_a_removed_broker_clears() -> None:
    state, _ = fold_pulses([pulse(0, broker(1), broker(2)), pulse(5, hung(5, 1), broker(2))])
    assert len(state.open_findings()) == 1
    without = [pulse(PULSE_S * n, broker(2)) for n in range(2, 8)]
    for start in (state, restore_fleet_health(fold_pulses([pulse(0, broker(1)), pulse(5, hung(5))])[1])):
        _, findings = fold_pulses(without, start)
        assert [finding.event.broker_id for finding in findings if finding.is_cleared] == [1]


def test_pulses_without_brokers_clear_no_alert() -> None:
    state, findings = fold_pulses([pulse(0, broker(1), broker(2)), pulse(5, hung(5, 1), broker(2))])
    state, later = fold_pulses([pulse(PULSE_S * n) for n in range(2, 20)], state)
    assert list_transitions([*findings, *later]) == [(1, "BROKER_DOWN"), (None, "NO_DATA")]


@pytest.mark.parametrize("restarts", [False, True])
def test_a_cluster_is_down_until_one_of_its_brokers_answers_despite_restarts(restarts: bool) -> None:
    state, before = fold_pulses(history(60, lambda second, _: BROKERS if second >= 30 else ()))
    if restarts:
        state = restore_fleet_health(encode_and_parse(before))
    state, meanwhile = fold_pulses(
        [*(pulse(60 + PULSE_S * n) for n in range(60)), pulse(360, hung(330, 1))], state
    )
    state, after = fold_pulses([pulse(365, broker(1), hung(335, 2), hung(335, 3))], state)
    assert [kind for _, _, kind in alert_transitions(before)] == ["CLUSTER_DOWN"]
    assert alert_transitions(meanwhile) == []
    assert alert_transitions(after) == [(365, None, "HEALTHY")]


def test_a_cluster_that_an_agent_never_reaches_has_no_data() -> None:
    """It may have been down before the agent started, or in another network."""
    state = expect_pulses(FleetHealth(), ["orders"], at(0))
    _, findings = fold_pulses([pulse(PULSE_S * n) for n in range(20)], state)
    assert [(finding.to_state, finding.event.at) for finding in findings] == [(HealthState.NO_DATA, at(30))]
    _, findings = fold_pulses([pulse(PULSE_S * n, *((broker(),) if n > 9 else ())) for n in range(20)], state)
    assert [(finding.to_state, finding.event.at) for finding in findings] == [
        (HealthState.NO_DATA, at(30)),
        (HealthState.HEALTHY, at(50)),
    ]


# Flapping ----------------------------------------------------------------------------


def flapping(times: int, calm_s: int) -> list[ProbePulse]:
    """Unreachable in two pulses of four, then healthy."""
    turns = [*[True, True, False, False] * times, *[False] * (calm_s // PULSE_S)]
    return [
        pulse(PULSE_S * n, hung(8) if is_hung else broker(leader=leg(success=0.2)), broker(2))
        for n, is_hung in enumerate([False, *turns])
    ]


def test_the_third_alert_of_a_flapping_broker_clears_after_a_calm_period() -> None:
    pulses = flapping(10, calm_s=300)
    _, findings = fold_pulses(pulses)
    kinds = [(second, kind) for second, _, kind in alert_transitions(findings)]
    assert [kind for _, kind in kinds] == ["BROKER_DOWN", "HEALTHY"] * 3
    last_hung_s, cleared_s = 10 * 4 * PULSE_S - 2 * PULSE_S, kinds[-1][0]
    assert cleared_s - last_hung_s == PULSE_S + 120
    for cut in range(0, len(pulses), 7):
        _, before = fold_pulses(pulses[:cut])
        _, after = fold_pulses(pulses[cut:], restore_fleet_health(before))
        assert sum(finding.is_alert for finding in [*before, *after]) == 3


def test_a_broker_that_hangs_every_five_minutes_does_not_flap() -> None:
    state, transitions = FleetHealth(), []
    for turn in range(6):
        start_s = 301 * turn
        state, findings = fold_pulses(
            [
                pulse(start_s, broker(), broker(2)),
                pulse(start_s + 5, hung(5), broker(2)),
                pulse(start_s + 10, broker(leader=leg(success=0.2)), broker(2)),
            ],
            state,
        )
        transitions += [
            finding.is_alert
            for finding in findings
            if finding.subject.condition is HealthCondition.BROKER_DOWN
        ]
    assert transitions == [True, False] * 6


# Missing pulses -----------------------------------------------------------------------------


def test_a_cluster_without_pulses_for_thirty_seconds_has_one_no_data_finding() -> None:
    state, _ = fold_pulses([pulse(0, broker()), pulse(2, broker(), cluster="payments")])
    state, findings = detect_no_data(state, at(31.5))
    assert [(finding.event.cluster_id, finding.to_state, finding.event.at) for finding in findings] == [
        ("orders", HealthState.NO_DATA, at(30))
    ]
    assert detect_no_data(state, at(31.9))[1] == ()
    _, findings = fold_pulse(state, pulse(40, broker()))
    assert [(finding.event.cluster_id, finding.is_cleared) for finding in findings] == [("orders", True)]


def test_a_late_pulse_clears_no_data_at_a_later_time_than_it_began() -> None:
    """Otherwise a reader that orders both findings by time would consider it open."""
    state, findings = detect_no_data(fold_pulses([pulse(0, broker())])[0], at(40))
    for restarted, late_s in (
        (state, 15),
        (restore_fleet_health(encode_and_parse(findings)), 15),
        (expect_pulses(state, ["orders"], at(1)), 8),
    ):
        after, cleared = fold_pulse(restarted, pulse(late_s, broker()))
        assert [(finding.is_cleared, finding.event.at) for finding in cleared] == [(True, at(30.001))]
        assert (
            restore_fleet_health(encode_and_parse([*findings, *cleared])).open_findings()
            == after.open_findings()
            == ()
        )


def test_detection_continues_after_a_clock_that_was_an_hour_ahead() -> None:
    state, findings = detect_no_data(expect_pulses(FleetHealth(), ["orders"], at(3600)), at(3640))
    for restarted in (state, restore_fleet_health(encode_and_parse(findings))):
        started = expect_pulses(restarted, ["orders"], at(0))
        state, more = fold_pulses(history(90, lambda second, _: (2,) if second >= 60 else ()), started)
        assert [kind for _, _, kind in alert_transitions(more)] == ["HEALTHY", "BROKER_DOWN"]
        assert more[-1].event.at < at(90)
        _, again = detect_no_data(state, at(130))
        assert [finding.to_state for finding in again] == [HealthState.NO_DATA]
        silences = [
            finding
            for finding in (*findings, *more, *again)
            if finding.subject.condition is HealthCondition.NO_DATA
        ]
        times = [finding.event.at for finding in encode_and_parse(silences)]
        assert len(times) == len(set(times)) == 3
        assert times == sorted(times)


def test_detection_continues_after_a_clock_is_set_back() -> None:
    """The clocks of the watch and of the agent were both an hour ahead."""

    def unreached(second: int, _: str) -> Iterable[int]:
        return (2,) if second >= 3660 or 60 <= second < 90 else ()

    ahead, before = fold_pulses(history(90, unreached, start_s=3600))
    state = expect_pulses(rewind_clock(ahead, at(0)), ["orders"], at(0))
    assert state.open_findings() == ahead.open_findings() != ()
    state, after = fold_pulses(history(120, unreached), state)
    assert [kind for _, _, kind in alert_transitions(before)] == ["BROKER_DOWN"]
    assert [kind for _, _, kind in alert_transitions(after)] == ["HEALTHY", "BROKER_DOWN", "HEALTHY"]
    assert all(finding.event.at < at(120) for finding in after)
    assert [finding.to_state for finding in detect_no_data(state, at(160))[1]] == [HealthState.NO_DATA]


def test_a_cluster_that_never_sent_a_pulse_has_no_data() -> None:
    state = expect_pulses(FleetHealth(), ["orders", "payments"], at(0))
    state, _ = fold_pulse(state, pulse(10, broker()))
    assert [finding.event.cluster_id for finding in detect_no_data(state, at(30))[1]] == ["payments"]


def test_the_time_of_detection_does_not_change_the_no_data_finding() -> None:
    state, _ = fold_pulse(FleetHealth(), pulse(0, broker()))
    assert detect_no_data(state, at(30))[1] == detect_no_data(state, at(300))[1]
    assert detect_no_data(state, at(29.9))[1] == ()


def test_a_restarted_watch_does_not_repeat_no_data() -> None:
    state, _ = fold_pulse(FleetHealth(), pulse(0, broker()))
    _, findings = detect_no_data(state, at(60))
    again = expect_pulses(restore_fleet_health(findings), ["orders"], at(90))
    assert detect_no_data(again, at(300))[1] == ()
    assert [finding.is_cleared for finding in fold_pulse(again, pulse(301, broker()))[1]] == [True]


# For all histories ---------------------------------------------------------------

_UNREACHED = st.sets(st.sampled_from(BROKERS))
_HISTORIES = st.lists(st.tuples(_UNREACHED, _UNREACHED, _UNREACHED), max_size=25)


def _pulses(rounds: list[tuple[set[int], ...]]) -> list[ProbePulse]:
    def unreached(second: int, zone: str) -> Iterable[int]:
        return rounds[second // PULSE_S][ZONES.index(zone)]

    return history(PULSE_S * len(rounds), unreached)


@given(_HISTORIES)
@settings(deadline=None)
def test_the_events_of_each_subject_are_continuous_and_have_unique_ids(
    rounds: list[tuple[set[int], ...]],
) -> None:
    state, findings = fold_pulses(_pulses(rounds))
    ids = [finding.event.event_id for finding in findings]
    assert len(ids) == len(set(ids))
    last: dict[FindingSubject, HealthState] = {}
    for finding in findings:
        assert finding.from_state is last.get(finding.subject, HealthState.HEALTHY)
        assert finding.from_state is not finding.to_state
        last[finding.subject] = finding.to_state
    assert dict(state.open_findings()) == {
        subject: state for subject, state in last.items() if state.is_alert
    }


@given(_HISTORIES)
@settings(deadline=None)
def test_all_open_findings_are_restored_from_events(rounds: list[tuple[set[int], ...]]) -> None:
    state, findings = fold_pulses(_pulses(rounds))
    restored = restore_fleet_health(encode_and_parse(findings))
    assert restored.open_findings() == state.open_findings()


@given(_HISTORIES)
@settings(deadline=None)
def test_no_alert_opens_for_a_broker_that_most_vantages_reach(rounds: list[tuple[set[int], ...]]) -> None:
    for finding in fold_pulses(_pulses(rounds))[1]:
        if is_broker_alert(finding):
            vantages = json.loads(finding.event.evidence)["vantages"]
            assert sum(signs["unanswered"] and signs["leg_silent"] for signs in vantages.values()) >= 2


@given(_HISTORIES, st.integers(0, 30))
@settings(deadline=None)
def test_passing_time_alone_yields_only_no_data_findings(
    rounds: list[tuple[set[int], ...]], seconds: int
) -> None:
    state, _ = fold_pulses(_pulses(rounds))
    _, findings = detect_no_data(state, at(PULSE_S * len(rounds)) + timedelta(seconds=seconds))
    assert all(finding.to_state is HealthState.NO_DATA for finding in findings)
