"""Store changes from their Kafka topic or a file in ops/changes; a record that is none goes to quarantine."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
from pyspark.sql import DataFrame

from fleetgauge_core.contract import ClusterChange, RecordDecodeError
from fleetgauge_core.contract.change_document import ChangeDocumentError, read_change_document
from fleetgauge_core.tables import CHANGES, QUARANTINE, Table
from fleetgauge_pipelines.io.lake import Lake


def store_changes(lake: Lake, raw: DataFrame, now: datetime) -> int:
    """Add the changes that the table does not have yet, and return how many were added.

    ``raw`` has the columns value and source. A record that is no change is added to ops/quarantine.
    """
    changes: list[dict[str, Any]] = []
    rejected: list[dict[str, Any]] = []
    for row in raw.select("value", "source").collect():
        value = bytes(row["value"] or b"")
        try:
            changes.append(asdict(ClusterChange.decode(value)))
        except RecordDecodeError as error:
            rejected.append(
                {
                    "source": row["source"],
                    "value": value,
                    "reason": error.reason,
                    "detail": f"not a change: {error.detail}",
                    "ingested_at": now,
                }
            )
    _append_missing(lake, QUARANTINE, rejected)
    return _append_missing(lake, CHANGES, changes)


def add_changes(lake: Lake, changes: Iterable[ClusterChange]) -> int:
    """Add the changes that the table does not have yet, and return how many were added."""
    return _append_missing(lake, CHANGES, map(asdict, changes))


def read_change_file(path: Path) -> tuple[ClusterChange, ...]:
    """Return the changes in a JSON file, as `fleetgauge changes --json` prints them.

    Raises: ChangeDocumentError with the place of the first value that is no change; OSError.
    """
    try:
        documents = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ChangeDocumentError(f"is not JSON: {error}") from error
    if not isinstance(documents, list):
        raise ChangeDocumentError("is not a list of changes")
    return tuple(_read_entry(number, document) for number, document in enumerate(documents))


def _read_entry(number: int, document: Any) -> ClusterChange:
    try:
        return read_change_document(document)
    except ChangeDocumentError as error:
        raise ChangeDocumentError(f"change {number}: {error}") from error


def _append_missing(lake: Lake, table: Table, rows: Iterable[Mapping[str, Any]]) -> int:
    """Append the rows whose key is not in the table: a batch may be repeated, and a record sent twice."""
    (key,) = table.key
    by_key = {row[key]: row for row in rows}
    if not by_key:
        return 0
    store = lake.table_store(table)
    for stored in store.rows(pc.field(key).isin(list(by_key)), [key]):
        by_key.pop(stored[key], None)
    if by_key:
        store.append(list(by_key.values()))
    return len(by_key)
