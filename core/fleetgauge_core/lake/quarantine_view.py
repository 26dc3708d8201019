"""The quarantine as a person looks at it, without a JVM."""

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
from fleetgauge_core.contract.logical_types import without_logical_types
from fleetgauge_core.contract.single_object import MARKER
from fleetgauge_core.lake.delta_table import BROKEN, open_table, reason
from fleetgauge_core.tables import QUARANTINE


class QuarantineError(Exception):
    """The lake's quarantine cannot be read; says which and why in one line."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which rows of the quarantine; None: whatever it is."""

    reason: str | None = None
    source: str | None = None
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """The rows of one reason; ``example`` is the source of one of them."""

    reason: str
    rows: int
    first_ingested_at: datetime
    last_ingested_at: datetime
    example: str


@dataclass(frozen=True, slots=True)
class Held:
    """One row of the quarantine."""

    source: str
    value: bytes | None
    reason: str
    detail: str | None
    ingested_at: datetime


def groups(lake: str, selection: Selection) -> list[Group]:
    """One per reason, the largest first. Raises QuarantineError."""
    found = _rows(lake, selection, ["source", "reason", "ingested_at"]).group_by("reason")
    wanted = [("source", "count"), ("ingested_at", "min"), ("ingested_at", "max"), ("source", "min")]
    by_reason = [
        Group(
            row["reason"],
            row["source_count"],
            row["ingested_at_min"],
            row["ingested_at_max"],
            row["source_min"],
        )
        for row in found.aggregate(wanted).to_pylist()
    ]
    return sorted(by_reason, key=lambda group: (-group.rows, group.reason))


def held(lake: str, source: str) -> Held | None:
    """The row of that source, None where there is none. Raises QuarantineError."""
    found = _rows(lake, Selection(source=source), list(QUARANTINE.names)).to_pylist()
    return Held(**found[0]) if found else None


def _rows(lake: str, selection: Selection, columns: list[str]) -> pa.Table:
    path = f"{lake.rstrip('/')}/{QUARANTINE.path}"
    try:
        table = open_table(lake, QUARANTINE)
        if table is not None:
            return table.to_pyarrow_dataset().to_table(columns, filter=_where(selection))
    except BROKEN as error:
        raise QuarantineError(f"{path}: {reason(error)}") from error
    raise QuarantineError(f"{path}: no such table; --lake says where a lake is, and its first batch makes it")


def _where(selection: Selection) -> Any:
    where = ds.scalar(True)
    if selection.reason is not None:
        where = where & (ds.field("reason") == selection.reason)
    if selection.source is not None:
        where = where & (ds.field("source") == selection.source)
    if selection.since is not None:
        where = where & (ds.field("ingested_at") >= ds.scalar(selection.since))
    return where


def readable_fields(value: bytes) -> tuple[dict[str, Any], str | None]:
    """As many of a ProbeMinute's fields as the bytes hold, and why there are no more (None: it is whole).

    Times are milliseconds as they were written, so that one that no calendar has is seen as well.
    """
    fields: dict[str, Any] = {}
    if value[: len(MARKER)] != MARKER:
        return fields, "no single-object marker"
    body = BytesIO(value[HEADER_BYTES:])
    for name, type_ in _field_types():
        begins = HEADER_BYTES + body.tell()
        try:
            fields[name] = fastavro.schemaless_reader(body, type_, None, handle_unicode_errors="replace")
        except Exception:
            # Damaged bytes raise anything at all.
            return fields, f"{name} cannot be read, from byte {begins} on"
    left = len(value) - HEADER_BYTES - body.tell()
    return fields, f"{left} bytes after the record" if left else None


@cache
def _field_types() -> tuple[tuple[str, Any], ...]:
    def types() -> Iterator[tuple[str, Any]]:
        for field in without_logical_types(json.loads(PROBE_MINUTE.text))["fields"]:
            yield field["name"], fastavro.parse_schema(field["type"])

    return tuple(types())
