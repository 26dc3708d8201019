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
from fleetgauge_core.fleet import Fleet
from fleetgauge_core.slo.change_causes import Segments
from fleetgauge_core.tables import CHANGES, QUARANTINE, ChangeKind, Table
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


def read_change_file(path: Path, fleet: Fleet, now: datetime) -> tuple[ClusterChange, ...]:
    """Return the changes in a JSON file, as `fleetgauge changes --json` prints them.

    Raises: ChangeDocumentError with the place of the first value that is no change of the fleet; OSError.
    """
    segments = {cluster.id: cluster.segments for cluster in fleet.clusters}
    try:
        documents = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ChangeDocumentError(f"is not JSON: {error}") from error
    if not isinstance(documents, list):
        raise ChangeDocumentError("is not a list of changes")
    return tuple(_read_entry(number, document, segments, now) for number, document in enumerate(documents))


def _read_entry(number: int, document: Any, segments: Mapping[str, Segments], now: datetime) -> ClusterChange:
    try:
        change = read_change_document(document, now)
        _check_subject(change, segments)
    except ChangeDocumentError as error:
        raise ChangeDocumentError(f"change {number}: {error}") from error
    return change


def _check_subject(change: ClusterChange, segments: Mapping[str, Segments]) -> None:
    if change.kind not in set(ChangeKind):
        raise ChangeDocumentError(f"kind: {change.kind[:60]!r} is none of {', '.join(ChangeKind)}")
    if change.cluster_id is not None and change.cluster_id not in segments:
        raise ChangeDocumentError(f"cluster: the fleet has no cluster {change.cluster_id[:60]!r}")
    segment = (change.segment, change.segment_value)
    if change.cluster_id is None and not any(segment in each for each in segments.values()):
        raise ChangeDocumentError(
            "cluster, segment: give a cluster, or segment and segment_value of some; of the whole fleet these"
            " are `fleet` and an empty text"
        )


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
