"""Pulses of an agent that cannot measure by a fault of its own: they blame no broker and hide none."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_core.contract import BrokerPulse
from fleetgauge_core.detection import (
    DEFAULT_THRESHOLDS,
    FindingSubject,
    HealthCondition,
    HealthState,
    read_liveness_signs,
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

ILL = FindingSubject("orders", HealthCondition.VANTAGE_ILL, vantage="zone-a")
HELD = ((ILL, HealthState.VANTAGE_ILL),)


def without_rights(broker_id: int, answer: float | None = 0.5, fenced: bool = False) -> BrokerPulse:
    """A broker whose probes the cluster refuses, as the agent lacks a permission."""
    none = replace(leg(success=None), due=0, succeeded=0, agent_fault="rights", p50_us=None, p99_us=None)
    return replace(broker(broker_id, answer=answer, leader=none), fenced=fenced)


def without_files(broker_id: int) -> BrokerPulse:
    """A broker to which the agent cannot connect, as its host is out of files."""
    return replace(without_rights(broker_id, answer=60), silence="own_resources", connection_fault="host")


def without_permission_for_a_minute(second: int) -> list[BrokerPulse]:
    make = without_rights if 20 <= second < 80 else broker
    return [make(broker_id) for broker_id in (1, 2, 3)]


def test_a_missing_permission_is_told_once_as_a_fault_of_the_vantage() -> None:
    state, findings = fold_pulses(
        pulse(second, *without_permission_for_a_minute(second)) for second in range(0, 200, 5)
    )
    opened, cleared = findings
    assert (opened.subject, opened.to_state, opened.event.at) == (ILL, HealthState.VANTAGE_ILL, at(25))
    assert opened.event.broker_id is None
    evidence = {"vantage": "zone-a", "brokers": [1, 2, 3], "agent_fault": "rights"}
    assert json.loads(opened.event.evidence) == json.loads(cleared.event.evidence) == evidence
    assert (cleared.is_cleared, cleared.event.at) == (True, at(105))
    assert state.open_findings() == ()


def test_a_permission_that_is_refused_for_a_moment_is_not_told() -> None:
    brokers = [[broker(1)], [without_rights(1)], [broker(1)], [broker(1)]]
    _, findings = fold_pulses(pulse(5 * number, *listed) for number, listed in enumerate(brokers))
    assert findings == []


@pytest.mark.parametrize("make", [without_rights, without_files])
def test_an_agent_that_measures_nothing_names_no_broker(make: object) -> None:
    _, findings = fold_pulses(
        pulse(second, *(make(broker_id) for broker_id in (1, 2, 3)))  # type: ignore[operator]
        for second in range(0, 120, 5)
    )
    assert list_transitions(findings) == [(None, "VANTAGE_ILL")]


def test_a_broker_that_goes_down_while_permissions_are_missing_is_found_by_what_remains() -> None:
    def observe(second: int) -> list[BrokerPulse]:
        silent_s = second - 60
        second_broker = (
            without_rights(2)
            if silent_s < 0
            else without_rights(2, answer=silent_s + 0.5, fenced=silent_s >= 10)
        )
        return [without_rights(1), second_broker, without_rights(3)]

    _, findings = fold_pulses(pulse(second, *observe(second)) for second in range(0, 120, 5))
    assert list_transitions(findings) == [(None, "VANTAGE_ILL"), (2, "SUSPECT"), (2, "BROKER_DOWN")]


def test_an_alert_is_not_cleared_by_a_vantage_that_measures_nothing() -> None:
    before = [pulse(second, broker(1), hung(second, 2)) for second in (0, 5, 10, 15)]
    after = [pulse(second, without_files(1), without_files(2)) for second in range(20, 200, 5)]
    state, _ = fold_pulses([*before, *after])
    assert (FindingSubject("orders", HealthCondition.BROKER_DOWN, 2), HealthState.BROKER_DOWN) in (
        state.open_findings()
    )


@pytest.mark.parametrize("ill", [without_files, lambda broker_id: without_rights(broker_id, answer=30)])
def test_a_vantage_that_measures_nothing_neither_outvotes_nor_contradicts_another(ill: object) -> None:
    def listen(second: int) -> list[object]:
        down = hung(second - 30, 2) if second >= 30 else broker(2)
        return [
            pulse(second, broker(1), down, broker(3)),
            pulse(second + 0.5, *(ill(each) for each in (1, 2, 3)), vantage="zone-b"),  # type: ignore[operator]
        ]

    pulses = [each for second in range(0, 120, 5) for each in listen(second)]
    state, findings = fold_pulses(pulses)  # type: ignore[arg-type]
    assert (2, "BROKER_DOWN") in list_transitions(findings)
    assert "PATH" not in {finding.to_state for finding in findings}
    assert (FindingSubject("orders", HealthCondition.BROKER_DOWN, 2), HealthState.BROKER_DOWN) in (
        state.open_findings()
    )


def test_an_open_fault_is_restored_and_cleared_by_pulses_without_it() -> None:
    _, findings = fold_pulses(pulse(second, without_rights(1)) for second in range(0, 60, 5))
    restored = restore_fleet_health(encode_and_parse(findings))
    assert restored.open_findings() == HELD
    other_first = [pulse(100, broker(1), vantage="zone-b"), pulse(101, without_rights(1))]
    state, more = fold_pulses(other_first, restored)
    assert (state.open_findings(), more) == (HELD, [])
    state, more = fold_pulses((pulse(second, broker(1)) for second in range(105, 140, 5)), state)
    assert [finding.is_cleared for finding in more] == [True]
    assert restore_fleet_health(encode_and_parse([*findings, *more])).open_findings() == ()


def test_an_open_fault_survives_a_clock_that_is_set_back() -> None:
    state, _ = fold_pulses(pulse(second, without_rights(1)) for second in range(600, 660, 5))
    state, findings = fold_pulses(
        (pulse(second, without_rights(1)) for second in range(0, 60, 5)), rewind_clock(state, at(0))
    )
    assert (state.open_findings(), findings) == (HELD, [])


@given(
    agent_fault=st.sampled_from([None, "rights"]),
    connection_fault=st.sampled_from([None, "host"]),
    answer=st.sampled_from([None, 0.5, 30]),
    success=st.sampled_from([None, 0.3, 30]),
    failed=st.sampled_from([0, 9]),
    fenced=st.booleans(),
)
def test_a_broker_that_refuses_every_client_never_looks_well(
    agent_fault: str | None,
    connection_fault: str | None,
    answer: float | None,
    success: float | None,
    failed: int,
    fenced: bool,
) -> None:
    """Where neither sign of life was measured, a broker is suspect, or undecided for this vantage."""
    leader = replace(leg(failed=failed, success=success), agent_fault=agent_fault)
    pulsed = replace(
        broker(1, answer=answer, leader=leader), fenced=fenced, connection_fault=connection_fault
    )
    signs = read_liveness_signs(pulsed, DEFAULT_THRESHOLDS)
    is_answering = answer == 0.5 and connection_fault is None
    is_succeeding = success == 0.3
    if not is_answering and not is_succeeding:
        assert signs.is_suspect or signs.is_undecided
        assert not signs.well
    assert not (signs.is_undecided and signs.is_unreachable)
