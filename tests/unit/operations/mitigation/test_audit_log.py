from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from fleetgauge_core.lake.table_store import TableStore, TableStoreError
from fleetgauge_core.metadata import TopicPartition
from fleetgauge_core.tables import ACTIONS
from fleetgauge_operations.mitigation.audit_log import AuditLog
from fleetgauge_operations.mitigation.case import Action, CaseOutcome, MitigationCase, ReplicaOrder
from tests.browser.lake import put
from tests.unit.operations.mitigation.simulated_cluster import NOON

CASE = MitigationCase(
    "c1",
    Action.DEMOTE,
    "orders",
    2,
    "zone-2",
    "ann",
    "DEGRADED",
    NOON,
    CaseOutcome.BEGUN,
    orders={
        TopicPartition("t", 1): ReplicaOrder((2, 3, 1), (3, 1, 2)),
        TopicPartition("with-dash", 0): ReplicaOrder((2, 1), (1, 2)),
    },
    throttles={"t": "0:2,1:2"},
)


def roll(**columns: Any) -> dict[str, Any]:
    whole = {"action_id": "r1", "kind": "roll", "cluster_id": "orders", "starts": NOON, "author": "bob"}
    return whole | {"broker_id": None, "ends": None, "reason": "4.4", "detail": None} | columns


def test_a_case_comes_back_as_it_was_kept_and_amended(tmp_path: Path) -> None:
    put(tmp_path, ACTIONS, [roll()])
    record = AuditLog(str(tmp_path))
    record.add_case(CASE)
    assert record.read_entries(NOON).cases == (CASE,)
    later = replace(
        CASE, case_id="c2", began=NOON + timedelta(hours=1), outcome=CaseOutcome.REFUSED, orders={}
    )
    record.add_case(later)
    done = replace(
        CASE,
        outcome=CaseOutcome.UNDONE,
        ended=NOON + timedelta(hours=1),
        words=("t-1 stays",),
        undone_since=NOON + timedelta(minutes=59),
        overruled=True,
    )
    record.update_case(done)
    assert record.read_entries(NOON).cases == (done, later)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (roll(), True),
        (roll(ends=NOON + timedelta(minutes=2)), True),
        (roll(ends=NOON + timedelta(minutes=1)), False),
        (roll(starts=NOON + timedelta(minutes=2)), False),
        (roll(cluster_id="payments"), False),
        (roll(kind="throttle"), False),
    ],
)
def test_a_roll_is_under_way_from_its_start_to_its_end(tmp_path: Path, row: Any, expected: bool) -> None:
    put(tmp_path, ACTIONS, [row])
    assert (
        "orders" in AuditLog(str(tmp_path)).read_entries(NOON + timedelta(minutes=1)).rolling_cluster_ids
    ) is expected


def test_a_lake_without_the_table_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(TableStoreError, match="ops/actions: no such table"):
        AuditLog(str(tmp_path)).read_entries(NOON)


class Busy(TableStore):
    """A row of somebody else's comes in between, so many times."""

    def __init__(self, lake: str, others: int) -> None:
        super().__init__(lake, ACTIONS)
        self.others = others

    def _open(self) -> DeltaTable | None:
        table = super()._open()
        if self.others:
            self.others -= 1
            at = NOON + timedelta(minutes=self.others)
            AuditLog(self._lake).add_case(replace(CASE, case_id=f"other-{self.others}", began=at))
        return table


def test_an_end_is_written_though_others_write_meanwhile(tmp_path: Path) -> None:
    put(tmp_path, ACTIONS, [])
    record = AuditLog(str(tmp_path))
    record.add_case(CASE)
    busy = record._table = Busy(str(tmp_path), 3)
    record.update_case(replace(CASE, outcome=CaseOutcome.FAILED))
    cases = AuditLog(str(tmp_path)).read_entries(NOON).cases
    assert {one.case_id: one.outcome for one in cases}[CASE.case_id] is CaseOutcome.FAILED
    assert len(cases) == 1 + 3 - busy.others > 1
