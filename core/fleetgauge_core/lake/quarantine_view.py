"""Read the quarantine for inspection, without a JVM."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from io import BytesIO
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.dataset as ds

from fleetgauge_core.contract import HEADER_BYTES, PROBE_MINUTE
from fleetgauge_core.contract.logical_types import strip_logical_types
from fleetgauge_core.contract.single_object import SINGLE_OBJECT_MARKER
from fleetgauge_core.errors import OperationalError
from fleetgauge_core.lake.delta_table import DELTA_ERRORS, describe_table_error, open_table
from fleetgauge_core.tables import QUARANTINE


class QuarantineError(OperationalError):
    """The quarantine of a lake cannot be read; the message is one line with its path and the reason."""


@dataclass(frozen=True, slots=True)
class QuarantineFilter:
    """Selects rows of the quarantine; a condition that is None matches every row.

    ``since`` is the earliest ingestion time.
    """

    reason: str | None = None
    source: str | None = None
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class QuarantineSummary:
    """Number and ingestion times of the quarantined records with one reason.

    ``example`` is the source of one of them.
    """

    reason: str
    rows: int
    first_ingested_at: datetime
    last_ingested_at: datetime
    example: str


@dataclass(frozen=True, slots=True)
class QuarantinedRecord:
    """A row of the quarantine; ``value`` is the record value as it was received."""

    source: str
    value: bytes | None
    reason: str
    detail: str | None
    ingested_at: datetime


def summarize_quarantine(lake: str, where: QuarantineFilter) -> list[QuarantineSummary]:
    """Return a summary for each reason, the most frequent first.

    Raises: QuarantineError if the quarantine cannot be read.
    """
    grouped = _select(lake, where, ["source", "reason", "ingested_at"]).group_by("reason")
    aggregations = [("source", "count"), ("ingested_at", "min"), ("ingested_at", "max"), ("source", "min")]
    summaries = [
        QuarantineSummary(
            row["reason"],
            row["source_count"],
            row["ingested_at_min"],
            row["ingested_at_max"],
            row["source_min"],
        )
        for row in grouped.aggregate(aggregations).to_pylist()
    ]
    return sorted(summaries, key=lambda summary: (-summary.rows, summary.reason))


def read_quarantined_record(lake: str, source: str) -> QuarantinedRecord | None:
    """Return the quarantined record with a source, or None if there is none.

    Raises: QuarantineError if the quarantine cannot be read.
    """
    rows = _select(lake, QuarantineFilter(source=source), list(QUARANTINE.column_names)).to_pylist()
    return QuarantinedRecord(**rows[0]) if rows else None


def _select(lake: str, where: QuarantineFilter, columns: list[str]) -> pa.Table:
    path = f"{lake.rstrip('/')}/{QUARANTINE.path}"
    try:
        table = open_table(lake, QUARANTINE)
        if table is not None:
            return table.to_pyarrow_dataset().to_table(columns, filter=_predicate(where))
    except DELTA_ERRORS as error:
        raise QuarantineError(f"{path}: {describe_table_error(error)}") from error
    raise QuarantineError(
        f"{path}: no such table; check --lake. The first batch of `fleetgauge stream` creates it"
    )


def _predicate(where: QuarantineFilter) -> Any:
    predicate = ds.scalar(True)
    if where.reason is not None:
        predicate = predicate & (ds.field("reason") == where.reason)
    if where.source is not None:
        predicate = predicate & (ds.field("source") == where.source)
    if where.since is not None:
        predicate = predicate & (ds.field("ingested_at") >= ds.scalar(where.since))
    return predicate


def decode_readable_fields(value: bytes) -> tuple[dict[str, Any], str | None]:
    """Decode as many fields of a damaged ProbeMinute as possible.

    Return the fields by name and why decoding stopped; None if the record is complete. Times are
    milliseconds since the epoch, as they were written, so that times outside the calendar are shown too.
    """
    fields: dict[str, Any] = {}
    if value[: len(SINGLE_OBJECT_MARKER)] != SINGLE_OBJECT_MARKER:
        return fields, "no single-object marker"
    body = BytesIO(value[HEADER_BYTES:])
    for name, type_ in _field_types():
        start = HEADER_BYTES + body.tell()
        try:
            fields[name] = fastavro.schemaless_reader(body, type_, None, handle_unicode_errors="replace")
        except Exception:
            # fastavro raises exceptions of many types for damaged bytes.
            return fields, f"{name} cannot be read, from byte {start} on"
    remaining = len(value) - HEADER_BYTES - body.tell()
    return fields, f"{remaining} bytes after the record" if remaining else None


@cache
def _field_types() -> tuple[tuple[str, Any], ...]:
    def types() -> Iterator[tuple[str, Any]]:
        for field in strip_logical_types(json.loads(PROBE_MINUTE.text))["fields"]:
            yield field["name"], fastavro.parse_schema(field["type"])

    return tuple(types())
