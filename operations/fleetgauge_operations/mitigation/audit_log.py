"""The audit log ops/actions: every case, refused ones too, with its outcome, times, author and reason."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from fleetgauge_core.lake.table_store import TableRow, TableStore
from fleetgauge_core.metadata import TopicPartition
from fleetgauge_core.tables import ACTIONS
from fleetgauge_operations.mitigation.case import Action, CaseOutcome, MitigationCase, ReplicaOrder

_ROLL = "roll"


@dataclass(frozen=True, slots=True)
class AuditEntries:
    """The contents of ops/actions at one moment: cases by start time, and clusters that are being rolled."""

    cases: tuple[MitigationCase, ...]
    rolling_cluster_ids: frozenset[str]


class AuditLog:
    """The table ops/actions of a lake.

    All methods raise TableStoreError if the table is missing or cannot be read or written.
    """

    def __init__(self, lake: str) -> None:
        self._table = TableStore(lake, ACTIONS)

    def read_entries(self, now: datetime) -> AuditEntries:
        """Return all cases, and the clusters whose rolling restart is in progress at a time."""
        rows = self._table.rows()
        cases = (_parse_case(row) for row in rows if row["kind"] in set(Action))
        return AuditEntries(
            cases=tuple(sorted(cases, key=lambda case: (case.began, case.case_id))),
            rolling_cluster_ids=frozenset(row["cluster_id"] for row in rows if _is_rolling(row, now)),
        )

    def add_case(self, case: MitigationCase) -> None:
        """Store a new case."""
        self._table.append([_case_row(case)])

    def update_case(self, case: MitigationCase) -> None:
        """Replace the stored case that has the same ID."""
        self._table.update(_case_row(case))


def _is_rolling(row: TableRow, now: datetime) -> bool:
    is_in_progress = row["starts"] <= now and (row["ends"] is None or row["ends"] > now)
    return bool(is_in_progress and row["kind"] == _ROLL)


def _case_row(case: MitigationCase) -> TableRow:
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
                "orders": [
                    [*partition, order.before, order.after] for partition, order in case.orders.items()
                ],
            }
        ),
    }


def _parse_case(row: TableRow) -> MitigationCase:
    detail: dict[str, Any] = json.loads(row["detail"])
    orders: Sequence[tuple[str, int, list[int], list[int]]] = detail["orders"]
    receivers = detail.get("told")
    undone_since = detail.get("undone_since")
    return MitigationCase(
        case_id=row["action_id"],
        action=Action(row["kind"]),
        cluster_id=row["cluster_id"],
        broker_id=row["broker_id"],
        zone=detail["zone"],
        author=row["author"],
        reason=row["reason"],
        began=row["starts"],
        outcome=CaseOutcome(detail["outcome"]),
        ended=row["ends"],
        orders={
            TopicPartition(topic, number): ReplicaOrder(tuple(before), tuple(after))
            for topic, number, before, after in orders
        },
        throttles=detail["throttles"],
        against=tuple(detail.get("against", ())),
        words=tuple(detail["words"]),
        told=None if receivers is None else tuple(receivers),
        rejected=tuple(detail.get("rejected", ())),
        undone_since=datetime.fromisoformat(undone_since) if undone_since else None,
        overruled=detail.get("overruled", False),
    )
