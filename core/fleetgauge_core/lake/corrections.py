"""The table ops/corrections: rows are inserted and withdrawn, but never changed otherwise or removed."""

from datetime import UTC, datetime

from fleetgauge_core.lake.table_store import TableRow, TableStore
from fleetgauge_core.tables import CORRECTIONS


class CorrectionStore:
    """The table of corrections of a lake.

    All methods raise TableStoreError if the table is missing or cannot be read or written.
    """

    def __init__(self, lake: str) -> None:
        self._table = TableStore(lake, CORRECTIONS)

    def rows(self) -> list[TableRow]:
        """Return all corrections, including withdrawn ones, in the order of their creation."""
        return sorted(self._table.rows(), key=lambda row: (row["created_at"], row["correction_id"]))

    def insert(self, row: TableRow) -> None:
        """Store a new correction."""
        self._table.append([row])

    def withdraw(self, correction_id: str, at: datetime, by: str) -> bool:
        """Withdraw a correction; return False if it does not exist or was withdrawn before."""
        row = next((row for row in self.rows() if row["correction_id"] == correction_id), None)
        if row is None or row["withdrawn_at"] is not None:
            return False
        self._table.update(row | {"withdrawn_at": at, "withdrawn_by": by})
        return True


def correction_status(row: TableRow, now: datetime) -> str:
    """Return whether a correction is "withdrawn", "planned", "current" or "over" at a time."""
    if row["withdrawn_at"] is not None:
        return "withdrawn"
    if now.astimezone(UTC) < row["starts"]:
        return "planned"
    until = row["recurs_until"] if row["recurs"] else row["ends"]
    return "over" if until is not None and until <= now else "current"
