"""Cases are stored in ops/actions of a lake, also while other processes write to it."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from fleetgauge_core.lake.table_store import TableStore, TableStoreError
from fleetgauge_core.metadata import TopicPartition
from fleetgauge_core.tables import ACTIONS, CHANGES, ActionKind, ActionOutcome
from fleetgauge_operations.actions.audit_log import AuditLog
from fleetgauge_operations.actions.plan.case import ActionCase
from fleetgauge_operations.mitigation.plan.demotion import ReplicaOrder, encode_orders
from fleetgauge_operations.mitigation.plan.restarts import encode_throttles
from tests.browser.lake import put
from tests.unit.operations.mitigation.simulated_cluster import NOON

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
CASE = ActionCase(
    "c1",
    ActionKind.DEMOTE,
    "orders",
    2,
    "zone-2",
    "ann",
    "DEGRADED",
    NOON,
    ActionOutcome.BEGUN,
    plan=encode_orders(
        {
            TopicPartition("t", 1): ReplicaOrder((2, 3, 1), (3, 1, 2)),
            TopicPartition("with-dash", 0): ReplicaOrder((2, 1), (1, 2)),
        }
    )
    | encode_throttles({"t": "0:2,1:2"}),
)


RESTART = replace(CASE, kind=ActionKind.RESTART, outcome=ActionOutcome.DONE, plan={})


def roll_row(**columns: Any) -> dict[str, Any]:
    """Return a row of ops/actions, by default of a rolling restart that is in progress since noon."""
    row = {"action_id": "r1", "kind": "roll", "cluster_id": "orders", "starts": NOON, "author": "bob"}
    return row | {"broker_id": None, "ends": None, "reason": "4.4", "detail": None} | columns


def find_rolling(folder: Path, now: datetime) -> frozenset[str]:
    audit_log = AuditLog(str(folder))
    return audit_log.find_rolling_clusters(audit_log.read_entries(), now)


def test_a_stored_case_is_read_back_unchanged_after_an_update_too(tmp_path: Path) -> None:
    put(tmp_path, ACTIONS, [roll_row()])
    audit_log = AuditLog(str(tmp_path))
    audit_log.add_case(CASE)
    assert audit_log.read_entries().cases == (CASE,)
    refused = replace(CASE, case_id="c2", began=NOON + HOUR, outcome=ActionOutcome.REFUSED, plan={})
    audit_log.add_case(refused)
    undone = replace(
        CASE,
        outcome=ActionOutcome.UNDONE,
        ended=NOON + HOUR,
        explanations=("t-1 not restored, because it was deleted",),
        undone_since=NOON + 59 * MINUTE,
        overruled=True,
    )
    audit_log.update_case(undone)
    assert audit_log.read_entries().cases == (undone, refused)


@pytest.mark.parametrize(
    ("row", "is_rolling"),
    [
        (roll_row(), True),
        (roll_row(ends=NOON + 2 * MINUTE), True),
        (roll_row(ends=NOON + MINUTE), False),
        (roll_row(starts=NOON + 2 * MINUTE), False),
        (roll_row(cluster_id="payments"), False),
        (roll_row(kind="throttle"), False),
    ],
)
def test_a_rolling_restart_is_in_progress_from_its_start_to_its_end(
    tmp_path: Path, row: Any, is_rolling: bool
) -> None:
    put(tmp_path, ACTIONS, [row])
    assert ("orders" in find_rolling(tmp_path, NOON + MINUTE)) is is_rolling


def restarted(ends: Any = NOON, cluster_id: str = "orders", orderly: bool | None = True) -> dict[str, Any]:
    """Return a row of ops/changes: broker 2 was restarted, by default until noon."""
    times = {"at": ends, "starts": ends - MINUTE, "ends": ends}
    names = {"event_id": "e", "change_id": "c", "kind": "broker_restarted", "phase": "happened"}
    subject = {"cluster_id": cluster_id, "broker_id": 2, "source": "observer"}
    return names | subject | times | {"evidence": json.dumps({"orderly": orderly})}


@pytest.mark.parametrize(
    ("row", "is_rolling"),
    [
        (restarted(), True),
        (restarted(ends=NOON - 9 * MINUTE), True),
        (restarted(ends=NOON - 10 * MINUTE), False),
        (restarted(cluster_id="payments"), False),
        (restarted(orderly=False), False),
        (restarted(orderly=None), False),
        (restarted() | {"kind": "setting_changed"}, False),
    ],
)
def test_a_restart_that_somebody_ordered_is_part_of_a_roll_for_ten_minutes(
    tmp_path: Path, row: Any, is_rolling: bool
) -> None:
    put(tmp_path, ACTIONS, [])
    put(tmp_path, CHANGES, [row])
    assert ("orders" in find_rolling(tmp_path, NOON)) is is_rolling


@pytest.mark.parametrize(
    ("case", "is_rolling"),
    [
        (replace(RESTART, began=NOON - 2 * MINUTE), False),
        (replace(RESTART, began=NOON - 2 * MINUTE, ended=NOON - 1.5 * MINUTE), False),
        (replace(RESTART, began=NOON - 4 * MINUTE, ended=NOON - 3 * MINUTE), True),
        (replace(RESTART, broker_id=3, began=NOON - 2 * MINUTE), True),
        (replace(RESTART, began=NOON), True),
        # Of what nobody did, or of a demotion, no restart follows.
        (replace(RESTART, began=NOON - 2 * MINUTE, outcome=ActionOutcome.ADVISED), True),
        (replace(CASE, began=NOON - 2 * MINUTE), True),
    ],
)
def test_a_restart_that_a_case_ordered_is_no_roll(tmp_path: Path, case: ActionCase, is_rolling: bool) -> None:
    put(tmp_path, ACTIONS, [roll_row(ends=NOON)])
    put(tmp_path, CHANGES, [restarted()])
    AuditLog(str(tmp_path)).add_case(case)
    assert ("orders" in find_rolling(tmp_path, NOON)) is is_rolling


def test_a_missing_table_is_reported_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(TableStoreError, match="ops/actions: no such table"):
        AuditLog(str(tmp_path)).read_entries()


class ContendedTable(TableStore):
    """A table to which another process adds a case whenever it is opened, so many times."""

    def __init__(self, lake: str, concurrent_writes: int) -> None:
        super().__init__(lake, ACTIONS)
        self.remaining_writes = concurrent_writes

    def _open(self) -> DeltaTable | None:
        table = super()._open()
        if self.remaining_writes:
            self.remaining_writes -= 1
            number = self.remaining_writes
            AuditLog(self._lake).add_case(
                replace(CASE, case_id=f"other-{number}", began=NOON + number * MINUTE)
            )
        return table


def test_an_update_is_stored_although_other_processes_write_at_the_same_time(tmp_path: Path) -> None:
    put(tmp_path, ACTIONS, [])
    audit_log = AuditLog(str(tmp_path))
    audit_log.add_case(CASE)
    table = audit_log._table = ContendedTable(str(tmp_path), concurrent_writes=3)
    audit_log.update_case(replace(CASE, outcome=ActionOutcome.FAILED))
    cases = AuditLog(str(tmp_path)).read_entries().cases
    assert {case.case_id: case.outcome for case in cases}[CASE.case_id] is ActionOutcome.FAILED
    assert len(cases) == 1 + 3 - table.remaining_writes > 1


class OvertakenTable(TableStore):
    """A table in which another process changes the case, once, after it was opened for a write."""

    is_overtaken = False

    def _open(self) -> DeltaTable | None:
        table = super()._open()
        if not self.is_overtaken:
            self.is_overtaken = True
            AuditLog(self._lake).update_case(replace(CASE, outcome=ActionOutcome.FAILED, accepted_by=("a",)))
        return table


def test_an_amendment_is_made_to_the_newest_version_of_the_case(tmp_path: Path) -> None:
    put(tmp_path, ACTIONS, [])
    audit_log = AuditLog(str(tmp_path))
    audit_log.add_case(CASE)
    audit_log._table = OvertakenTable(str(tmp_path), ACTIONS)
    seen: list[ActionOutcome] = []

    def add_receiver(case: ActionCase) -> ActionCase:
        seen.append(case.outcome)
        return replace(case, accepted_by=(*(case.accepted_by or ()), "b"))

    audit_log.amend_case(CASE.case_id, add_receiver)
    (case,) = AuditLog(str(tmp_path)).read_entries().cases
    assert (case.outcome, case.accepted_by) == (ActionOutcome.FAILED, ("a", "b"))
    assert seen == [ActionOutcome.BEGUN, ActionOutcome.FAILED]


def test_an_amendment_may_leave_the_case_unchanged(tmp_path: Path) -> None:
    put(tmp_path, ACTIONS, [])
    audit_log = AuditLog(str(tmp_path))
    audit_log.add_case(CASE)
    version = TableStore(str(tmp_path), ACTIONS).version
    audit_log.amend_case(CASE.case_id, lambda _: None)
    audit_log.amend_case("of nobody", lambda case: replace(case, accepted_by=("a",)))
    assert audit_log.read_entries().cases == (CASE,)
    assert TableStore(str(tmp_path), ACTIONS).version == version


def test_every_row_has_the_plan_keys_that_version_0_1_reads(tmp_path: Path) -> None:
    put(tmp_path, ACTIONS, [])
    AuditLog(str(tmp_path)).add_case(replace(CASE, kind=ActionKind.RESTART, plan={}))
    (row,) = TableStore(str(tmp_path), ACTIONS).rows()
    detail = json.loads(row["detail"])
    assert (detail["orders"], detail["throttles"]) == ([], {})


def test_a_plan_of_any_kind_is_read_back_unchanged(tmp_path: Path) -> None:
    put(tmp_path, ACTIONS, [])
    case = replace(CASE, plan={"moved": [], "batches": {"0": [1, 2]}, "rate": 0})
    AuditLog(str(tmp_path)).add_case(case)
    assert AuditLog(str(tmp_path)).read_entries().cases == (case,)


def test_cases_of_many_clusters_are_stored_at_the_same_time(tmp_path: Path) -> None:
    put(tmp_path, ACTIONS, [])
    audit_log = AuditLog(str(tmp_path))

    def store(number: int) -> None:
        case = replace(CASE, case_id=f"c{number}", cluster_id=f"cluster-{number}")
        audit_log.add_case(case)
        audit_log.update_case(replace(case, outcome=ActionOutcome.DONE))

    with ThreadPoolExecutor(16) as workers:
        list(workers.map(store, range(16)))
    cases = audit_log.read_entries().cases
    assert {case.outcome for case in cases} == {ActionOutcome.DONE}
    assert len(cases) == 16
