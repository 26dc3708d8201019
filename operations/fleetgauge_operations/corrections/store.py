"""ops/corrections: rows are added and withdrawn, never changed or removed."""

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from fleetgauge_pipelines.lakes.store import BROKEN, open_table, reason, schema
from fleetgauge_pipelines.tables import CORRECTIONS

Row = dict[str, Any]


class CorrectionsError(Exception):
    """The table is not there, or cannot be read or written; one line for a person."""


class Corrections:
    """One lake's table of corrections."""

    def __init__(self, lake: str) -> None:
        self._lake = lake
        self._path = f"{lake.rstrip('/')}/{CORRECTIONS.path}"
        self._schema = schema(CORRECTIONS)

    def rows(self) -> list[Row]:
        """Every correction, withdrawn ones too, as they were made."""
        try:
            found = self._table().to_pyarrow_table().cast(self._schema).to_pylist()
        except (*BROKEN, ValueError) as error:
            raise self._failed("read", error) from error
        return sorted(found, key=lambda row: (row["created_at"], row["correction_id"]))

    def add(self, row: Row) -> None:
        """Raises CorrectionsError where there is no lake yet."""
        data = pa.Table.from_pylist([dict.fromkeys(CORRECTIONS.names) | row], schema=self._schema)
        try:
            write_deltalake(self._table(), data, mode="append")
        except BROKEN as error:
            raise self._failed("written", error) from error

    def withdraw(self, correction_id: str, at: datetime, by: str) -> bool:
        """Whether there was such a correction that still counted."""
        row = next((row for row in self.rows() if row["correction_id"] == correction_id), None)
        if row is None or row["withdrawn_at"] is not None:
            return False
        data = pa.Table.from_pylist([row | {"withdrawn_at": at, "withdrawn_by": by}], schema=self._schema)
        try:
            merge = self._table().merge(data, "t.correction_id = s.correction_id", "s", "t")
            merge.when_matched_update_all().execute()
        except BROKEN as error:
            raise self._failed("written", error) from error
        return True

    def _table(self) -> DeltaTable:
        try:
            table = open_table(self._lake, CORRECTIONS)
        except BROKEN as error:
            raise self._failed("read", error) from error
        if table is None:
            raise CorrectionsError(
                f"{self._path}: no such table; `fleetgauge stream` or `backfill` makes it with the lake"
            )
        return table

    def _failed(self, verb: str, error: Exception) -> CorrectionsError:
        return CorrectionsError(f"{self._path}: cannot be {verb}: {reason(error)}")


def counts_at(row: Row, now: datetime) -> str:
    """What a reader wants to know of a correction: withdrawn, over, current or planned."""
    if row["withdrawn_at"] is not None:
        return "withdrawn"
    if now.astimezone(UTC) < row["starts"]:
        return "planned"
    until = row["recurs_until"] if row["recurs"] else row["ends"]
    return "over" if until is not None and until <= now else "current"
