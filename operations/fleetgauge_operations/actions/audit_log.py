"""The audit log ops/actions: every case, refused ones too, with its outcome, times, author and reason.

Which clusters are being rolled is read from ops/changes as well.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from threading import Lock
from typing import Any

import pyarrow.compute as pc

from fleetgauge_core.lake.table_store import TableRow, TableStore
from fleetgauge_core.slo.change_causes import RecordedChange
from fleetgauge_core.tables import ACTIONS, CASE_KINDS, CHANGES, ActionKind, ActionOutcome, ChangeKind
from fleetgauge_operations.actions.plan.case import ActionCase
from fleetgauge_operations.actions.plan.rolling import (
    ROLL_GOES_ON_WITHIN,
    RollAction,
    find_rolling_clusters,
)

_CHANGE_COLUMNS = tuple(field.name for field in fields(RecordedChange))
#: Keys of ``detail`` that are not part of the plan.
_CASE_KEYS = frozenset(
    {"outcome", "zone", "against", "words", "told", "rejected", "undone_since", "overruled"}
)
#: Keys that version 0.1 expects in the detail of every case.
_PLAN_DEFAULTS: Mapping[str, Any] = {"orders": [], "throttles": {}}


@dataclass(frozen=True, slots=True)
class AuditEntries:
    """The contents of ops/actions at one moment: cases by start time, and rolling restarts."""

    cases: tuple[ActionCase, ...]
    rolls: tuple[RollAction, ...]


class AuditLog:
    """The table ops/actions of a lake.

    Several threads may use it. All methods raise TableStoreError if the table is missing or cannot be read or
    written.
    """

    def __init__(self, lake: str) -> None:
        self._table = TableStore(lake, ACTIONS)
        # The stream creates the table; an older one has not yet.
        self._changes = TableStore(lake, CHANGES, create=True)
        # Writers of one process would use up each other's attempts to commit.
        self._writing = Lock()

    def read_entries(self) -> AuditEntries:
        """Return all cases, and the rolling restarts."""
        rows = self._table.rows()
        cases = [_parse_case(row) for row in rows if row["kind"] in CASE_KINDS]
        return AuditEntries(
            cases=tuple(sorted(cases, key=lambda case: (case.began, case.case_id))),
            rolls=tuple(
                RollAction(row["cluster_id"], row["starts"], row["ends"])
                for row in rows
                if row["kind"] == ActionKind.ROLL
            ),
        )

    def find_rolling_clusters(self, entries: AuditEntries, now: datetime) -> frozenset[str]:
        """Return the clusters with a roll in progress, by these entries and by what was observed."""
        return find_rolling_clusters(entries.rolls, self._read_restarts(now), entries.cases, now)

    def _read_restarts(self, now: datetime) -> list[RecordedChange]:
        recent = (pc.field("kind") == ChangeKind.BROKER_RESTARTED.value) & (
            pc.field("ends") > now - ROLL_GOES_ON_WITHIN
        )
        return [RecordedChange(**row) for row in self._changes.rows(recent, _CHANGE_COLUMNS)]

    def add_case(self, case: ActionCase) -> None:
        """Store a new case."""
        with self._writing:
            self._table.append([_case_row(case)])

    def update_case(self, case: ActionCase) -> None:
        """Replace the stored case that has the same ID."""
        with self._writing:
            self._table.update(_case_row(case))

    def amend_case(self, case_id: str, change: Callable[[ActionCase], ActionCase | None]) -> None:
        """Replace a case by what ``change`` returns for its newest version; leave it unchanged for None."""

        def amend(row: TableRow) -> TableRow | None:
            changed = change(_parse_case(row))
            return None if changed is None else _case_row(changed)

        with self._writing:
            self._table.amend({"action_id": case_id}, amend)


def _case_row(case: ActionCase) -> TableRow:
    return {
        "action_id": case.case_id,
        "kind": case.kind.value,
        "cluster_id": case.cluster_id,
        "broker_id": case.broker_id,
        "starts": case.began,
        "ends": case.ended,
        "reason": case.reason,
        "author": case.author,
        "detail": json.dumps(
            {
                **_PLAN_DEFAULTS,
                **case.plan,
                "outcome": case.outcome,
                "zone": case.zone,
                "against": case.refused_by,
                "words": case.explanations,
                "told": case.accepted_by,
                "rejected": case.rejected_by,
                "undone_since": case.undone_since.isoformat() if case.undone_since else None,
                "overruled": case.overruled,
            }
        ),
    }


def _parse_case(row: TableRow) -> ActionCase:
    detail: dict[str, Any] = json.loads(row["detail"])
    receivers = detail.get("told")
    undone_since = detail.get("undone_since")
    return ActionCase(
        case_id=row["action_id"],
        kind=ActionKind(row["kind"]),
        cluster_id=row["cluster_id"],
        broker_id=row["broker_id"],
        zone=detail["zone"],
        author=row["author"],
        reason=row["reason"],
        began=row["starts"],
        outcome=ActionOutcome(detail["outcome"]),
        ended=row["ends"],
        plan={key: value for key, value in detail.items() if _is_of_plan(key, value)},
        refused_by=tuple(detail.get("against", ())),
        explanations=tuple(detail["words"]),
        accepted_by=None if receivers is None else tuple(receivers),
        rejected_by=tuple(detail.get("rejected", ())),
        undone_since=datetime.fromisoformat(undone_since) if undone_since else None,
        overruled=detail.get("overruled", False),
    )


def _is_of_plan(key: str, value: object) -> bool:
    return key not in _CASE_KEYS and not (key in _PLAN_DEFAULTS and value == _PLAN_DEFAULTS[key])
