"""Broker findings from pulses."""

import json
import random
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fleetgauge_core.contract import (
    BrokerPulse,
    HealthEvent,
    ProbePulse,
    RecordDecodeError,
)
from fleetgauge_core.detection import (
    Finding,
    FindingSubject,
    FleetHealth,
    HealthCondition,
    HealthState,
    adopt_finding,
    parse_finding,
    restore_fleet_health,
)
from fleetgauge_core.detection.finding import build_finding
from tests.unit.core.detection.pulses import (
    at,
    broker,
    encode_and_parse,
    fold_pulses,
    hung,
    leg,
    leg_silent,
    list_transitions,
    not_leading,
    pulse,
    unanswered,
)

#: The open findings if broker 1 alone is down.
DOWN = ((FindingSubject("orders", HealthCondition.BROKER_DOWN, 1), HealthState.BROKER_DOWN),)


def health_with_alert(broker_id: int = 1) -> FleetHealth:
    """Return the health after the broker's alert opened at second 5."""
    state, findings = fold_pulses([pulse(0, broker(broker_id)), pulse(5, hung(5, broker_id))])
    assert [finding.is_alert for finding in findings] == [True]
    return state


# Opening alerts ------------------------------------------------------------------------


def test_a_healthy_broker_yields_no_finding() -> None:
    state, findings = fold_pulses(pulse(5 * n, broker(), broker(2)) for n in range(20))
    assert findings == []
    assert state.open_findings() == ()


@pytest.mark.parametrize("offset", [0.1, 1, 2, 3, 4, 4.9])
def test_a_hang_raises_an_alert_within_ten_seconds_at_any_offset_between_pulses(offset: float) -> None:
    pulses = [pulse(0, broker())] + [pulse(5 * n, hung(5 * n - offset)) for n in range(1, 5)]
    _, findings = fold_pulses(pulses)
    alerts = [finding for finding in findings if finding.is_alert]
    assert len(alerts) == 1
    assert (alerts[0].event.at - at(offset)).total_seconds() <= 10


def test_a_long_hang_raises_one_alert() -> None:
    state, findings = fold_pulses(pulse(5 * n, hung(5 * n)) for n in range(1, 40))
    assert [finding.is_alert for finding in findings].count(True) == 1
    assert state.open_findings() == DOWN


@pytest.mark.parametrize("broker_pulse", [unanswered(), leg_silent()], ids=["unanswered", "leg silent"])
def test_a_single_sign_makes_a_broker_only_suspect(broker_pulse: BrokerPulse) -> None:
    state, findings = fold_pulses(pulse(5 * n, broker_pulse) for n in range(30))
    assert list_transitions(findings) == [(1, "SUSPECT")]
    assert state.open_findings() == ()
    assert not findings[0].is_alert
    assert not findings[0].is_cleared


def test_alternating_signs_do_not_add_up() -> None:
    _, findings = fold_pulses(pulse(5 * n, unanswered() if n % 2 else leg_silent()) for n in range(20))
    assert list_transitions(findings) == [(1, "SUSPECT")]


def test_a_suspect_broker_is_healthy_again_without_the_sign() -> None:
    _, findings = fold_pulses([pulse(0, unanswered()), pulse(5, broker())])
    assert list_transitions(findings) == [(1, "SUSPECT"), (1, "HEALTHY")]
    assert not findings[1].is_cleared


def test_the_peers_of_a_hung_broker_have_no_finding() -> None:
    state, findings = fold_pulses(pulse(5 * n, broker(2), hung(5 * n), broker(3)) for n in range(1, 10))
    assert {finding.event.broker_id for finding in findings} == {1}
    assert state.open_findings() == DOWN


def test_brokers_with_the_same_id_in_different_clusters_are_independent() -> None:
    state = health_with_alert()
    state, findings = fold_pulses([pulse(10, broker(), cluster="payments")], state)
    assert findings == []
    assert state.open_findings() == DOWN


def test_one_pulse_can_raise_the_alerts_of_several_brokers() -> None:
    healthy = pulse(0, broker(1), broker(2), broker(3))
    _, findings = fold_pulses([healthy, pulse(5, hung(6, 1), broker(2), hung(6, 3))])
    assert list_transitions(findings) == [(1, "BROKER_DOWN"), (3, "BROKER_DOWN")]


# Probes that are not due ---------------------------------------------------------


def test_a_healthy_broker_that_does_not_lead_yields_no_finding() -> None:
    _, findings = fold_pulses(pulse(5 * n, not_leading(success=5 * n)) for n in range(30))
    assert findings == []


def test_an_unanswered_broker_without_due_probes_is_only_suspect() -> None:
    _, findings = fold_pulses(pulse(5 * n, not_leading(answer=9)) for n in range(30))
    assert list_transitions(findings) == [(1, "SUSPECT")]


def test_an_alert_does_not_clear_at_once_while_no_probe_is_due() -> None:
    state, findings = fold_pulses(
        [pulse(10, not_leading(success=10.3)), pulse(15, not_leading(success=15.3))], health_with_alert()
    )
    assert findings == []
    assert state.open_findings() == DOWN


# Clearing alerts ------------------------------------------------------------------------


def test_the_first_success_after_the_alert_clears_it() -> None:
    state, findings = fold_pulses([pulse(20, broker(leader=leg(success=0.2)))], health_with_alert())
    assert list_transitions(findings) == [(1, "HEALTHY")]
    assert findings[0].is_cleared
    assert state.open_findings() == ()


def test_a_success_from_before_the_alert_does_not_clear_it() -> None:
    state, findings = fold_pulses([pulse(7, not_leading(success=2.1))], health_with_alert())
    assert findings == []
    assert state.open_findings() == DOWN


def test_thirty_seconds_in_sync_and_answering_clear_the_alert_of_a_broker_that_does_not_lead() -> None:
    pulses = [pulse(20 + 5 * n, not_leading(success=20 + 5 * n)) for n in range(10)]
    _, findings = fold_pulses(pulses, health_with_alert())
    assert list_transitions(findings) == [(1, "HEALTHY")]
    assert findings[0].event.at == at(50)


@pytest.mark.parametrize(
    "relapse", [not_leading(answer=9), broker(in_sync=False, leads=False, leader=leg(success=60))]
)
def test_the_thirty_seconds_start_again_after_every_relapse(relapse: BrokerPulse) -> None:
    pulses = [pulse(20 + 5 * n, relapse if n == 5 else not_leading(success=20 + 5 * n)) for n in range(20)]
    _, findings = fold_pulses(pulses, health_with_alert())
    assert [finding.event.at for finding in findings if finding.is_cleared] == [at(80)]


def test_the_alert_of_a_broker_out_of_sync_does_not_clear() -> None:
    out_of_sync = broker(in_sync=False, leads=False, leader=leg(failed=25, success=None))
    _, findings = fold_pulses((pulse(10 + 5 * n, out_of_sync) for n in range(30)), health_with_alert())
    assert not any(finding.is_cleared for finding in findings)


def test_the_next_alert_of_a_broker_has_the_same_fingerprint() -> None:
    pulses = [pulse(20, broker()), *(pulse(20 + 5 * n, hung(5 * n)) for n in range(1, 4))]
    _, findings = fold_pulses(pulses, health_with_alert())
    assert [finding.is_alert for finding in findings] == [False, True]
    assert len({finding.event.fingerprint for finding in findings}) == 1
    assert len({finding.event.event_id for finding in findings}) == 2


# Vantages ------------------------------------------------------------------------


def test_one_of_two_vantages_is_no_majority() -> None:
    pulses = [
        probe_pulse
        for n in range(1, 30)
        for probe_pulse in (
            pulse(5 * n, broker(), vantage="zone-a"),
            pulse(5 * n + 1, hung(5 * n), vantage="zone-b"),
        )
    ]
    _, findings = fold_pulses(pulses)
    assert list_transitions(findings) == [(None, "PATH")]


def test_two_of_two_vantages_raise_an_alert() -> None:
    pulses = [
        probe_pulse
        for n in range(1, 4)
        for probe_pulse in (
            pulse(5 * n, hung(5 * n), vantage="zone-a"),
            pulse(5 * n + 1, hung(5 * n), vantage="zone-b"),
        )
    ]
    state, findings = fold_pulses([pulse(0, broker(), vantage=zone) for zone in ("zone-a", "zone-b")])
    state, findings = fold_pulses(pulses, state)
    assert [finding.event.at for finding in findings if finding.is_alert] == [at(6)]


@pytest.mark.parametrize(("unreached_by", "is_alert"), [(1, False), (2, True), (3, True)])
def test_of_three_vantages_two_are_needed(unreached_by: int, is_alert: bool) -> None:
    pulses = [
        pulse(
            5 * n + number / 10,
            hung(5 * n) if number < unreached_by else broker(),
            vantage=f"zone-{number}",
        )
        for n in range(10)
        for number in range(3)
    ]
    state, _ = fold_pulses(pulses)
    assert (DOWN[0] in state.open_findings()) is is_alert


def test_a_vantage_without_fresh_pulses_has_no_vote() -> None:
    pulses = [pulse(0, broker(), vantage="zone-b"), *(pulse(5 * n, hung(5 * n)) for n in range(1, 6))]
    _, findings = fold_pulses(pulses)
    assert [finding.event.at for finding in findings if finding.is_alert] == [at(15)]


def test_after_a_broker_returns_a_vantage_that_still_does_not_reach_it_has_a_path_finding() -> None:
    pulses = [
        probe_pulse
        for n in range(2, 12)
        for probe_pulse in (
            pulse(5 * n, hung(5 * n)),
            pulse(5 * n + 1, broker(leader=leg(success=0.2)), vantage="zone-b"),
        )
    ]
    _, findings = fold_pulses(pulses, health_with_alert())
    assert sorted(list_transitions(findings), key=str) == [(1, "HEALTHY"), (None, "PATH")]


# Events --------------------------------------------------------------------------


def test_an_event_has_evidence_and_the_time_of_the_first_sign() -> None:
    _, findings = fold_pulses([pulse(0, broker()), pulse(5, unanswered()), pulse(10, hung(6))])
    suspect, down = (finding.event for finding in findings)
    assert (suspect.from_state, suspect.to_state) == ("HEALTHY", "SUSPECT")
    assert (down.from_state, down.to_state, down.kind) == ("SUSPECT", "BROKER_DOWN", "BROKER_DOWN")
    assert (down.cluster_id, down.broker_id, down.at) == ("orders", 1, at(10))
    evidence = json.loads(down.evidence)
    assert evidence["since"] == at(5).isoformat()
    assert evidence["vantages"]["zone-a"]["unanswered"] is True


def test_findings_of_different_brokers_and_clusters_have_different_fingerprints() -> None:
    pulses = [pulse(0, hung(6, 1), hung(6, 11)), pulse(0, hung(6, 1), cluster="orders/1")]
    _, findings = fold_pulses(pulses)
    assert len({finding.event.fingerprint for finding in findings}) == 3


_BROKER_PULSES = [
    broker,
    unanswered,
    leg_silent,
    not_leading,
    lambda broker_id: hung(6, broker_id),
    lambda broker_id: hung(1, broker_id),
]
_HISTORIES = st.lists(
    st.tuples(
        st.sampled_from(["zone-a", "zone-b", "zone-c"]),
        st.lists(st.sampled_from(_BROKER_PULSES), min_size=3, max_size=3),
    ),
    max_size=30,
).map(
    lambda steps: [
        pulse(2 * n, *(build(broker_id) for broker_id, build in enumerate(builders)), vantage=vantage)
        for n, (vantage, builders) in enumerate(steps)
    ]
)


@given(_HISTORIES)
@settings(deadline=None)
def test_the_same_pulses_give_the_same_events(history: list[ProbePulse]) -> None:
    first, again = (
        fold_pulses(history),
        fold_pulses([ProbePulse.decode(probe_pulse.encode()) for probe_pulse in history]),
    )
    assert first == again
    ids = [finding.event.event_id for finding in first[1]]
    assert len(ids) == len(set(ids))


@given(_HISTORIES)
@settings(deadline=None)
def test_the_events_of_each_broker_form_a_continuous_sequence_of_states(history: list[ProbePulse]) -> None:
    state, findings = fold_pulses(history)
    for broker_id in range(3):
        events = [finding.event for finding in findings if finding.event.broker_id == broker_id]
        states = ["HEALTHY", *(event.to_state for event in events)]
        assert [event.from_state for event in events] == states[:-1]
        assert all(before != after for before, after in pairwise(states))
        is_open = (
            FindingSubject("orders", HealthCondition.BROKER_DOWN, broker_id),
            HealthState.BROKER_DOWN,
        ) in state.open_findings()
        assert is_open == (states[-1] == "BROKER_DOWN")


@given(_HISTORIES, st.integers(0, 2))
@settings(deadline=None)
def test_the_findings_of_a_broker_do_not_depend_on_its_peers(
    history: list[ProbePulse], broker_id: int
) -> None:
    alone = [
        pulse(
            (probe_pulse.emitted_at - at(0)).total_seconds(),
            probe_pulse.brokers[broker_id],
            vantage=probe_pulse.vantage,
        )
        for probe_pulse in history
    ]
    together = fold_pulses(history)[1]
    assume(not any(finding.to_state is HealthState.CLUSTER_DOWN for finding in together))

    def without_peers(finding: Finding) -> tuple[object, ...]:
        evidence = json.loads(finding.event.evidence)
        del evidence["peers"]
        return finding.subject, finding.from_state, finding.to_state, finding.event.at, evidence

    assert [
        without_peers(finding) for finding in fold_pulses(alone)[1] if finding.event.broker_id is not None
    ] == [without_peers(finding) for finding in together if finding.event.broker_id == broker_id]


@given(_HISTORIES)
@settings(deadline=None)
def test_a_broker_is_down_only_after_a_pulse_with_both_signs(history: list[ProbePulse]) -> None:
    for finding in fold_pulses(history)[1]:
        if finding.to_state is HealthState.BROKER_DOWN:
            vantages = json.loads(finding.event.evidence)["vantages"].values()
            assert any(signs["unanswered"] and signs["leg_silent"] for signs in vantages)


def test_the_given_state_is_not_modified() -> None:
    state = health_with_alert()
    before = state.open_findings()
    fold_pulses([pulse(20, broker())], state)
    assert state.open_findings() == before


# A restarted watch ---------------------------------------------------------


def test_a_restarted_watch_does_not_repeat_the_alert_and_clears_it() -> None:
    _, before = fold_pulses([pulse(0, broker()), pulse(5, hung(5))])
    state = restore_fleet_health(encode_and_parse(before))
    assert state.open_findings() == DOWN
    state, findings = fold_pulses([pulse(10, hung(10)), pulse(15, hung(15))], state)
    assert findings == []
    _, findings = fold_pulses([pulse(20, broker())], state)
    assert [finding.is_cleared for finding in findings] == [True]


@given(_HISTORIES)
@settings(deadline=None)
def test_the_state_of_every_broker_is_restored_from_its_events(history: list[ProbePulse]) -> None:
    state, findings = fold_pulses(history)
    restored = restore_fleet_health(encode_and_parse(findings))
    assert restored.open_findings() == state.open_findings()


def test_a_restart_during_a_hang_delays_the_alert_by_at_most_one_pulse() -> None:
    pulses = [pulse(0, broker()), *(pulse(5 * n, hung(5 * n)) for n in range(1, 6)), pulse(30, broker())]
    opened, cleared = fold_pulses(pulses)[1]
    for cut in range(len(pulses)):
        _, before = fold_pulses(pulses[:cut])
        _, after = fold_pulses(pulses[cut:], restore_fleet_health(encode_and_parse(before)))
        findings = [finding for finding in [*before, *after] if finding.is_alert or finding.is_cleared]
        assert [finding.event.fingerprint for finding in findings] == [opened.event.fingerprint] * 2
        assert findings[0].event.at - opened.event.at <= at(5) - at(0)
        assert findings[1].event.event_id == cleared.event.event_id


def test_the_order_of_simultaneous_pulses_does_not_matter() -> None:
    vantages = ["zone-a", "zone-b", "zone-c"]
    shuffler = random.Random(3)
    outcomes = set()
    for _ in range(10):
        shuffler.shuffle(vantages)
        rounds = [
            pulse(5 * n, broker() if n == 0 else hung(5 * n), vantage=vantage)
            for n in range(4)
            for vantage in vantages
        ]
        outcomes.add(tuple(finding.event.event_id for finding in fold_pulses(rounds)[1] if finding.is_alert))
    assert len(outcomes) == 1


def test_an_event_with_a_state_of_a_newer_version_is_ignored() -> None:
    event = HealthEvent("id", "print", "orders", 1, at(0), "HEALTHY", "BROKER_SLOW", "DEGRADED", "{}")
    assert parse_finding(event) is None


def test_the_evidence_of_a_broker_includes_its_peers() -> None:
    def peers(pulses: Iterable[ProbePulse]) -> list[dict[str, Any]]:
        return [
            json.loads(finding.event.evidence)["peers"]
            for finding in fold_pulses(pulses)[1]
            if finding.is_alert
        ]

    one_hangs = [pulse(second, hung(second, 1), broker(2), broker(3)) for second in range(0, 60, 5)]
    assert peers(one_hangs) == [{"brokers": 2, "named": []}]
    two_hang = [
        pulse(second, hung(second, 1), broker(2), hung(second - 20, 3) if second > 20 else broker(3))
        for second in range(0, 60, 5)
    ]
    assert peers(two_hang) == [{"brokers": 2, "named": []}, {"brokers": 2, "named": [1]}]


# Findings of another watch that arrive late --------------------------------------------------


def test_an_adopted_alert_stays_open_until_pulses_clear_it() -> None:
    _, (opened,) = fold_pulses([pulse(0, broker()), pulse(5, hung(5))])
    healthy, _ = fold_pulses([pulse(5, broker())])
    adopted = adopt_finding(healthy, opened)
    assert adopted.open_findings() == DOWN
    _, findings = fold_pulses([pulse(10, broker()), pulse(15, broker())], adopted)
    assert [(finding.is_cleared, finding.event.fingerprint) for finding in findings] == [
        (True, opened.event.fingerprint)
    ]


def test_adopting_an_open_or_a_cleared_alert_changes_nothing() -> None:
    state, findings = fold_pulses([pulse(0, broker()), pulse(5, hung(5)), pulse(10, hung(10))])
    (down,) = findings
    assert adopt_finding(state, down) is state
    _, (cleared,) = fold_pulses([pulse(15, broker())], state)
    assert adopt_finding(state, cleared) is state


@pytest.mark.parametrize(
    ("condition", "evidence"),
    [
        ("PATH", {}),
        ("PATH", {"vantage": "a", "broker": "two"}),
        ("VANTAGE_ILL", {"vantage": "a", "brokers": 3}),
        ("DEGRADED", {"slow": {"zone-a": "most"}}),
        ("DEGRADED", []),
        ("BROKER_DOWN", None),
    ],
)
def test_an_event_without_the_evidence_to_restore_from_is_rejected(condition: str, evidence: object) -> None:
    event = build_finding(
        FindingSubject("orders", HealthCondition(condition), 1),
        HealthState.HEALTHY,
        HealthState(condition),
        at(0),
        {},
    ).event
    with pytest.raises(RecordDecodeError, match=f"evidence of {condition}"):
        parse_finding(replace(event, evidence=json.dumps(evidence) if evidence is not None else "not JSON"))


@pytest.mark.parametrize(
    ("condition", "broker_id", "evidence"),
    [("DEGRADED", 1, {}), ("VANTAGE_ILL", None, {"vantage": "a"}), ("BROKER_DOWN", 1, {"of": "later"})],
)
def test_an_event_with_the_evidence_of_another_version_is_restored(
    condition: str, broker_id: int | None, evidence: dict[str, str]
) -> None:
    subject = FindingSubject("orders", HealthCondition(condition), broker_id, evidence.get("vantage"))
    finding = parse_finding(
        build_finding(subject, HealthState.HEALTHY, HealthState(condition), at(0), evidence).event
    )
    assert finding is not None
    assert restore_fleet_health([finding]).open_findings() == ((subject, HealthState(condition)),)
