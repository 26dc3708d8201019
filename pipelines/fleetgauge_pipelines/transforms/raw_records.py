"""Decodes raw values to records and checks them by the contract, a batch at a time."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from fleetgauge_core.contract import PROBE_MINUTE, RecordDecodeError
from fleetgauge_core.tables import PROBE_MINUTES
from fleetgauge_core.tables.arrow_schema import arrow_schema
from fleetgauge_pipelines.transforms.avro import decode_plain
from fleetgauge_pipelines.transforms.contract_rules import Breach, ContractRules

#: Bronze columns that are fields of the record itself.
RECORD_COLUMNS = tuple(
    name for name in PROBE_MINUTES.column_names if name not in ("source", "ingested_at", "day")
)
_BRONZE = arrow_schema(PROBE_MINUTES)
_RECORDS = pa.schema([_BRONZE.field(name) for name in RECORD_COLUMNS])
REFUSED = pa.schema(
    [("source", pa.string()), ("value", pa.binary()), ("reason", pa.string()), ("detail", pa.string())]
)
#: Times that every reader of a table has.
_FIRST_TIME, _LAST_TIME = datetime(1, 1, 2, tzinfo=UTC), datetime(9999, 12, 30, tzinfo=UTC)
#: Values that are decoded together fit into a processor's cache.
_DECODED_TOGETHER = 2_000


@dataclass(frozen=True, slots=True)
class CheckedRecords:
    """The records that break no rule, with source and position, and the values that do (REFUSED)."""

    valid: pa.Table
    refused: pa.Table


def check_raw_records(raw: pa.Table, rules: ContractRules) -> CheckedRecords:
    """Decode and check raw records: value, source, position, and hint, a reason that only a file can tell."""
    raw = raw.combine_chunks()
    parts = [
        _check(raw.slice(first, _DECODED_TOGETHER), rules)
        for first in range(0, raw.num_rows, _DECODED_TOGETHER)
    ]
    if not parts:
        return CheckedRecords(_VALID.empty_table(), REFUSED.empty_table())
    return CheckedRecords(
        pa.concat_tables([part.valid for part in parts]), pa.concat_tables([part.refused for part in parts])
    )


_VALID = _RECORDS.append(_BRONZE.field("source")).append(pa.field("position", pa.int64()))


def _check(raw: pa.Table, rules: ContractRules) -> CheckedRecords:
    values = raw["value"].combine_chunks()
    plain = decode_plain(values, PROBE_MINUTE)
    breaches: dict[int, Breach | tuple[str, str | None]] = {}
    others: dict[int, dict[str, Any]] = {}
    is_plain = np.zeros(len(values), np.bool_)
    is_plain[plain.rows] = True
    for row in np.flatnonzero(~is_plain).tolist():
        decoded = _decode(values[row].as_py())
        if isinstance(decoded, dict):
            others[row] = decoded
        else:
            breaches[row] = decoded
    records = pa.Table.from_arrays(
        [plain.columns[name].cast(_RECORDS.field(name).type) for name in RECORD_COLUMNS], schema=_RECORDS
    )
    rows = np.concatenate([plain.rows, np.fromiter(others, np.int64, len(others))])
    records = pa.concat_tables([records, pa.Table.from_pylist(list(others.values()), _RECORDS)])
    suspects = np.flatnonzero(~rules.are_surely_valid(records))
    for row, record in zip(
        rows[suspects].tolist(), _to_records(records.take(pa.array(suspects))), strict=True
    ):
        if breach := rules.judge(record):
            breaches[row] = breach
    hints = raw["hint"].to_pylist()
    for row, hint in enumerate(hints):
        if hint is not None:
            breaches[row] = (hint, breaches.get(row, (hint, None))[1])
    order = np.argsort(rows, kind="stable")
    order = order[~np.isin(rows[order], np.fromiter(breaches, np.int64, len(breaches)))]
    kept = pa.array(rows[order])
    valid = records.take(pa.array(order)).append_column(_VALID.field("source"), raw["source"].take(kept))
    return CheckedRecords(
        valid.append_column(_VALID.field("position"), raw["position"].take(kept)), _refuse(raw, breaches)
    )


def _decode(value: bytes | None) -> dict[str, Any] | tuple[str, str | None]:
    if value is None:
        return "not_decodable", None
    try:
        record = PROBE_MINUTE.decode(value)
    except RecordDecodeError as error:
        return error.reason, f"{len(value)} bytes"
    if not all(_FIRST_TIME <= record[name] <= _LAST_TIME for name in ("minute", "emitted_at")):
        return "not_decodable", f"{len(value)} bytes"
    # Bytes that say nothing, or a code that is given twice: of the two counts only one was decoded.
    if len(PROBE_MINUTE.encode(record)) != len(value):
        return "trailing_bytes", f"{len(value)} bytes"
    return record


def _refuse(raw: pa.Table, breaches: dict[int, Any]) -> pa.Table:
    rows = sorted(breaches)
    chosen = raw.select(["source", "value"]).take(pa.array(rows, pa.int64()))
    reasons, details = ([breaches[row][part] for row in rows] for part in (0, 1))
    return pa.Table.from_arrays(
        [
            chosen["source"].cast(pa.string()),
            chosen["value"].cast(pa.binary()),
            pa.array(reasons, pa.string()),
            pa.array(details, pa.string()),
        ],
        schema=REFUSED,
    )


def _to_records(records: pa.Table) -> list[dict[str, Any]]:
    return [
        {name: dict(value) if name.endswith("_failures") else value for name, value in row.items()}
        for row in records.to_pylist()
    ]
