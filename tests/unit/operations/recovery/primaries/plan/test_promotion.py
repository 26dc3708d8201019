"""What has to be so before another cluster becomes the primary."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_core.fleet import Capacity, Recovery
from fleetgauge_operations.recovery.offsets.mirror_state import Known
from fleetgauge_operations.recovery.plan.forecast import GroupForecast
from fleetgauge_operations.recovery.plan.sync_decision import Pair
from fleetgauge_operations.recovery.primaries.plan.primary_lease import Claim
from fleetgauge_operations.recovery.primaries.plan.primary_state import Reach, standing
from fleetgauge_operations.recovery.primaries.plan.promotion import (
    Name,
    Precondition,
    Promotion,
    Seen,
    groups_ready,
    headroom,
    input_lag,
    label,
    weighed,
)
from tests.unit.operations.recovery.primaries.sights import (
    NOW_MS,
    PAIR,
    REACH,
    RECOVERY,
    REGIONS,
    sight,
    sights,
)

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
BEFORE = NOW - timedelta(seconds=30)
OF_NORTH = Claim("billing", "north", 3)
READY = GroupForecast("billing-1", (), ())
RATES = {"north": 600.0, "south": 300.0}
NORTH_IS_DEAD = replace(REACH, answering=frozenset({"south", "south-all"}))


def seen(*claims: Claim, reach: Reach = REACH, **changed: Any) -> Seen:
    found = Seen(standing("billing", claims, reach, NOW), reach, sights(), (READY,), RATES, NOW_MS)
    return replace(found, **changed)


def promotion(found: Seen, recovery: Recovery = RECOVERY) -> Promotion:
    return weighed("billing", "billing-.*", PAIR, recovery, found)


def of(name: Name, found: Seen, recovery: Recovery = RECOVERY) -> tuple[bool | None, str]:
    (one,) = [one for one in promotion(found, recovery).preconditions if one.name is name]
    return one.holds, one.words


def test_when_all_holds_it_is_allowed_with_the_next_epoch() -> None:
    found = promotion(seen(OF_NORTH))
    assert found.is_allowed()
    assert (found.epoch, found.service, found.pair) == (4, "billing", PAIR)
    assert [(one.name, one.holds, one.words) for one in found.preconditions] == [
        (Name.LABEL, True, "north at epoch 3, without an end"),
        (
            Name.AGGREGATES,
            True,
            "the worst of 2 partitions: orders/0 of north is 0 records apart; of the last 300 s north-all "
            "has 400, south-all 400",
        ),
        (Name.INPUT_LAG, True, "at most 0 records on their way into south-all"),
        (Name.GROUPS, True, "all 1 could go on in south-all"),
        (Name.HEADROOM, True, "900 records/s, of 1,000 that south-all takes"),
    ]


@pytest.mark.parametrize(
    ("claims", "reach", "holds", "words"),
    [
        ([Claim("billing", "north-all", 3)], REACH, True, "north-all at epoch 3, without an end"),
        (
            [Claim("billing", "south", 3)],
            REACH,
            False,
            "the primary is south at epoch 3, without an end: not",
        ),
        ([Claim("billing", "nowhere", 3)], REACH, False, "the primary is nowhere at epoch 3"),
        ([OF_NORTH], NORTH_IS_DEAD, True, "nothing answers of north, north-all"),
        ([OF_NORTH, Claim("billing", "south", 4)], REACH, False, "2 claim it: south at epoch 4"),
        ([OF_NORTH, Claim("billing", "south", 4)], NORTH_IS_DEAD, False, "2 claim it: south at epoch 4"),
        ([replace(OF_NORTH, lease_until=BEFORE)], REACH, False, "all leases are over"),
        ([replace(OF_NORTH, lease_until=BEFORE)], NORTH_IS_DEAD, True, "; it does not answer"),
        ([Claim("billing", "south", 4, BEFORE)], NORTH_IS_DEAD, False, "all leases are over"),
        ([], NORTH_IS_DEAD, False, "nobody claims it"),
    ],
)
def test_the_one_that_is_given_up_has_to_be_the_only_primary_or_gone(
    claims: Sequence[Claim], reach: Reach, holds: bool, words: str
) -> None:
    found = label(PAIR, standing("billing", claims, reach, NOW), reach)
    assert found.holds is holds
    assert words in found.words


def test_copies_that_are_too_far_apart_are_named() -> None:
    found = seen(OF_NORTH, known=sights(in_north=500, in_south=399))
    assert of(Name.AGGREGATES, found) == (
        False,
        "orders/0 of north is 101 records apart; of the last 300 s north-all has 400, south-all 299",
    )
    assert of(Name.AGGREGATES, seen(OF_NORTH, known=sights(in_north=399)))[0] is False
    assert of(Name.AGGREGATES, seen(OF_NORTH, known=sights(in_south=400)))[0] is True


def test_mirrors_that_are_late_by_more_than_the_window_are_as_far_apart_as_they_are() -> None:
    found = seen(OF_NORTH, known=sights(in_north=300, in_south=150, end=1_000, began=600))
    assert of(Name.AGGREGATES, found) == (
        False,
        "orders/0 of north is 150 records apart; of the last 300 s north-all has 0, south-all 0",
    )


def test_a_mirror_that_stands_still_is_not_relied_on() -> None:
    known = sight(sights(), "north", "south-all", 0, 40, topic="hung")
    sight(known, "north", "north-all", 0, 40, topic="hung")
    assert of(Name.AGGREGATES, seen(OF_NORTH, known=known)) == (
        None,
        "nothing is known of 1 partitions, as hung/0 of north",
    )
    late = seen(OF_NORTH, known=known, now_ms=NOW_MS + 31_000)
    assert of(Name.AGGREGATES, late)[0] is False
    assert "nothing heard of it for 31 s" in of(Name.AGGREGATES, late)[1]


def test_of_what_was_never_looked_at_nobody_knows() -> None:
    found = seen(OF_NORTH, known=Known())
    words = "nothing is known of which both north-all and south-all are copies"
    assert of(Name.AGGREGATES, found) == (None, words)
    words = "nobody knows of north, south now; at most 0 records on their way into south-all, as last seen"
    assert of(Name.INPUT_LAG, found) == (None, words)


def test_all_that_is_on_its_way_into_the_new_one_is_added_up() -> None:
    known = sight(sights(in_south=440), "north", "south-all", 60, 100, topic="more")
    words = "at most 100 records on their way into south-all"
    assert input_lag("south-all", RECOVERY, known, NOW_MS) == Precondition(Name.INPUT_LAG, True, words)
    known = sight(known, "south", "south-all", 0, 1, topic="again")
    words = "at most 101 records on their way into south-all, beyond 100"
    assert input_lag("south-all", RECOVERY, known, NOW_MS) == Precondition(Name.INPUT_LAG, False, words)


def test_what_a_dead_source_had_is_told_and_not_known() -> None:
    known = sights(in_south=440)
    known.look("south", "south-all", NOW_MS + 31_000)
    words = "nobody knows of north now; at most 60 records on their way into south-all, as last seen"
    assert input_lag("south-all", RECOVERY, known, NOW_MS + 31_000) == Precondition(
        Name.INPUT_LAG, None, words
    )


def test_what_nothing_is_copied_into_has_no_lag() -> None:
    assert input_lag("north", RECOVERY, sights(), NOW_MS).holds is None


def test_the_services_own_groups_have_to_be_ready_and_no_others() -> None:
    other = GroupForecast("other", (), ("stale",))
    assert groups_ready(PAIR, "billing-.*", (READY, other)).holds is True
    late = GroupForecast("billing-2", (), ("replay", "stale"))
    words = "1 of 2 are not ready: billing-2 (replay, stale)"
    assert groups_ready(PAIR, "billing-.*", (READY, late)) == Precondition(Name.GROUPS, False, words)
    assert groups_ready(PAIR, "billing-.*", (other,)).holds is None
    assert groups_ready(PAIR, "billing-.*", None).holds is None
    many = [replace(late, group=f"billing-{number}") for number in range(7)]
    assert groups_ready(PAIR, "billing-.*", many).words.endswith("billing-4 (replay, stale) and 2 more")


def capable(*capacities: tuple[str, float]) -> Recovery:
    some = tuple(Capacity(cluster=cluster, records_per_s=rate) for cluster, rate in capacities)
    return RECOVERY.model_copy(update={"capacities": some})


@pytest.mark.parametrize(
    ("capacities", "rates", "holds", "words"),
    [
        ([("south-all", 900)], RATES, True, "900 records/s, of 900 that south-all takes"),
        ([("south-all", 899)], RATES, False, "900 records/s, of 899 that south-all takes"),
        ([("south-all", 899), ("south", 9_000)], RATES, False, "of 899 that south-all takes"),
        ([("south", 900)], RATES, True, "900 records/s, of 900 that south takes"),
        ([("north", 900)], RATES, None, "recovery.capacities has none of south-all"),
        ([], RATES, None, "recovery.capacities has none of south-all"),
        ([("south-all", 900)], {"south": 1.0}, None, "what north is given is not known"),
    ],
)
def test_it_has_to_carry_what_all_produce(
    capacities: list[tuple[str, float]], rates: dict[str, float], holds: bool | None, words: str
) -> None:
    found = headroom("south-all", capable(*capacities), REACH, rates)
    assert found.holds is holds
    assert words in found.words


def test_clusters_that_have_nothing_in_common_are_compared_all_the_same() -> None:
    found = weighed("billing", ".*", Pair("south-all", "north"), RECOVERY, seen(OF_NORTH))
    assert [one.name for one in found.preconditions if one.holds is None] == [
        Name.AGGREGATES,
        Name.INPUT_LAG,
        Name.HEADROOM,
    ]


HOLDS = st.sampled_from([True, False, None])
NAMES = st.sets(st.sampled_from(Name))


@given(st.tuples(*(HOLDS for _ in Name)), NAMES)
def test_it_is_allowed_just_where_what_does_not_hold_is_named(
    holds: tuple[bool | None, ...], despite: set[Name]
) -> None:
    every = tuple(Precondition(name, one, "") for name, one in zip(Name, holds, strict=True))
    found = Promotion("billing", PAIR, 1, every)
    assert found.is_allowed(despite) == all(one.holds is True or one.name in despite for one in every)
    assert found.is_allowed([one.value for one in despite]) == found.is_allowed(despite)


@given(
    st.lists(
        st.tuples(st.sampled_from(["north", "south", "south-all"]), st.none() | st.integers(0, 5)), max_size=4
    ),
    st.sets(st.sampled_from(sorted(REGIONS))),
    NAMES,
)
def test_while_two_claim_it_it_is_never_allowed_unless_somebody_answers_for_that(
    others: list[tuple[str, int | None]], answering: set[str], despite: set[Name]
) -> None:
    reach = replace(REACH, answering=frozenset(answering))
    claims = [Claim("billing", "north", 3), Claim("billing", "south", 4)]
    claims += [Claim("billing", primary, epoch) for primary, epoch in others]
    found = promotion(seen(*claims, reach=reach))
    assert found.is_allowed(despite) == (Name.LABEL in despite)
