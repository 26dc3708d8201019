import json
from dataclasses import replace

import pytest

from fleetgauge_core.contract import BrokerPulse
from fleetgauge_core.detection import DEFAULT_THRESHOLDS, Signs, read_signs
from tests.unit.core.detection.pulses import (
    away,
    broker,
    hung,
    leg,
    mute,
    silent,
)


def _signs(one: BrokerPulse) -> Signs:
    return read_signs(one, DEFAULT_THRESHOLDS)


def test_a_well_broker_shows_no_sign() -> None:
    signs = _signs(broker())
    assert (signs.unanswered, signs.leg_silent, signs.succeeding, signs.well) == (False, False, True, True)


def test_a_hung_broker_shows_both_signs() -> None:
    signs = _signs(hung(6))
    assert (signs.unanswered, signs.leg_silent, signs.succeeding, signs.well) == (True, True, False, False)


def test_both_signs_have_held_for_as_long_as_the_later_one() -> None:
    assert _signs(broker(answer=9, leader=leg(failed=1, success=5))).gone_ms == 2000
    assert _signs(broker(answer=4, leader=leg(failed=1, success=9))).gone_ms == 1000
    for one in (mute(), silent(), broker(answer=None, leader=leg(failed=1, success=9))):
        assert _signs(one).gone_ms == 0


def test_each_sign_stands_alone() -> None:
    assert (_signs(mute()).unanswered, _signs(mute()).leg_silent) == (True, False)
    assert (_signs(silent()).unanswered, _signs(silent()).leg_silent) == (False, True)


@pytest.mark.parametrize(("age", "unanswered"), [(2.999, False), (3.0, True), (None, True)])
def test_three_seconds_without_an_answer_are_a_sign_and_so_is_no_answer_ever(
    age: float | None, unanswered: bool
) -> None:
    assert _signs(broker(answer=age)).unanswered is unanswered


@pytest.mark.parametrize(("success", "silent_leg"), [(2.999, False), (3.0, True), (None, True)])
def test_failures_make_a_leg_silent_once_its_last_success_is_three_seconds_old(
    success: float | None, silent_leg: bool
) -> None:
    assert _signs(broker(leader=leg(failed=1, success=success))).leg_silent is silent_leg


@pytest.mark.parametrize(("waiting", "silent_leg"), [(1.999, False), (2.0, True)])
def test_a_probe_that_waits_two_seconds_speaks_like_a_failure(waiting: float, silent_leg: bool) -> None:
    assert _signs(broker(leader=leg(outstanding=waiting, success=5))).leg_silent is silent_leg


@pytest.mark.parametrize("success", [None, 5, 600])
def test_a_leg_of_which_nothing_is_due_is_not_silent(success: float | None) -> None:
    signs = _signs(away(success=success))
    assert (signs.leg_silent, signs.succeeding) == (False, False)


def test_the_client_leg_has_no_say() -> None:
    one = broker()
    client = replace(one.legs[0], failed=99, succeeded=0, success_age_ms=60_000, oldest_outstanding_ms=9_000)
    assert _signs(replace(one, legs=(client, one.legs[1]))) == _signs(one)


def test_a_broker_that_is_not_yet_probed_has_no_silent_leg() -> None:
    signs = _signs(replace(broker(), legs=()))
    assert (signs.leg_silent, signs.succeeding, signs.leader_success_age_ms) == (False, False, None)


@pytest.mark.parametrize(
    ("in_sync", "answer", "well"), [(True, 1, True), (False, 1, False), (True, 9, False)]
)
def test_well_is_in_sync_and_answering_whether_it_leads_or_not(
    in_sync: bool, answer: float, well: bool
) -> None:
    for leads in (True, False):
        assert _signs(broker(answer=answer, in_sync=in_sync, leads=leads)).well is well


def test_the_evidence_can_be_written_down() -> None:
    evidence = _signs(hung(7)).evidence()
    assert json.loads(json.dumps(evidence)) == evidence
    assert evidence["answer_age_ms"] == 7_400
