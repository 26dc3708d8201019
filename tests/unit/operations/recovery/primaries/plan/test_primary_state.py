"""The primary of a service, or what is wrong with its leases."""

import random
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_operations.recovery.primaries.plan.primary_lease import PrimaryLease
from fleetgauge_operations.recovery.primaries.plan.primary_state import (
    ClusterReachability,
    PrimaryFinding,
    PrimaryFindingKind,
    PrimaryState,
    evaluate_primaries,
    evaluate_primary,
    find_primary_problems,
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
INSPECTED = frozenset({"north", "north-all", "south", "south-all", "alone"})
ALL_REACHABLE = ClusterReachability(REGIONS, INSPECTED, INSPECTED)


def build_lease(primary: str, epoch: int | None = None, lease_until: datetime | None = LATER) -> PrimaryLease:
    return PrimaryLease("billing", primary, epoch, lease_until)


def evaluate(*leases: PrimaryLease, unreachable: frozenset[str] = frozenset()) -> PrimaryState:
    return evaluate_primary(
        "billing", leases, ClusterReachability(REGIONS, INSPECTED, INSPECTED - unreachable), NOW
    )


def finding_kind(
    *leases: PrimaryLease, unreachable: frozenset[str] = frozenset()
) -> PrimaryFindingKind | None:
    finding = evaluate(*leases, unreachable=unreachable).finding
    return finding.kind if finding else None


@pytest.mark.parametrize("lease_until", [None, LATER])
@pytest.mark.parametrize("primary", ["north", "south-all", "alone", "west"])
def test_the_only_active_lease_is_the_primary(primary: str, lease_until: datetime | None) -> None:
    lease = build_lease(primary, 3, lease_until)
    assert evaluate(lease) == PrimaryState("billing", (lease,), lease, None)


def test_renewed_leases_of_one_primary_do_not_conflict() -> None:
    assert evaluate(
        build_lease("north", 3), build_lease("north", 4), build_lease("north")
    ).primary == build_lease("north", 4)


def test_an_expired_lease_does_not_conflict() -> None:
    assert evaluate(build_lease("north", 3, BEFORE), build_lease("south", 4)).primary == build_lease(
        "south", 4
    )
    assert evaluate(build_lease("north", 3, BEFORE), build_lease("north", 2)).primary == build_lease(
        "north", 2
    )


def test_conflicting_leases_are_listed_newest_first() -> None:
    finding = evaluate(build_lease("north", 3, None), build_lease("south", 4)).finding
    message = (
        "2 conflicting leases: south at epoch 4, until 2026-03-02T12:00:30Z; north at epoch 3, without expiry"
    )
    assert finding == PrimaryFinding(PrimaryFindingKind.PRIMARY_TWO, "billing", message)
    assert finding_kind(build_lease("north", 3), build_lease("south", 3)) is PrimaryFindingKind.PRIMARY_TWO
    assert finding_kind(build_lease("north"), build_lease("south")) is PrimaryFindingKind.PRIMARY_TWO
    assert (
        finding_kind(build_lease("north-all", 3), build_lease("alone", 3)) is PrimaryFindingKind.PRIMARY_TWO
    )
    assert evaluate(build_lease("north", 3), build_lease("south", 4)).primary is None


def test_an_outdated_active_lease_conflicts_with_an_expired_newer_one() -> None:
    assert (
        finding_kind(build_lease("north", 3), build_lease("south", 4, BEFORE))
        is PrimaryFindingKind.PRIMARY_TWO
    )


def test_a_region_and_its_cluster_are_the_same_primary() -> None:
    assert evaluate(build_lease("north", 3), build_lease("north-all", 4)).primary == build_lease(
        "north-all", 4
    )
    assert (
        finding_kind(build_lease("north", 3), build_lease("north-all", 4), build_lease("south", 2, BEFORE))
        is None
    )


def test_there_is_no_primary_without_an_active_lease() -> None:
    assert evaluate().finding == PrimaryFinding(
        PrimaryFindingKind.PRIMARY_NONE, "billing", "there is no lease"
    )
    finding = evaluate(build_lease("north", 3, NOW), build_lease("south", 4, BEFORE)).finding
    message = "all leases have expired, the last was south at epoch 4, until 2026-03-02T11:59:30Z"
    assert finding == PrimaryFinding(PrimaryFindingKind.PRIMARY_NONE, "billing", message)


@pytest.mark.parametrize(
    ("primary", "unreachable", "dead"),
    [
        ("north", {"north"}, False),
        ("north", {"north", "north-all"}, True),
        ("north", {"south", "south-all"}, False),
        ("north-all", {"north-all"}, True),
        ("north-all", {"north"}, False),
        ("alone", {"alone"}, True),
    ],
)
def test_a_primary_is_dead_if_none_of_its_clusters_is_reachable(
    primary: str, unreachable: set[str], dead: bool
) -> None:
    state = evaluate(build_lease(primary), unreachable=frozenset(unreachable))
    assert (state.finding is not None and state.finding.kind is PrimaryFindingKind.PRIMARY_DEAD) == dead
    assert state.primary == build_lease(primary)


def test_a_primary_whose_clusters_are_not_inspected_is_not_dead() -> None:
    assert finding_kind(build_lease("west")) is None
    assert finding_kind(build_lease("elsewhere")) is None


def test_a_primary_outside_the_fleet_file_is_unknown() -> None:
    finding = evaluate(build_lease("nroth", 3)).finding
    message = "nroth at epoch 3, until 2026-03-02T12:00:30Z: neither a region nor a cluster of the fleet"
    assert finding == PrimaryFinding(PrimaryFindingKind.PRIMARY_UNKNOWN, "billing", f"{message} file")


def test_each_service_is_evaluated_by_its_own_leases() -> None:
    leases = [
        PrimaryLease("a", "north"),
        PrimaryLease("b", "south"),
        PrimaryLease("b", "north"),
        PrimaryLease("unknown", "nowhere"),
    ]
    findings = find_primary_problems(leases, ["a", "b", "c"], ALL_REACHABLE, NOW)
    assert [(finding.kind, finding.service) for finding in findings] == [
        (PrimaryFindingKind.PRIMARY_TWO, "b"),
        (PrimaryFindingKind.PRIMARY_NONE, "c"),
    ]


LEASES = st.lists(
    st.builds(
        PrimaryLease,
        st.sampled_from("ab"),
        st.sampled_from(["north", "north-all", "south", "alone", "nowhere"]),
        st.none() | st.integers(0, 3),
        st.sampled_from([None, LATER, BEFORE, NOW]),
    ),
    max_size=6,
)


@given(LEASES, st.sets(st.sampled_from(sorted(INSPECTED))), st.randoms(use_true_random=False))
def test_the_order_of_leases_does_not_matter(
    leases: list[PrimaryLease], reachable: set[str], order: random.Random
) -> None:
    reachability = ClusterReachability(REGIONS, INSPECTED, frozenset(reachable))
    shuffled = [*leases, *leases[:1]]
    order.shuffle(shuffled)
    assert evaluate_primaries(leases, "ab", reachability, NOW) == evaluate_primaries(
        shuffled, "ba", reachability, NOW
    )


@given(LEASES)
def test_there_is_a_primary_exactly_if_all_active_leases_agree(leases: list[PrimaryLease]) -> None:
    for state in evaluate_primaries(leases, "ab", ALL_REACHABLE, NOW):
        active = [lease for lease in leases if lease.service == state.service and lease.is_active(NOW)]
        agree = all(
            ALL_REACHABLE.are_same_primary(first.primary, second.primary)
            for first in active
            for second in active
        )
        if not active:
            assert state.finding is not None
            assert state.finding.kind is PrimaryFindingKind.PRIMARY_NONE
        if not agree:
            assert state.finding is not None
            assert state.finding.kind is PrimaryFindingKind.PRIMARY_TWO
        if state.primary:
            assert agree
            assert state.primary in active
        else:
            assert state.finding is not None
