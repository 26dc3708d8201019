"""Records of changes: identities, sizes, selection and output."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from fleetgauge_core.contract import MAX_RECORD_BYTES, ClusterChange
from fleetgauge_core.contract.change_document import change_document
from fleetgauge_core.fleet import Cluster
from fleetgauge_core.tables import ActionKind, ChangeKind, ChangePhase
from fleetgauge_operations.changes.change_output import format_change
from fleetgauge_operations.changes.change_topic import select_changes
from fleetgauge_operations.changes.plan.change_records import build_record
from fleetgauge_operations.changes.plan.observed_change import ObservedChange
from fleetgauge_operations.changes.throttle_owners import (
    OTHER,
    OURS,
    UNKNOWN,
    create_throttle_completion,
    find_throttle_owner,
)

START = datetime(2026, 3, 2, 10, tzinfo=UTC)
HOUR = timedelta(hours=1)
BEGUN = ObservedChange(
    ChangeKind.REASSIGNMENT,
    START,
    None,
    before={"orders-0": [1, 2]},
    after={"orders-0": [1, 3]},
    phase=ChangePhase.BEGUN,
)
ENDED = replace(BEGUN, ends=START + HOUR, phase=ChangePhase.ENDED)


def record(change: ObservedChange, at: datetime = START) -> ClusterChange:
    return build_record(change, "orders", "uuid", at)


def test_the_records_of_a_change_share_its_id_and_have_their_own() -> None:
    begun, ended = record(BEGUN), record(ENDED, START + HOUR)
    assert begun.change_id == ended.change_id
    assert begun.event_id != ended.event_id
    assert record(BEGUN) == begun
    others = [replace(BEGUN, starts=START + HOUR), replace(BEGUN, topic="t"), replace(BEGUN, key="k")]
    assert len({record(change).change_id for change in (BEGUN, *others)}) == 4


def test_a_record_has_a_bounded_size() -> None:
    large = {f"topic-{number}": list(range(100)) for number in range(1_000)}
    encoded = record(replace(BEGUN, before=large, after=large, evidence=large)).encode()
    assert len(encoded) < MAX_RECORD_BYTES
    assert isinstance(json.loads(ClusterChange.decode(encoded).before or ""), dict)


def test_of_a_change_the_latest_record_is_listed_unless_it_had_ended_before() -> None:
    begun, ended = record(BEGUN), record(ENDED, START + HOUR)
    deploy = replace(begun, change_id="d", cluster_id=None, segment="fleet", segment_value="", kind="deploy")
    other = replace(begun, change_id="o", cluster_id="payments")
    records = (begun, ended, deploy, other)
    assert select_changes(records, Cluster(id="orders", bootstrap="o:1"), START) == sorted(
        [deploy, ended], key=lambda each: (each.starts, each.at)
    )
    assert select_changes(records, None, START + 2 * HOUR) == sorted(
        [deploy, other], key=lambda each: each.change_id
    )


def test_lines_and_documents() -> None:
    assert format_change(record(ENDED, START + HOUR)) == (
        "2026-03-02T10:00:00Z to 2026-03-02T11:00:00Z  orders  reassignment (ended)"
        "  orders-0=[1, 2] -> orders-0=[1, 3]"
    )
    deploy = replace(
        record(BEGUN),
        cluster_id=None,
        segment="region",
        segment_value="eu",
        kind="deploy",
        phase="happened",
        before=None,
        after=None,
        title="gateway 7",
        author="ci",
        link="https://ci.example",
    )
    assert format_change(deploy) == (
        "2026-03-02T10:00:00Z to now  region=eu  deploy  gateway 7 (ci) https://ci.example"
    )
    document = change_document(record(BEGUN))
    assert (document["before"], document["ends"], document["evidence"]) == ({"orders-0": [1, 2]}, None, {})


THROTTLE = replace(BEGUN, kind=ChangeKind.THROTTLE, broker_id=1)
ACTION = {
    "kind": ActionKind.THROTTLE,
    "cluster_id": "orders",
    "broker_id": None,
    "starts": START,
    "ends": START + HOUR,
    "detail": "{}",
}


@pytest.mark.parametrize(
    ("changed", "cluster_id", "starts", "owner"),
    [
        ({}, "orders", START + timedelta(seconds=20), OURS),
        ({}, "payments", START, OTHER),
        ({}, "orders", START + 2 * HOUR, OTHER),
        ({"kind": "demote"}, "orders", START, OTHER),
        ({"ends": None}, "orders", START + 2 * HOUR, OURS),
        ({"broker_id": 1}, "orders", START, OURS),
        ({"broker_id": 2}, "orders", START, OTHER),
        ({"detail": '{"outcome": "refused"}'}, "orders", START, OTHER),
        ({"detail": '{"outcome": "done"}'}, "orders", START, OURS),
    ],
)
def test_a_throttle_is_ours_if_an_action_explains_it(
    changed: dict[str, object], cluster_id: str, starts: datetime, owner: str
) -> None:
    assert find_throttle_owner([ACTION | changed], cluster_id, replace(THROTTLE, starts=starts)) == owner


@pytest.mark.parametrize("lake", [None, "/nowhere/at/all"])
def test_without_a_lake_the_owner_of_a_throttle_is_unknown(lake: str | None) -> None:
    complete = create_throttle_completion(lake)
    throttle, other = complete("orders", [THROTTLE, BEGUN])
    assert (throttle.evidence["owner"], other) == (UNKNOWN, BEGUN)
    assert complete("orders", [BEGUN]) == (BEGUN,)
