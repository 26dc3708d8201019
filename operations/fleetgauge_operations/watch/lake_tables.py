"""Read the tables of the lake that the watch uses; imported only where the needed libraries are installed.

All functions raise TableStoreError when a table cannot be read.
"""

from collections.abc import Sequence
from datetime import date

from fleetgauge_core.lake.corrections import CorrectionStore
from fleetgauge_core.lake.delta_table import DELTA_ERRORS, describe_table_error, open_table
from fleetgauge_core.lake.table_store import TableRow, TableStoreError
from fleetgauge_core.tables import CLUSTER_WEEKS
from fleetgauge_operations.actions.audit_log import AuditLog
from fleetgauge_operations.actions.plan.case import ActionCase

_BUDGET_COLUMNS = (
    "cluster_id",
    "revision",
    "latency_budget_left_minutes",
    "latency_budget_minutes",
    "availability_spent_minutes",
    "availability_budget_minutes",
)


def read_corrections(lake: str) -> Sequence[TableRow]:
    """Return all rows of ops/corrections. Raises: TableStoreError."""
    return CorrectionStore(lake).rows()


def read_cases(lake: str) -> Sequence[ActionCase]:
    """Return the mitigations of brokers, by the time at which they began. Raises: TableStoreError."""
    return AuditLog(lake).read_entries().cases


def read_budgets(lake: str, week: date) -> dict[str, TableRow]:
    """Return the budget columns of the week's latest revision by cluster; none if the table does not exist.

    Raises: TableStoreError.
    """
    try:
        table = open_table(lake, CLUSTER_WEEKS)
        if table is None:
            return {}
        rows: list[TableRow] = table.to_pyarrow_table(
            columns=list(_BUDGET_COLUMNS), filters=[("week", "=", week)]
        ).to_pylist()
    except DELTA_ERRORS as error:
        raise TableStoreError(
            f"{lake}: {CLUSTER_WEEKS.path} cannot be read: {describe_table_error(error)}"
        ) from error
    return {row["cluster_id"]: row for row in sorted(rows, key=lambda row: row["revision"])}
