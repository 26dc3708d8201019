"""What changes cost, as the pipeline has computed it in gold/change_costs."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

import pyarrow.compute as pc

from fleetgauge_core.lake.table_store import TableStore
from fleetgauge_core.tables import CHANGE_COSTS

Row = Mapping[str, Any]


def read_costs(lake: str, change_ids: Collection[str]) -> Mapping[str, Sequence[Row]]:
    """Return the costs of changes by their ID, one for each cluster, the highest first.

    Raises: TableStoreError.
    """
    costs: dict[str, list[Row]] = defaultdict(list)
    for row in TableStore(lake, CHANGE_COSTS, create=True).rows(pc.field("change_id").isin(list(change_ids))):
        costs[row["change_id"]].append(row)
    return {change_id: sorted(rows, key=_order) for change_id, rows in costs.items()}


def _order(row: Row) -> tuple[float, str]:
    return -((row["bad_minutes"] or 0) - (row["bad_minutes_expected"] or 0)), row["cluster_id"]


def format_costs(rows: Iterable[Row]) -> list[str]:
    """Return a line for each cluster: what the change cost, with its interval and what was expected."""
    return [
        f"{row['cluster_id']}: bad minutes {_format(row, 'bad_minutes', 'latency_budget_share')}; minutes of"
        f" availability {_format(row, 'availability_spent_minutes', 'availability_budget_share')}"
        for row in rows
    ]


def _format(row: Row, name: str, share: str) -> str:
    observed, expected = row[name], row[f"{name}_expected"]
    if observed is None or expected is None:
        return f"unknown: {_explain_missing(row)}"
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    interval = "" if low is None or high is None else f", {low:+.1f} to {high:+.1f}"
    return (
        f"{observed - expected:+.1f}{interval} ({row[f'{name}_verdict']}: {observed:.1f}, {expected:.1f}"
        f" expected; {row[share]:.0%} of a week's budget)"
    )


def _explain_missing(row: Row) -> str:
    if row["ends"] - row["starts"] > timedelta(weeks=1):
        return "it lasted longer than a week, so that there are no weeks to compare it with"
    if not row["minutes_measured"]:
        return "nothing was measured meanwhile"
    return "fewer than two of the four weeks before were measured"


def cost_document(row: Row) -> dict[str, Any]:
    """Return a cost as a JSON value."""
    return {
        "cluster": row["cluster_id"],
        **{
            name: row[name].isoformat() if name == "computed_at" else row[name]
            for name in CHANGE_COSTS.column_names
            if name not in ("cluster_id", "change_id", "kind", "broker_id", "starts", "ends")
        },
    }
