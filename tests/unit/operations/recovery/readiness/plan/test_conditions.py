"""What the rows of a minute say against a failover."""

from typing import Any

import pytest

from fleetgauge_core.fleet import Recovery
from fleetgauge_operations.recovery.readiness.plan.conditions import (
    Kind,
    Whom,
    of_groups,
    of_headroom,
    of_mirror,
    of_producers,
)

RECOVERY = Recovery.model_validate({"objectives": {"rpo_s": 60}})
WELL = {
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


def mirror(**other: Any) -> list[Kind]:
    return [one.whom.kind for one in of_mirror(WELL | other, RECOVERY)]


@pytest.mark.parametrize(
    ("other", "kinds"),
    [
        ({}, []),
        ({"fresh": False, "silent_s": 300.0}, [Kind.MIRROR_STALE]),
        ({"fresh": False, "silent_s": None}, [Kind.MIRROR_STALE]),
        ({"fresh": False, "silent_s": None, "partitions": 0}, []),
        ({"behind_s": 61.0}, [Kind.MIRROR_BEHIND]),
        ({"behind_s": 59.0, "behind_s_at_most": 90.0}, []),
        ({"behind_s": None, "behind_s_at_most": 90.0}, [Kind.MIRROR_BEHIND]),
        ({"behind_s": None, "behind_s_at_most": None, "behind_at_most": None}, []),
        ({"looped": 1}, [Kind.MIRROR_LOOP]),
    ],
)
def test_a_mirror(other: dict[str, Any], kinds: list[Kind]) -> None:
    assert mirror(**other) == kinds


def group(name: str, reasons: str = "") -> dict[str, Any]:
    return {"group_id": name, "ready": not reasons, "reasons": reasons}


def test_groups_are_one_condition_that_names_the_reasons() -> None:
    rows = [group("a"), group("b", "connected"), group("c", "connected,stale")]
    (one,) = of_groups("north-all", "south-all", rows, ())
    assert one.summary == "2 of 3 groups of north-all could not go on in south-all"
    assert one.words == ("b, c", "connected: 2 groups", "stale: 1 groups")
    assert one.evidence == {"groups": ["b", "c"], "reasons": {"connected": 2, "stale": 1}}


def test_what_a_mirror_explains_is_not_told_twice() -> None:
    rows = [group("a", "stale"), group("b", "stale,unknown_lag"), group("c", "stale,unbounded")]
    behind = [Whom(Kind.MIRROR_STALE, "north", "south-all")]
    (one,) = of_groups("north-all", "south-all", rows, behind)
    assert one.evidence["groups"] == ["c"]
    assert list(of_groups("north-all", "south-all", rows[:2], behind)) == []
    elsewhere = [Whom(Kind.MIRROR_STALE, "north", "west-all")]
    assert len(list(of_groups("north-all", "south-all", rows[:2], elsewhere))) == 1


def producers(cluster: str, **other: Any) -> dict[str, Any]:
    row = {
        "vantage": "apps",
        "cluster_id": cluster,
        "sent": 6,
        "acknowledged": 6,
        "records_per_s": 40.0,
        "capacity_records_per_s": None,
    }
    return row | other


def test_a_cluster_that_acknowledges_nothing_takes_no_producers() -> None:
    rows = [producers("north"), producers("south", acknowledged=0), producers("west", sent=1, acknowledged=0)]
    assert [one.whom for one in of_producers(rows)] == [Whom(Kind.PRODUCERS_CUT_OFF, "south", subject="apps")]


def test_a_cluster_is_to_carry_the_largest_other_one_as_well() -> None:
    rows = [
        producers("north", records_per_s=60.0),
        producers("south", capacity_records_per_s=99.0),
        producers("west", records_per_s=None, capacity_records_per_s=1.0),
        producers("east", records_per_s=1.0, capacity_records_per_s=61.0),
    ]
    assert [one.whom for one in of_headroom(rows)] == [Whom(Kind.NO_HEADROOM, "south", "north")]
    assert list(of_headroom([producers("south", capacity_records_per_s=1.0)])) == []
