"""Preconditions of a promotion."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_core.fleet import Capacity, Recovery
from fleetgauge_operations.recovery.offsets.mirror_state import ReplicationState
from fleetgauge_operations.recovery.plan.forecast import GroupForecast
from fleetgauge_operations.recovery.plan.sync_decision import ClusterPair
from fleetgauge_operations.recovery.primaries.plan.primary_lease import PrimaryLease
from fleetgauge_operations.recovery.primaries.plan.primary_state import ClusterReachability, evaluate_primary
from fleetgauge_operations.recovery.primaries.plan.promotion import (
    Precondition,
    PreconditionName,
    PromotionInputs,
    PromotionPlan,
    check_groups,
    check_headroom,
    check_input_lag,
    check_label,
    plan_promotion,
)
from tests.unit.operations.recovery.primaries.replication_states import (
    ALL_REACHABLE,
    NOW_MS,
    PAIR,
    RECOVERY,
    REGIONS,
    add_observations,
    build_state,
)

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
BEFORE = NOW - timedelta(seconds=30)
OF_NORTH = PrimaryLease("billing", "north", 3)
READY = GroupForecast("billing-1", (), ())
RATES = {"north": 600.0, "south": 300.0}
NORTH_UNREACHABLE = replace(ALL_REACHABLE, reachable=frozenset({"south", "south-all"}))


def build_inputs(
    *leases: PrimaryLease, reachability: ClusterReachability = ALL_REACHABLE, **changed: Any
) -> PromotionInputs:
    inputs = PromotionInputs(
        evaluate_primary("billing", leases, reachability, NOW),
        reachability,
        build_state(),
        (READY,),
        RATES,
        NOW_MS,
    )
    return replace(inputs, **changed)


def plan(inputs: PromotionInputs, recovery: Recovery = RECOVERY) -> PromotionPlan:
    return plan_promotion("billing", "billing-.*", PAIR, recovery, inputs)


def check(
    name: PreconditionName, inputs: PromotionInputs, recovery: Recovery = RECOVERY
) -> tuple[bool | None, str]:
    (precondition,) = [
        precondition for precondition in plan(inputs, recovery).preconditions if precondition.name is name
    ]
    return precondition.holds, precondition.explanation


def test_a_promotion_is_allowed_with_the_next_epoch_if_all_preconditions_are_met() -> None:
    promotion = plan(build_inputs(OF_NORTH))
    assert promotion.is_allowed()
    assert (promotion.epoch, promotion.service, promotion.pair) == (4, "billing", PAIR)
    assert [
        (precondition.name, precondition.holds, precondition.explanation)
        for precondition in promotion.preconditions
    ] == [
        (PreconditionName.LABEL, True, "north at epoch 3, without expiry"),
        (
            PreconditionName.AGGREGATES,
            True,
            "largest difference of 2 partitions: orders/0 of north differs by 0 records; of the last 300 s "
            "north-all has 400, south-all 400",
        ),
        (PreconditionName.INPUT_LAG, True, "at most 0 records are not yet replicated to south-all"),
        (PreconditionName.GROUPS, True, "all 1 groups are ready to resume in south-all"),
        (PreconditionName.HEADROOM, True, "900 records/s of a capacity of 1,000 records/s in south-all"),
    ]


@pytest.mark.parametrize(
    ("leases", "reachability", "holds", "message"),
    [
        (
            [PrimaryLease("billing", "north-all", 3)],
            ALL_REACHABLE,
            True,
            "north-all at epoch 3, without expiry",
        ),
        (
            [PrimaryLease("billing", "south", 3)],
            ALL_REACHABLE,
            False,
            "the primary is south at epoch 3, without expiry, not",
        ),
        ([PrimaryLease("billing", "nowhere", 3)], ALL_REACHABLE, False, "the primary is nowhere at epoch 3"),
        ([OF_NORTH], NORTH_UNREACHABLE, True, "unreachable: north, north-all"),
        (
            [OF_NORTH, PrimaryLease("billing", "south", 4)],
            ALL_REACHABLE,
            False,
            "2 conflicting leases: south at epoch 4",
        ),
        (
            [OF_NORTH, PrimaryLease("billing", "south", 4)],
            NORTH_UNREACHABLE,
            False,
            "2 conflicting leases: south at epoch 4",
        ),
        ([replace(OF_NORTH, lease_until=BEFORE)], ALL_REACHABLE, False, "all leases have expired"),
        ([replace(OF_NORTH, lease_until=BEFORE)], NORTH_UNREACHABLE, True, "; its clusters are unreachable"),
        ([PrimaryLease("billing", "south", 4, BEFORE)], NORTH_UNREACHABLE, False, "all leases have expired"),
        ([], NORTH_UNREACHABLE, False, "there is no lease"),
    ],
)
def test_the_active_cluster_must_be_the_only_primary_or_unreachable(
    leases: Sequence[PrimaryLease], reachability: ClusterReachability, holds: bool, message: str
) -> None:
    precondition = check_label(PAIR, evaluate_primary("billing", leases, reachability, NOW), reachability)
    assert precondition.holds is holds
    assert message in precondition.explanation


def test_aggregates_that_differ_too_much_are_named() -> None:
    inputs = build_inputs(OF_NORTH, replication=build_state(in_north=500, in_south=399))
    assert check(PreconditionName.AGGREGATES, inputs) == (
        False,
        "orders/0 of north differs by 101 records; of the last 300 s north-all has 400, south-all 299",
    )
    assert (
        check(PreconditionName.AGGREGATES, build_inputs(OF_NORTH, replication=build_state(in_north=399)))[0]
        is False
    )
    assert (
        check(PreconditionName.AGGREGATES, build_inputs(OF_NORTH, replication=build_state(in_south=400)))[0]
        is True
    )


def test_aggregates_that_lag_more_than_the_window_differ_too() -> None:
    inputs = build_inputs(OF_NORTH, replication=build_state(in_north=300, in_south=150, end=1_000, began=600))
    assert check(PreconditionName.AGGREGATES, inputs) == (
        False,
        "orders/0 of north differs by 150 records; of the last 300 s north-all has 0, south-all 0",
    )


def test_a_stale_mirror_does_not_meet_the_aggregates_precondition() -> None:
    state = add_observations(build_state(), "north", "south-all", 0, 40, topic="hung")
    add_observations(state, "north", "north-all", 0, 40, topic="hung")
    assert check(PreconditionName.AGGREGATES, build_inputs(OF_NORTH, replication=state)) == (
        None,
        "the replication progress of 1 partitions is unknown, for example hung/0 of north",
    )
    late = build_inputs(OF_NORTH, replication=state, now_ms=NOW_MS + 31_000)
    assert check(PreconditionName.AGGREGATES, late)[0] is False
    assert "no replication progress for 31 s" in check(PreconditionName.AGGREGATES, late)[1]


def test_preconditions_are_unknown_without_observations() -> None:
    inputs = build_inputs(OF_NORTH, replication=ReplicationState())
    message = "no partition is known that both north-all and south-all replicate"
    assert check(PreconditionName.AGGREGATES, inputs) == (None, message)
    message = (
        "the current lag of north, south is unknown; when last observed, at most 0 records are not yet "
        "replicated to south-all"
    )
    assert check(PreconditionName.INPUT_LAG, inputs) == (None, message)


def test_the_input_lag_sums_all_mirrors_into_the_target() -> None:
    state = add_observations(build_state(in_south=440), "north", "south-all", 60, 100, topic="more")
    message = "at most 100 records are not yet replicated to south-all"
    assert check_input_lag("south-all", RECOVERY, state, NOW_MS) == Precondition(
        PreconditionName.INPUT_LAG, True, message
    )
    state = add_observations(state, "south", "south-all", 0, 1, topic="again")
    message = "at most 101 records are not yet replicated to south-all, more than the limit of 100"
    assert check_input_lag("south-all", RECOVERY, state, NOW_MS) == Precondition(
        PreconditionName.INPUT_LAG, False, message
    )


def test_the_last_lag_of_an_unreachable_source_is_reported_as_unknown() -> None:
    state = build_state(in_south=440)
    state.mark_inspected("south", "south-all", NOW_MS + 31_000)
    message = (
        "the current lag of north is unknown; when last observed, at most 60 records are not yet "
        "replicated to south-all"
    )
    assert check_input_lag("south-all", RECOVERY, state, NOW_MS + 31_000) == Precondition(
        PreconditionName.INPUT_LAG, None, message
    )


def test_a_cluster_without_mirrors_has_an_unknown_input_lag() -> None:
    assert check_input_lag("north", RECOVERY, build_state(), NOW_MS).holds is None


def test_only_the_services_own_groups_must_be_ready() -> None:
    other = GroupForecast("other", (), ("stale",))
    assert check_groups(PAIR, "billing-.*", (READY, other)).holds is True
    late = GroupForecast("billing-2", (), ("replay", "stale"))
    message = "1 of 2 groups are not ready: billing-2 (replay, stale)"
    assert check_groups(PAIR, "billing-.*", (READY, late)) == Precondition(
        PreconditionName.GROUPS, False, message
    )
    assert check_groups(PAIR, "billing-.*", (other,)).holds is None
    assert check_groups(PAIR, "billing-.*", None).holds is None
    many = [replace(late, group=f"billing-{number}") for number in range(7)]
    assert check_groups(PAIR, "billing-.*", many).explanation.endswith("billing-4 (replay, stale) and 2 more")


def with_capacities(*capacities: tuple[str, float]) -> Recovery:
    configured = tuple(Capacity(cluster=cluster, records_per_s=rate) for cluster, rate in capacities)
    return RECOVERY.model_copy(update={"capacities": configured})


@pytest.mark.parametrize(
    ("capacities", "rates", "holds", "message"),
    [
        ([("south-all", 900)], RATES, True, "900 records/s of a capacity of 900 records/s in south-all"),
        ([("south-all", 899)], RATES, False, "900 records/s of a capacity of 899 records/s in south-all"),
        ([("south-all", 899), ("south", 9_000)], RATES, False, "of a capacity of 899 records/s in south-all"),
        ([("south", 900)], RATES, True, "900 records/s of a capacity of 900 records/s in south"),
        ([("north", 900)], RATES, None, "recovery.capacities has none for south-all"),
        ([], RATES, None, "recovery.capacities has none for south-all"),
        ([("south-all", 900)], {"south": 1.0}, None, "the load of north is unknown"),
    ],
)
def test_the_capacity_must_suffice_for_the_load_of_all_sources(
    capacities: list[tuple[str, float]], rates: dict[str, float], holds: bool | None, message: str
) -> None:
    precondition = check_headroom("south-all", with_capacities(*capacities), ALL_REACHABLE, rates)
    assert precondition.holds is holds
    assert message in precondition.explanation


def test_clusters_without_common_sources_have_unknown_preconditions() -> None:
    promotion = plan_promotion(
        "billing", ".*", ClusterPair("south-all", "north"), RECOVERY, build_inputs(OF_NORTH)
    )
    assert [precondition.name for precondition in promotion.preconditions if precondition.holds is None] == [
        PreconditionName.AGGREGATES,
        PreconditionName.INPUT_LAG,
        PreconditionName.HEADROOM,
    ]


HOLDS = st.sampled_from([True, False, None])
NAMES = st.sets(st.sampled_from(PreconditionName))


@given(st.tuples(*(HOLDS for _ in PreconditionName)), NAMES)
def test_a_promotion_is_allowed_exactly_if_unmet_preconditions_are_overridden(
    holds: tuple[bool | None, ...], despite: set[PreconditionName]
) -> None:
    preconditions = tuple(
        Precondition(name, is_met, "") for name, is_met in zip(PreconditionName, holds, strict=True)
    )
    promotion = PromotionPlan("billing", PAIR, 1, preconditions)
    assert promotion.is_allowed(despite) == all(
        precondition.holds is True or precondition.name in despite for precondition in preconditions
    )
    assert promotion.is_allowed([name.value for name in despite]) == promotion.is_allowed(despite)


@given(
    st.lists(
        st.tuples(st.sampled_from(["north", "south", "south-all"]), st.none() | st.integers(0, 5)), max_size=4
    ),
    st.sets(st.sampled_from(sorted(REGIONS))),
    NAMES,
)
def test_conflicting_leases_forbid_a_promotion_unless_overridden(
    other_leases: list[tuple[str, int | None]], reachable_clusters: set[str], despite: set[PreconditionName]
) -> None:
    reachability = replace(ALL_REACHABLE, reachable=frozenset(reachable_clusters))
    leases = [PrimaryLease("billing", "north", 3), PrimaryLease("billing", "south", 4)]
    leases += [PrimaryLease("billing", primary, epoch) for primary, epoch in other_leases]
    promotion = plan(build_inputs(*leases, reachability=reachability))
    assert promotion.is_allowed(despite) == (PreconditionName.LABEL in despite)
