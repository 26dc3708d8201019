"""Liveness signs of one broker in one pulse."""

import json
from dataclasses import replace

import pytest

from fleetgauge_core.contract import BrokerPulse
from fleetgauge_core.detection import DEFAULT_THRESHOLDS, LivenessSigns, read_liveness_signs
from tests.unit.core.detection.pulses import (
    broker,
    hung,
    leg,
    leg_silent,
    not_leading,
    unanswered,
)


def _signs(broker_pulse: BrokerPulse) -> LivenessSigns:
    return read_liveness_signs(broker_pulse, DEFAULT_THRESHOLDS)


def test_a_healthy_broker_shows_no_sign() -> None:
    signs = _signs(broker())
    assert (signs.unanswered, signs.leg_silent, signs.succeeding, signs.well) == (False, False, True, True)


def test_a_hung_broker_shows_both_signs() -> None:
    signs = _signs(hung(6))
    assert (signs.unanswered, signs.leg_silent, signs.succeeding, signs.well) == (True, True, False, False)


def test_both_signs_have_held_since_the_later_one_began() -> None:
    assert _signs(broker(answer=9, leader=leg(failed=1, success=5))).gone_ms == 2000
    assert _signs(broker(answer=4, leader=leg(failed=1, success=9))).gone_ms == 1000
    for broker_pulse in (unanswered(), leg_silent(), broker(answer=None, leader=leg(failed=1, success=9))):
        assert _signs(broker_pulse).gone_ms == 0


def test_the_two_signs_are_independent() -> None:
    assert (_signs(unanswered()).unanswered, _signs(unanswered()).leg_silent) == (True, False)
    assert (_signs(leg_silent()).unanswered, _signs(leg_silent()).leg_silent) == (False, True)


@pytest.mark.parametrize(("age", "unanswered"), [(2.999, False), (3.0, True), (None, True)])
def test_three_seconds_without_an_answer_are_a_sign(age: float | None, unanswered: bool) -> None:
    assert _signs(broker(answer=age)).unanswered is unanswered


@pytest.mark.parametrize(("success", "is_silent"), [(2.999, False), (3.0, True), (None, True)])
def test_a_leg_with_failures_is_silent_three_seconds_after_its_last_success(
    success: float | None, is_silent: bool
) -> None:
    assert _signs(broker(leader=leg(failed=1, success=success))).leg_silent is is_silent


@pytest.mark.parametrize(("waiting", "is_silent"), [(1.999, False), (2.0, True)])
def test_a_probe_outstanding_for_two_seconds_counts_as_a_failure(waiting: float, is_silent: bool) -> None:
    assert _signs(broker(leader=leg(outstanding=waiting, success=5))).leg_silent is is_silent


@pytest.mark.parametrize("success", [None, 5, 600])
def test_a_leg_without_due_probes_is_not_silent(success: float | None) -> None:
    signs = _signs(not_leading(success=success))
    assert (signs.leg_silent, signs.succeeding) == (False, False)


def test_the_client_leg_does_not_affect_the_signs() -> None:
    healthy = broker()
    client = replace(
        healthy.legs[0], failed=99, succeeded=0, success_age_ms=60_000, oldest_outstanding_ms=9_000
    )
    assert _signs(replace(healthy, legs=(client, healthy.legs[1]))) == _signs(healthy)


def test_a_broker_that_is_not_yet_probed_has_no_is_silent() -> None:
    signs = _signs(replace(broker(), legs=()))
    assert (signs.leg_silent, signs.succeeding, signs.leader_success_age_ms) == (False, False, None)


@pytest.mark.parametrize(
    ("in_sync", "answer", "well"), [(True, 1, True), (False, 1, False), (True, 9, False)]
)
def test_a_broker_is_well_if_it_is_in_sync_and_answers(in_sync: bool, answer: float, well: bool) -> None:
    for leads in (True, False):
        assert _signs(broker(answer=answer, in_sync=in_sync, leads=leads)).well is well


def test_the_evidence_can_be_written_as_json() -> None:
    evidence = _signs(hung(7)).evidence()
    assert json.loads(json.dumps(evidence)) == evidence
    assert evidence["answer_age_ms"] == 7_400
