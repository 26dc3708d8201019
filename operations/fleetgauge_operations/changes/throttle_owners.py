"""Who set a throttle: Fleetgauge records its own in ops/actions, so any other one is another tool's."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from fleetgauge_core.lake.table_store import TableStore, TableStoreError
from fleetgauge_core.tables import ACTIONS, ActionKind, ChangeKind
from fleetgauge_operations.changes.plan.observed_change import ObservedChange

OURS, OTHER, UNKNOWN = "fleetgauge", "another tool", "unknown"
#: An action is recorded before it is applied, and a change is seen up to a look later.
_TOLERANCE = timedelta(minutes=1)


def find_throttle_owner(
    rows: Iterable[Mapping[str, Any]], cluster_id: str, starts: datetime, ends: datetime | None
) -> str:
    """Return whether one of the actions of ops/actions explains a throttle of that time."""
    for row in rows:
        is_throttle = row["kind"] in (ActionKind.THROTTLE, ActionKind.QUARANTINE_RESTART)
        began = row["starts"] - _TOLERANCE
        ended = row["ends"] + _TOLERANCE if row["ends"] else None
        if (
            is_throttle
            and row["cluster_id"] == cluster_id
            and (ends is None or began <= ends)
            and (ended is None or starts <= ended)
        ):
            return OURS
    return OTHER


def create_throttle_completion(lake: str | None) -> Callable[[str, ObservedChange], ObservedChange]:
    """Return a function that adds the owner to a throttle of a cluster; it is unknown without a lake."""
    store = TableStore(lake, ACTIONS) if lake else None

    def complete(cluster_id: str, change: ObservedChange) -> ObservedChange:
        if change.kind is not ChangeKind.THROTTLE:
            return change
        owner = UNKNOWN
        if store:
            try:
                owner = find_throttle_owner(store.rows(), cluster_id, change.starts, change.ends)
            except TableStoreError:
                owner = UNKNOWN
        return replace(change, evidence={**change.evidence, "owner": owner})

    return complete
