"""ops/corrections: rows are added and withdrawn, never changed or removed."""

from datetime import UTC, datetime

from fleetgauge_core.lake.table_store import Row, TableStore
from fleetgauge_core.tables import CORRECTIONS


class Corrections:
    """One lake's table of corrections. Every call raises TableStoreError."""

    def __init__(self, lake: str) -> None:
        self._table = TableStore(lake, CORRECTIONS)

    def rows(self) -> list[Row]:
        """Every correction, withdrawn ones too, as they were made."""
        return sorted(self._table.rows(), key=lambda row: (row["created_at"], row["correction_id"]))

    def add(self, row: Row) -> None:
        self._table.append([row])

    def withdraw(self, correction_id: str, at: datetime, by: str) -> bool:
        """Whether there was such a correction that still counted."""
        row = next((row for row in self.rows() if row["correction_id"] == correction_id), None)
        if row is None or row["withdrawn_at"] is not None:
            return False
        self._table.update(row | {"withdrawn_at": at, "withdrawn_by": by})
        return True


def counts_at(row: Row, now: datetime) -> str:
    """What a reader wants to know of a correction: withdrawn, over, current or planned."""
    if row["withdrawn_at"] is not None:
        return "withdrawn"
    if now.astimezone(UTC) < row["starts"]:
        return "planned"
    until = row["recurs_until"] if row["recurs"] else row["ends"]
    return "over" if until is not None and until <= now else "current"
