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
    ContractError,
    HealthEvent,
    ProbePulse,
)
from fleetgauge_core.detection import (
    Chain,
    Finding,
    FleetState,
    Phase,
    Subject,
    adopt,
    recalled,
    remember,
)
from fleetgauge_core.detection.finding import finding
from tests.unit.core.detection.pulses import (
    at,
    away,
    broker,
    changes,
    fold,
    hung,
    leg,
    mute,
    pulse,
    recall,
    silent,
)

#: Broker 1 is named, and nothing else.
DOWN = ((Subject("orders", Chain.BROKER_DOWN, 1), Phase.BROKER_DOWN),)


def named(broker_id: int = 1) -> FleetState:
    """A state in which that broker was named at second 5."""
    state, findings = fold([pulse(0, broker(broker_id)), pulse(5, hung(5, broker_id))])
    assert [one.names for one in findings] == [True]
    return state


# Naming ------------------------------------------------------------------------


def test_a_well_broker_is_never_spoken_of() -> None:
    state, findings = fold(pulse(5 * n, broker(), broker(2)) for n in range(20))
    assert findings == []
    assert state.open_findings() == ()


@pytest.mark.parametrize("offset", [0.1, 1, 2, 3, 4, 4.9])
def test_a_hang_is_named_within_ten_seconds_wherever_between_two_pulses_it_starts(offset: float) -> None:
    pulses = [pulse(0, broker())] + [pulse(5 * n, hung(5 * n - offset)) for n in range(1, 5)]
    _, findings = fold(pulses)
    naming = [one for one in findings if one.names]
    assert len(naming) == 1
    assert (naming[0].event.at - at(offset)).total_seconds() <= 10


def test_a_hang_is_named_once_however_long_it_lasts() -> None:
    state, findings = fold(pulse(5 * n, hung(5 * n)) for n in range(1, 40))
    assert [one.names for one in findings].count(True) == 1
    assert state.open_findings() == DOWN


@pytest.mark.parametrize("one", [mute(), silent()], ids=["unanswered", "leg silent"])
def test_one_sign_alone_only_raises_suspicion(one: BrokerPulse) -> None:
    state, findings = fold(pulse(5 * n, one) for n in range(30))
    assert changes(findings) == [(1, "SUSPECT")]
    assert state.open_findings() == ()
    assert not findings[0].names
    assert not findings[0].clears


def test_two_signs_that_take_turns_do_not_add_up() -> None:
    _, findings = fold(pulse(5 * n, mute() if n % 2 else silent()) for n in range(20))
    assert changes(findings) == [(1, "SUSPECT")]


def test_suspicion_goes_with_its_sign() -> None:
    _, findings = fold([pulse(0, mute()), pulse(5, broker())])
    assert changes(findings) == [(1, "SUSPECT"), (1, "HEALTHY")]
    assert not findings[1].clears


def test_the_neighbours_of_a_sick_broker_are_not_touched() -> None:
    state, findings = fold(pulse(5 * n, broker(2), hung(5 * n), broker(3)) for n in range(1, 10))
    assert {one.event.broker_id for one in findings} == {1}
    assert state.open_findings() == DOWN


def test_the_same_broker_of_another_cluster_is_another_broker() -> None:
    state = named()
    state, findings = fold([pulse(10, broker(), cluster="payments")], state)
    assert findings == []
    assert state.open_findings() == DOWN


def test_several_brokers_can_be_named_by_one_pulse() -> None:
    well = pulse(0, broker(1), broker(2), broker(3))
    _, findings = fold([well, pulse(5, hung(6, 1), broker(2), hung(6, 3))])
    assert changes(findings) == [(1, "BROKER_DOWN"), (3, "BROKER_DOWN")]


# Probes that are not due ---------------------------------------------------------


def test_a_home_whose_leadership_is_elsewhere_is_not_named() -> None:
    _, findings = fold(pulse(5 * n, away(success=5 * n)) for n in range(30))
    assert findings == []


def test_a_silent_home_of_which_nothing_is_due_is_only_suspect() -> None:
    _, findings = fold(pulse(5 * n, away(answer=9)) for n in range(30))
    assert changes(findings) == [(1, "SUSPECT")]


def test_probes_that_are_not_due_do_not_clear_at_once() -> None:
    state, findings = fold([pulse(10, away(success=10.3)), pulse(15, away(success=15.3))], named())
    assert findings == []
    assert state.open_findings() == DOWN


# Clearing ------------------------------------------------------------------------


def test_the_first_success_after_naming_clears() -> None:
    state, findings = fold([pulse(20, broker(leader=leg(success=0.2)))], named())
    assert changes(findings) == [(1, "HEALTHY")]
    assert findings[0].clears
    assert state.open_findings() == ()


def test_a_success_from_before_the_naming_does_not_clear() -> None:
    state, findings = fold([pulse(7, away(success=2.1))], named())
    assert findings == []
    assert state.open_findings() == DOWN


def test_thirty_seconds_of_being_in_sync_and_answering_clear_a_home_that_may_not_lead() -> None:
    pulses = [pulse(20 + 5 * n, away(success=20 + 5 * n)) for n in range(10)]
    _, findings = fold(pulses, named())
    assert changes(findings) == [(1, "HEALTHY")]
    assert findings[0].event.at == at(50)


@pytest.mark.parametrize(
    "relapse", [away(answer=9), broker(in_sync=False, leads=False, leader=leg(success=60))]
)
def test_the_thirty_seconds_start_anew_with_every_relapse(relapse: BrokerPulse) -> None:
    pulses = [pulse(20 + 5 * n, relapse if n == 5 else away(success=20 + 5 * n)) for n in range(20)]
    _, findings = fold(pulses, named())
    assert [one.event.at for one in findings if one.clears] == [at(80)]


def test_answering_without_being_in_sync_never_clears() -> None:
    out = broker(in_sync=False, leads=False, leader=leg(failed=25, success=None))
    _, findings = fold((pulse(10 + 5 * n, out) for n in range(30)), named())
    assert not any(one.clears for one in findings)


def test_a_broker_that_falls_ill_again_is_named_again_under_the_same_fingerprint() -> None:
    pulses = [pulse(20, broker()), *(pulse(20 + 5 * n, hung(5 * n)) for n in range(1, 4))]
    _, findings = fold(pulses, named())
    assert [one.names for one in findings] == [False, True]
    assert len({one.event.fingerprint for one in findings}) == 1
    assert len({one.event.event_id for one in findings}) == 2


# Vantages ------------------------------------------------------------------------


def test_one_of_two_vantages_is_no_majority_and_names_no_broker() -> None:
    pulses = [
        one
        for n in range(1, 30)
        for one in (pulse(5 * n, broker(), vantage="zone-a"), pulse(5 * n + 1, hung(5 * n), vantage="zone-b"))
    ]
    _, findings = fold(pulses)
    assert changes(findings) == [(None, "PATH")]


def test_two_of_two_vantages_name() -> None:
    pulses = [
        one
        for n in range(1, 4)
        for one in (
            pulse(5 * n, hung(5 * n), vantage="zone-a"),
            pulse(5 * n + 1, hung(5 * n), vantage="zone-b"),
        )
    ]
    state, findings = fold([pulse(0, broker(), vantage=v) for v in ("zone-a", "zone-b")])
    state, findings = fold(pulses, state)
    assert [one.event.at for one in findings if one.names] == [at(6)]


@pytest.mark.parametrize(("sick", "named_too"), [(1, False), (2, True), (3, True)])
def test_of_three_vantages_two_are_needed(sick: int, named_too: bool) -> None:
    pulses = [
        pulse(5 * n + v / 10, hung(5 * n) if v < sick else broker(), vantage=f"zone-{v}")
        for n in range(10)
        for v in range(3)
    ]
    state, _ = fold(pulses)
    assert (DOWN[0] in state.open_findings()) is named_too


def test_a_vantage_that_is_not_heard_from_has_no_vote() -> None:
    pulses = [pulse(0, broker(), vantage="zone-b"), *(pulse(5 * n, hung(5 * n)) for n in range(1, 6))]
    _, findings = fold(pulses)
    assert [one.event.at for one in findings if one.names] == [at(15)]


def test_what_one_vantage_still_sees_when_another_is_well_again_is_its_path_and_not_the_broker() -> None:
    pulses = [
        one
        for n in range(2, 12)
        for one in (
            pulse(5 * n, hung(5 * n)),
            pulse(5 * n + 1, broker(leader=leg(success=0.2)), vantage="zone-b"),
        )
    ]
    _, findings = fold(pulses, named())
    assert sorted(changes(findings), key=str) == [(1, "HEALTHY"), (None, "PATH")]


# Events --------------------------------------------------------------------------


def test_an_event_tells_what_was_seen_and_since_when() -> None:
    _, findings = fold([pulse(0, broker()), pulse(5, mute()), pulse(10, hung(6))])
    doubt, naming = (one.event for one in findings)
    assert (doubt.from_state, doubt.to_state) == ("HEALTHY", "SUSPECT")
    assert (naming.from_state, naming.to_state, naming.kind) == ("SUSPECT", "BROKER_DOWN", "BROKER_DOWN")
    assert (naming.cluster_id, naming.broker_id, naming.at) == ("orders", 1, at(10))
    evidence = json.loads(naming.evidence)
    assert evidence["since"] == at(5).isoformat()
    assert evidence["vantages"]["zone-a"]["unanswered"] is True


def test_findings_of_different_brokers_and_clusters_have_different_fingerprints() -> None:
    pulses = [pulse(0, hung(6, 1), hung(6, 11)), pulse(0, hung(6, 1), cluster="orders/1")]
    _, findings = fold(pulses)
    assert len({one.event.fingerprint for one in findings}) == 3


_SHAPES = [broker, mute, silent, away, lambda b: hung(6, b), lambda b: hung(1, b)]
_HISTORIES = st.lists(
    st.tuples(
        st.sampled_from(["zone-a", "zone-b", "zone-c"]),
        st.lists(st.sampled_from(_SHAPES), min_size=3, max_size=3),
    ),
    max_size=30,
).map(
    lambda story: [
        pulse(2 * n, *(shape(b) for b, shape in enumerate(shapes)), vantage=vantage)
        for n, (vantage, shapes) in enumerate(story)
    ]
)


@given(_HISTORIES)
@settings(deadline=None)
def test_the_same_pulses_give_the_same_events(history: list[ProbePulse]) -> None:
    first, again = fold(history), fold([ProbePulse.decode(one.encode()) for one in history])
    assert first == again
    ids = [one.event.event_id for one in first[1]]
    assert len(ids) == len(set(ids))


@given(_HISTORIES)
@settings(deadline=None)
def test_each_brokers_events_join_into_one_chain(history: list[ProbePulse]) -> None:
    state, findings = fold(history)
    for broker_id in range(3):
        chain = [one.event for one in findings if one.event.broker_id == broker_id]
        phases = ["HEALTHY", *(event.to_state for event in chain)]
        assert [event.from_state for event in chain] == phases[:-1]
        assert all(a != b for a, b in pairwise(phases))
        is_open = (
            Subject("orders", Chain.BROKER_DOWN, broker_id),
            Phase.BROKER_DOWN,
        ) in state.open_findings()
        assert is_open == (phases[-1] == "BROKER_DOWN")


@given(_HISTORIES, st.integers(0, 2))
@settings(deadline=None)
def test_a_brokers_findings_do_not_depend_on_its_neighbours(
    history: list[ProbePulse], broker_id: int
) -> None:
    alone = [
        pulse((one.emitted_at - at(0)).total_seconds(), one.brokers[broker_id], vantage=one.vantage)
        for one in history
    ]
    together = fold(history)[1]
    assume(not any(one.to_phase is Phase.CLUSTER_DOWN for one in together))

    def apart(one: Finding) -> tuple[object, ...]:
        evidence = json.loads(one.event.evidence)
        del evidence["peers"]
        return one.subject, one.from_phase, one.to_phase, one.event.at, evidence

    assert [apart(one) for one in fold(alone)[1] if one.event.broker_id is not None] == [
        apart(one) for one in together if one.event.broker_id == broker_id
    ]


@given(_HISTORIES)
@settings(deadline=None)
def test_nobody_is_named_without_a_pulse_that_shows_both_signs(history: list[ProbePulse]) -> None:
    for one in fold(history)[1]:
        if one.to_phase is Phase.BROKER_DOWN:
            seen = json.loads(one.event.evidence)["vantages"].values()
            assert any(signs["unanswered"] and signs["leg_silent"] for signs in seen)


def test_the_state_that_was_given_is_left_as_it_was() -> None:
    state = named()
    before = state.open_findings()
    fold([pulse(20, broker())], state)
    assert state.open_findings() == before


# A watch that starts again ---------------------------------------------------------


def test_a_restarted_watch_neither_names_again_nor_forgets_to_clear() -> None:
    _, before = fold([pulse(0, broker()), pulse(5, hung(5))])
    state = remember(recall(before))
    assert state.open_findings() == DOWN
    state, findings = fold([pulse(10, hung(10)), pulse(15, hung(15))], state)
    assert findings == []
    _, findings = fold([pulse(20, broker())], state)
    assert [one.clears for one in findings] == [True]


@given(_HISTORIES)
@settings(deadline=None)
def test_a_watch_remembers_the_phase_of_every_broker_from_its_events(history: list[ProbePulse]) -> None:
    state, findings = fold(history)
    remembered = remember(recall(findings))
    assert remembered.open_findings() == state.open_findings()


def test_a_restart_between_any_two_pulses_of_a_hang_names_once_and_at_most_a_pulse_later() -> None:
    story = [pulse(0, broker()), *(pulse(5 * n, hung(5 * n)) for n in range(1, 6)), pulse(30, broker())]
    naming, clearing = fold(story)[1]
    for cut in range(len(story)):
        _, before = fold(story[:cut])
        _, after = fold(story[cut:], remember(recall(before)))
        found = [one for one in [*before, *after] if one.names or one.clears]
        assert [one.event.fingerprint for one in found] == [naming.event.fingerprint] * 2
        assert found[0].event.at - naming.event.at <= at(5) - at(0)
        assert found[1].event.event_id == clearing.event.event_id


def test_a_pulse_order_within_one_instant_does_not_change_who_is_named() -> None:
    vantages = ["zone-a", "zone-b", "zone-c"]
    shuffler = random.Random(3)
    outcomes = set()
    for _ in range(10):
        shuffler.shuffle(vantages)
        rounds = [
            pulse(5 * n, broker() if n == 0 else hung(5 * n), vantage=v) for n in range(4) for v in vantages
        ]
        outcomes.add(tuple(one.event.event_id for one in fold(rounds)[1] if one.names))
    assert len(outcomes) == 1


def test_an_event_of_an_unknown_later_state_does_not_stop_a_watch_from_starting() -> None:
    event = HealthEvent("id", "print", "orders", 1, at(0), "HEALTHY", "BROKER_SLOW", "DEGRADED", "{}")
    assert recalled(event) is None


def test_a_finding_of_a_broker_says_how_its_peers_are() -> None:
    def peers(pulses: Iterable[ProbePulse]) -> list[dict[str, Any]]:
        return [json.loads(one.event.evidence)["peers"] for one in fold(pulses)[1] if one.names]

    alone = [pulse(s, hung(s, 1), broker(2), broker(3)) for s in range(0, 60, 5)]
    assert peers(alone) == [{"brokers": 2, "named": []}]
    with_another = [
        pulse(s, hung(s, 1), broker(2), hung(s - 20, 3) if s > 20 else broker(3)) for s in range(0, 60, 5)
    ]
    assert peers(with_another) == [{"brokers": 2, "named": []}, {"brokers": 2, "named": [1]}]


# What another watch left too late --------------------------------------------------


def test_what_is_learnt_late_holds_until_what_is_heard_says_otherwise() -> None:
    _, (found,) = fold([pulse(0, broker()), pulse(5, hung(5))])
    well, _ = fold([pulse(5, broker())])
    told = adopt(well, found)
    assert told.open_findings() == DOWN
    _, findings = fold([pulse(10, broker()), pulse(15, broker())], told)
    assert [(one.clears, one.event.fingerprint) for one in findings] == [(True, found.event.fingerprint)]


def test_what_is_known_already_and_what_is_over_changes_nothing() -> None:
    state, findings = fold([pulse(0, broker()), pulse(5, hung(5)), pulse(10, hung(10))])
    (down,) = findings
    assert adopt(state, down) is state
    _, (over,) = fold([pulse(15, broker())], state)
    assert adopt(state, over) is state


@pytest.mark.parametrize(
    ("chain", "evidence"),
    [
        ("PATH", {}),
        ("PATH", {"vantage": "a", "broker": "two"}),
        ("VANTAGE_ILL", {"vantage": "a", "brokers": 3}),
        ("DEGRADED", {"slow": {"zone-a": "most"}}),
        ("DEGRADED", []),
        ("BROKER_DOWN", None),
    ],
)
def test_an_event_whose_evidence_cannot_be_gone_on_from_is_refused(chain: str, evidence: object) -> None:
    one = finding(Subject("orders", Chain(chain), 1), Phase.HEALTHY, Phase(chain), at(0), {}).event
    with pytest.raises(ContractError, match=f"evidence of {chain}"):
        recalled(replace(one, evidence=json.dumps(evidence) if evidence is not None else "not JSON"))


@pytest.mark.parametrize(
    ("chain", "broker_id", "evidence"),
    [("DEGRADED", 1, {}), ("VANTAGE_ILL", None, {"vantage": "a"}), ("BROKER_DOWN", 1, {"of": "later"})],
)
def test_what_an_event_says_is_gone_on_from_though_its_evidence_is_another_versions(
    chain: str, broker_id: int | None, evidence: dict[str, str]
) -> None:
    subject = Subject("orders", Chain(chain), broker_id, evidence.get("vantage"))
    found = recalled(finding(subject, Phase.HEALTHY, Phase(chain), at(0), evidence).event)
    assert found is not None
    assert remember([found]).open_findings() == ((subject, Phase(chain)),)
