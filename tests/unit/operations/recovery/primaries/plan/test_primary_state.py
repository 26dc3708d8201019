"""Who is called the primary, and what is found instead."""

import random
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_operations.recovery.primaries.plan.primary_lease import Claim
from fleetgauge_operations.recovery.primaries.plan.primary_state import (
    Finding,
    Kind,
    Reach,
    Standing,
    findings,
    judged,
    standing,
)

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
LATER, BEFORE = NOW + timedelta(seconds=30), NOW - timedelta(seconds=30)
REGIONS = {
    "north": "north",
    "north-all": "north",
    "south": "south",
    "south-all": "south",
    "alone": None,
    "elsewhere": "west",
}
LOOKED_AT = frozenset({"north", "north-all", "south", "south-all", "alone"})
ALL_ANSWER = Reach(REGIONS, LOOKED_AT, LOOKED_AT)


def claim(primary: str, epoch: int | None = None, lease_until: datetime | None = LATER) -> Claim:
    return Claim("billing", primary, epoch, lease_until)


def judge(*claims: Claim, silent: frozenset[str] = frozenset()) -> Standing:
    return standing("billing", claims, Reach(REGIONS, LOOKED_AT, LOOKED_AT - silent), NOW)


def kind(*claims: Claim, silent: frozenset[str] = frozenset()) -> Kind | None:
    finding = judge(*claims, silent=silent).finding
    return finding.kind if finding else None


@pytest.mark.parametrize("lease_until", [None, LATER])
@pytest.mark.parametrize("primary", ["north", "south-all", "alone", "west"])
def test_who_alone_claims_it_is_the_primary(primary: str, lease_until: datetime | None) -> None:
    one = claim(primary, 3, lease_until)
    assert judge(one) == Standing("billing", (one,), one, None)


def test_who_claims_it_again_at_a_later_epoch_is_one_primary() -> None:
    assert judge(claim("north", 3), claim("north", 4), claim("north")).primary == claim("north", 4)


def test_a_claim_that_is_over_is_no_second_one() -> None:
    assert judge(claim("north", 3, BEFORE), claim("south", 4)).primary == claim("south", 4)
    assert judge(claim("north", 3, BEFORE), claim("north", 2)).primary == claim("north", 2)


def test_two_that_hold_it_are_named_with_their_epochs_the_newer_first() -> None:
    finding = judge(claim("north", 3, None), claim("south", 4)).finding
    words = "2 claim it: south at epoch 4, until 2026-03-02T12:00:30Z; north at epoch 3, without an end"
    assert finding == Finding(Kind.PRIMARY_TWO, "billing", words)
    assert kind(claim("north", 3), claim("south", 3)) is Kind.PRIMARY_TWO
    assert kind(claim("north"), claim("south")) is Kind.PRIMARY_TWO
    assert kind(claim("north-all", 3), claim("alone", 3)) is Kind.PRIMARY_TWO
    assert judge(claim("north", 3), claim("south", 4)).primary is None


def test_a_lease_that_outlives_its_epoch_is_a_second_claim_though_the_newer_one_is_over() -> None:
    assert kind(claim("north", 3), claim("south", 4, BEFORE)) is Kind.PRIMARY_TWO


def test_a_region_and_a_cluster_of_it_are_one_primary() -> None:
    assert judge(claim("north", 3), claim("north-all", 4)).primary == claim("north-all", 4)
    assert kind(claim("north", 3), claim("north-all", 4), claim("south", 2, BEFORE)) is None


def test_nobody_is_the_primary_where_nobody_claims_it_or_all_leases_are_over() -> None:
    assert judge().finding == Finding(Kind.PRIMARY_NONE, "billing", "nobody claims it")
    finding = judge(claim("north", 3, NOW), claim("south", 4, BEFORE)).finding
    words = "all leases are over, the last one too: south at epoch 4, until 2026-03-02T11:59:30Z"
    assert finding == Finding(Kind.PRIMARY_NONE, "billing", words)


@pytest.mark.parametrize(
    ("primary", "silent", "dead"),
    [
        ("north", {"north"}, False),
        ("north", {"north", "north-all"}, True),
        ("north", {"south", "south-all"}, False),
        ("north-all", {"north-all"}, True),
        ("north-all", {"north"}, False),
        ("alone", {"alone"}, True),
    ],
)
def test_a_primary_is_dead_when_none_of_its_clusters_answers(
    primary: str, silent: set[str], dead: bool
) -> None:
    found = judge(claim(primary), silent=frozenset(silent))
    assert (found.finding is not None and found.finding.kind is Kind.PRIMARY_DEAD) == dead
    assert found.primary == claim(primary)


def test_whose_clusters_nobody_looks_at_is_not_called_dead() -> None:
    assert kind(claim("west")) is None
    assert kind(claim("elsewhere")) is None


def test_a_name_that_the_fleet_file_has_not_is_unknown() -> None:
    finding = judge(claim("nroth", 3)).finding
    words = (
        "nroth at epoch 3, until 2026-03-02T12:00:30Z: that is neither a region nor a cluster of the fleet"
    )
    assert finding == Finding(Kind.PRIMARY_UNKNOWN, "billing", f"{words} file")


def test_services_are_judged_each_by_its_own_claims_and_others_not_at_all() -> None:
    claims = [Claim("a", "north"), Claim("b", "south"), Claim("b", "north"), Claim("nobody's", "nowhere")]
    found = findings(claims, ["a", "b", "c"], ALL_ANSWER, NOW)
    assert [(one.kind, one.service) for one in found] == [
        (Kind.PRIMARY_TWO, "b"),
        (Kind.PRIMARY_NONE, "c"),
    ]


CLAIMS = st.lists(
    st.builds(
        Claim,
        st.sampled_from("ab"),
        st.sampled_from(["north", "north-all", "south", "alone", "nowhere"]),
        st.none() | st.integers(0, 3),
        st.sampled_from([None, LATER, BEFORE, NOW]),
    ),
    max_size=6,
)


@given(CLAIMS, st.sets(st.sampled_from(sorted(LOOKED_AT))), st.randoms(use_true_random=False))
def test_the_order_of_claims_changes_nothing(
    claims: list[Claim], answering: set[str], order: random.Random
) -> None:
    reach = Reach(REGIONS, LOOKED_AT, frozenset(answering))
    shuffled = [*claims, *claims[:1]]
    order.shuffle(shuffled)
    assert judged(claims, "ab", reach, NOW) == judged(shuffled, "ba", reach, NOW)


@given(CLAIMS)
def test_there_is_a_primary_just_where_all_that_hold_mean_the_same(claims: list[Claim]) -> None:
    for found in judged(claims, "ab", ALL_ANSWER, NOW):
        held = [one for one in claims if one.service == found.service and one.holds(NOW)]
        agree = all(ALL_ANSWER.may_be_one(one.primary, other.primary) for one in held for other in held)
        if not held:
            assert found.finding is not None
            assert found.finding.kind is Kind.PRIMARY_NONE
        if not agree:
            assert found.finding is not None
            assert found.finding.kind is Kind.PRIMARY_TWO
        if found.primary:
            assert agree
            assert found.primary in held
        else:
            assert found.finding is not None
