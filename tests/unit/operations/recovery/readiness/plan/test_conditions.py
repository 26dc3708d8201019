"""Conditions derived from minute rows."""

from typing import Any

import pytest

from fleetgauge_core.fleet import Recovery
from fleetgauge_operations.recovery.readiness.plan.conditions import (
    ConditionKey,
    ConditionKind,
    check_group_minutes,
    check_headroom_minutes,
    check_mirror_minute,
    check_producer_minutes,
)

RECOVERY = Recovery.model_validate({"objectives": {"rpo_s": 60}})
HEALTHY_ROW = {
    "source": "north",
    "destination": "south-all",
    "partitions": 3,
    "fresh": True,
    "silent_s": 4.0,
    "behind_at_most": 12,
    "behind_s_at_most": 8.0,
    "behind": 2,
    "behind_s": 0.4,
    "looped": 0,
}


def check_mirror_row(**changes: Any) -> list[ConditionKind]:
    return [condition.key.kind for condition in check_mirror_minute(HEALTHY_ROW | changes, RECOVERY)]


@pytest.mark.parametrize(
    ("changes", "kinds"),
    [
        ({}, []),
        ({"fresh": False, "silent_s": 300.0}, [ConditionKind.MIRROR_STALE]),
        ({"fresh": False, "silent_s": None}, [ConditionKind.MIRROR_STALE]),
        ({"fresh": False, "silent_s": None, "partitions": 0}, []),
        ({"behind_s": 61.0}, [ConditionKind.MIRROR_BEHIND]),
        ({"behind_s": 59.0, "behind_s_at_most": 90.0}, []),
        ({"behind_s": None, "behind_s_at_most": 90.0}, [ConditionKind.MIRROR_BEHIND]),
        ({"behind_s": None, "behind_s_at_most": None, "behind_at_most": None}, []),
        ({"looped": 1}, [ConditionKind.MIRROR_LOOP]),
    ],
)
def test_a_mirror_minute_has_the_expected_conditions(
    changes: dict[str, Any], kinds: list[ConditionKind]
) -> None:
    assert check_mirror_row(**changes) == kinds


def group_row(name: str, reasons: str = "") -> dict[str, Any]:
    return {"group_id": name, "ready": not reasons, "reasons": reasons}


def test_all_groups_of_a_pair_form_one_condition_with_their_reasons() -> None:
    rows = [group_row("a"), group_row("b", "connected"), group_row("c", "connected,stale")]
    (condition,) = check_group_minutes("north-all", "south-all", rows, ())
    assert condition.summary == "2 of 3 groups of north-all are not ready for a failover to south-all"
    assert condition.details == ("b, c", "connected: 2 groups", "stale: 1 groups")
    assert condition.evidence == {"groups": ["b", "c"], "reasons": {"connected": 2, "stale": 1}}


def test_reasons_explained_by_a_stale_mirror_are_ignored() -> None:
    rows = [group_row("a", "stale"), group_row("b", "stale,unknown_lag"), group_row("c", "stale,unbounded")]
    behind = [ConditionKey(ConditionKind.MIRROR_STALE, "north", "south-all")]
    (condition,) = check_group_minutes("north-all", "south-all", rows, behind)
    assert condition.evidence["groups"] == ["c"]
    assert list(check_group_minutes("north-all", "south-all", rows[:2], behind)) == []
    elsewhere = [ConditionKey(ConditionKind.MIRROR_STALE, "north", "west-all")]
    assert len(list(check_group_minutes("north-all", "south-all", rows[:2], elsewhere))) == 1


def producer_row(cluster: str, **changes: Any) -> dict[str, Any]:
    row = {
        "vantage": "apps",
        "cluster_id": cluster,
        "sent": 6,
        "acknowledged": 6,
        "records_per_s": 40.0,
        "capacity_records_per_s": None,
    }
    return row | changes


def test_producers_are_cut_off_from_a_cluster_that_acknowledges_no_tracer() -> None:
    rows = [
        producer_row("north"),
        producer_row("south", acknowledged=0),
        producer_row("west", sent=1, acknowledged=0),
    ]
    assert [condition.key for condition in check_producer_minutes(rows)] == [
        ConditionKey(ConditionKind.PRODUCERS_CUT_OFF, "south", subject="apps")
    ]


def test_headroom_must_suffice_for_the_most_loaded_other_cluster() -> None:
    rows = [
        producer_row("north", records_per_s=60.0),
        producer_row("south", capacity_records_per_s=99.0),
        producer_row("west", records_per_s=None, capacity_records_per_s=1.0),
        producer_row("east", records_per_s=1.0, capacity_records_per_s=61.0),
    ]
    assert [condition.key for condition in check_headroom_minutes(rows)] == [
        ConditionKey(ConditionKind.NO_HEADROOM, "south", "north")
    ]
    assert list(check_headroom_minutes([producer_row("south", capacity_records_per_s=1.0)])) == []
