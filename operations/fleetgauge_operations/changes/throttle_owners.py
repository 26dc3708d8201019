"""Who set a throttle: Fleetgauge records its own in ops/actions, so any other one is another tool's."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from fleetgauge_core.lake.table_store import TableStore, TableStoreError
from fleetgauge_core.tables import ACTIONS, OUTCOMES_WITHOUT_EFFECT, ActionKind, ChangeKind
from fleetgauge_operations.changes.plan.observed_change import ObservedChange

OURS, OTHER, UNKNOWN = "fleetgauge", "another tool", "unknown"
#: An action is recorded before it is applied, and a change is seen up to a look later.
_TOLERANCE = timedelta(minutes=1)
_THROTTLING_KINDS = (ActionKind.THROTTLE, ActionKind.QUARANTINE_RESTART)

#: Adds to the changes of a cluster what the cluster itself does not tell.
CompleteChanges = Callable[[str, Sequence[ObservedChange]], tuple[ObservedChange, ...]]


def find_throttle_owner(rows: Iterable[Mapping[str, Any]], cluster_id: str, change: ObservedChange) -> str:
    """Return whether one of the actions of ops/actions explains a throttle of a cluster."""
    return OURS if any(_explains(row, cluster_id, change) for row in rows) else OTHER


def _explains(row: Mapping[str, Any], cluster_id: str, change: ObservedChange) -> bool:
    if row["cluster_id"] != cluster_id or row["kind"] not in _THROTTLING_KINDS:
        return False
    if None not in (row["broker_id"], change.broker_id) and row["broker_id"] != change.broker_id:
        return False
    if json.loads(row["detail"] or "{}").get("outcome") in OUTCOMES_WITHOUT_EFFECT:
        return False
    begins_before_end = change.ends is None or row["starts"] - _TOLERANCE <= change.ends
    ends_after_begin = row["ends"] is None or change.starts <= row["ends"] + _TOLERANCE
    return begins_before_end and ends_after_begin


def create_throttle_completion(lake: str | None) -> CompleteChanges:
    """Return a function that adds the owner to the throttles among a cluster's changes.

    It is unknown without a lake, and while the table cannot be read.
    """
    store = TableStore(lake, ACTIONS) if lake else None

    def complete(cluster_id: str, changes: Sequence[ObservedChange]) -> tuple[ObservedChange, ...]:
        if not any(change.kind is ChangeKind.THROTTLE for change in changes):
            return tuple(changes)
        rows = _read_rows(store)
        return tuple(
            replace(change, evidence={**change.evidence, "owner": _find_owner(rows, cluster_id, change)})
            if change.kind is ChangeKind.THROTTLE
            else change
            for change in changes
        )

    return complete


def _read_rows(store: TableStore | None) -> Sequence[Mapping[str, Any]] | None:
    if store is None:
        return None
    try:
        return store.rows()
    except TableStoreError:
        return None


def _find_owner(rows: Sequence[Mapping[str, Any]] | None, cluster_id: str, change: ObservedChange) -> str:
    return UNKNOWN if rows is None else find_throttle_owner(rows, cluster_id, change)
