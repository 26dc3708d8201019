import itertools

import pytest

from fleetgauge_probes.agent.leader_eligibility import Standing, standing


@pytest.mark.parametrize(("in_sync", "answering"), list(itertools.product([True, False], repeat=2)))
def test_a_home_that_leads_is_probed_whatever_else_is_seen(in_sync: bool, answering: bool) -> None:
    assert standing(True, in_sync, answering) is Standing.LEADS


def test_a_home_in_sync_and_answering_has_merely_lost_leadership() -> None:
    assert standing(False, in_sync=True, answering=True) is Standing.AWAY


@pytest.mark.parametrize(("in_sync", "answering"), [(True, False), (False, True), (False, False)])
def test_a_home_out_of_sync_or_silent_is_out(in_sync: bool, answering: bool) -> None:
    assert standing(False, in_sync, answering) is Standing.OUT
