from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from fleetgauge_core.kafka import TopicPartition
from fleetgauge_core.lake.table_store import TableStore, TableStoreError
from fleetgauge_core.tables import ACTIONS
from fleetgauge_operations.mitigation.case import Action, Case, Order, Outcome
from fleetgauge_operations.mitigation.record import Record
from tests.browser.lake import put
from tests.unit.operations.mitigation.world import NOON

CASE = Case(
    "c1",
    Action.DEMOTE,
    "orders",
    2,
    "zone-2",
    "ann",
    "DEGRADED",
    NOON,
    Outcome.BEGUN,
    orders={
        TopicPartition("t", 1): Order((2, 3, 1), (3, 1, 2)),
        TopicPartition("with-dash", 0): Order((2, 1), (1, 2)),
    },
    throttles={"t": "0:2,1:2"},
)


def roll(**columns: Any) -> dict[str, Any]:
    whole = {"action_id": "r1", "kind": "roll", "cluster_id": "orders", "starts": NOON, "author": "bob"}
    return whole | {"broker_id": None, "ends": None, "reason": "4.4", "detail": None} | columns


def test_a_case_comes_back_as_it_was_kept_and_amended(tmp_path: Path) -> None:
    put(tmp_path, ACTIONS, [roll()])
    record = Record(str(tmp_path))
    record.add(CASE)
    assert record.read(NOON).cases == (CASE,)
    later = replace(CASE, case_id="c2", began=NOON + timedelta(hours=1), outcome=Outcome.REFUSED, orders={})
    record.add(later)
    done = replace(
        CASE,
        outcome=Outcome.UNDONE,
        ended=NOON + timedelta(hours=1),
        words=("t-1 stays",),
        undone_since=NOON + timedelta(minutes=59),
        overruled=True,
    )
    record.amend(done)
    assert record.read(NOON).cases == (done, later)


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
    assert ("orders" in Record(str(tmp_path)).read(NOON + timedelta(minutes=1)).rolling) is expected


def test_a_lake_without_the_table_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(TableStoreError, match="ops/actions: no such table"):
        Record(str(tmp_path)).read(NOON)


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
            Record(self._lake).add(replace(CASE, case_id=f"other-{self.others}", began=at))
        return table


def test_an_end_is_written_though_others_write_meanwhile(tmp_path: Path) -> None:
    put(tmp_path, ACTIONS, [])
    record = Record(str(tmp_path))
    record.add(CASE)
    busy = record._table = Busy(str(tmp_path), 3)
    record.amend(replace(CASE, outcome=Outcome.FAILED))
    cases = Record(str(tmp_path)).read(NOON).cases
    assert {one.case_id: one.outcome for one in cases}[CASE.case_id] is Outcome.FAILED
    assert len(cases) == 1 + 3 - busy.others > 1
