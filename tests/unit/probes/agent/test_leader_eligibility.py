import itertools

import pytest

from fleetgauge_probes.agent.leader_eligibility import LeaderEligibility, assess_eligibility


@pytest.mark.parametrize(("in_sync", "responding"), list(itertools.product([True, False], repeat=2)))
def test_a_home_that_leads_is_probed_in_any_state(in_sync: bool, responding: bool) -> None:
    assert assess_eligibility(True, in_sync, responding) is LeaderEligibility.LEADING


def test_a_home_in_sync_that_responds_is_excused_from_leading() -> None:
    assert assess_eligibility(False, in_sync=True, responding=True) is LeaderEligibility.EXCUSED


@pytest.mark.parametrize(("in_sync", "responding"), [(True, False), (False, True), (False, False)])
def test_a_home_out_of_sync_or_without_response_is_unhealthy(in_sync: bool, responding: bool) -> None:
    assert assess_eligibility(False, in_sync, responding) is LeaderEligibility.UNHEALTHY
