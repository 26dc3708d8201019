"""ops/actions: every case with its outcome, refused ones too; what was done, when, by whom and why."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from fleetgauge_core.kafka import TopicPartition
from fleetgauge_core.lake.table_store import TableRow, TableStore
from fleetgauge_core.tables import ACTIONS
from fleetgauge_operations.mitigation.case import Action, Case, Order, Outcome

_ROLL = "roll"


@dataclass(frozen=True, slots=True)
class Actions:
    """What the table says at one moment: cases, the first to begin first, and clusters that are rolled."""

    cases: tuple[Case, ...]
    rolling: frozenset[str]


class Record:
    """One lake's cases. Every call raises TableStoreError."""

    def __init__(self, lake: str) -> None:
        self._table = TableStore(lake, ACTIONS)

    def read(self, now: datetime) -> Actions:
        rows = self._table.rows()
        cases = (_case(row) for row in rows if row["kind"] in set(Action))
        return Actions(
            cases=tuple(sorted(cases, key=lambda case: (case.began, case.case_id))),
            rolling=frozenset(row["cluster_id"] for row in rows if _is_roll(row, now)),
        )

    def add(self, case: Case) -> None:
        self._table.append([_row(case)])

    def amend(self, case: Case) -> None:
        self._table.update(_row(case))


def _is_roll(row: TableRow, now: datetime) -> bool:
    under_way = row["starts"] <= now and (row["ends"] is None or row["ends"] > now)
    return bool(under_way and row["kind"] == _ROLL)


def _row(case: Case) -> TableRow:
    return {
        "action_id": case.case_id,
        "kind": case.action.value,
        "cluster_id": case.cluster_id,
        "broker_id": case.broker_id,
        "starts": case.began,
        "ends": case.ended,
        "reason": case.reason,
        "author": case.author,
        "detail": json.dumps(
            {
                "outcome": case.outcome,
                "zone": case.zone,
                "against": case.against,
                "words": case.words,
                "told": case.told,
                "rejected": case.rejected,
                "undone_since": case.undone_since.isoformat() if case.undone_since else None,
                "overruled": case.overruled,
                "throttles": dict(case.throttles),
                "orders": [[*place, order.before, order.after] for place, order in case.orders.items()],
            }
        ),
    }


def _case(row: TableRow) -> Case:
    detail: dict[str, Any] = json.loads(row["detail"])
    orders: Sequence[tuple[str, int, list[int], list[int]]] = detail["orders"]
    return Case(
        case_id=row["action_id"],
        action=Action(row["kind"]),
        cluster_id=row["cluster_id"],
        broker_id=row["broker_id"],
        zone=detail["zone"],
        author=row["author"],
        reason=row["reason"],
        began=row["starts"],
        outcome=Outcome(detail["outcome"]),
        ended=row["ends"],
        orders={
            TopicPartition(topic, number): Order(tuple(before), tuple(after))
            for topic, number, before, after in orders
        },
        throttles=detail["throttles"],
        against=tuple(detail.get("against", ())),
        words=tuple(detail["words"]),
        told=None if (told := detail.get("told")) is None else tuple(told),
        rejected=tuple(detail.get("rejected", ())),
        undone_since=datetime.fromisoformat(since) if (since := detail.get("undone_since")) else None,
        overruled=detail.get("overruled", False),
    )
