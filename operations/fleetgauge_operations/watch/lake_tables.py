"""What a watch reads of a lake; its image has no reader of tables. All raise TableStoreError."""

from collections.abc import Sequence
from datetime import date, datetime

from fleetgauge_core.lake.corrections import CorrectionStore
from fleetgauge_core.lake.delta_table import DELTA_ERRORS, describe_table_error, open_table
from fleetgauge_core.lake.table_store import TableRow, TableStoreError
from fleetgauge_core.tables import CLUSTER_WEEKS
from fleetgauge_operations.mitigation.case import Case
from fleetgauge_operations.mitigation.record import Record

_BUDGETS = (
    "cluster_id",
    "revision",
    "latency_budget_left_minutes",
    "latency_budget_minutes",
    "availability_spent_minutes",
    "availability_budget_minutes",
)


def corrections(lake: str) -> Sequence[TableRow]:
    """All of them."""
    return CorrectionStore(lake).rows()


def cases(lake: str, now: datetime) -> Sequence[Case]:
    """What was done about brokers, the first to begin first."""
    return Record(lake).read(now).cases


def budgets(lake: str, week: date) -> dict[str, TableRow]:
    """By cluster, what the latest revision of that week says is left and spent; none before there is any."""
    try:
        table = open_table(lake, CLUSTER_WEEKS)
        if table is None:
            return {}
        rows: list[TableRow] = table.to_pyarrow_table(
            columns=list(_BUDGETS), filters=[("week", "=", week)]
        ).to_pylist()
    except DELTA_ERRORS as error:
        raise TableStoreError(
            f"{lake}: {CLUSTER_WEEKS.path} cannot be read: {describe_table_error(error)}"
        ) from error
    return {row["cluster_id"]: row for row in sorted(rows, key=lambda row: row["revision"])}
