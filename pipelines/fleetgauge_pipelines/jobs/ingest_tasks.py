"""What a task does with raw records: decode and check them, and write the valid ones to files of bronze.

The files are candidates until the driver commits them: it may find that some records were delivered before.
"""

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from fleetgauge_core.tables import PROBE_MINUTES
from fleetgauge_core.tables.arrow_schema import arrow_schema
from fleetgauge_pipelines.io.table_files import WrittenFile, open_filesystem, write_files
from fleetgauge_pipelines.transforms.contract_rules import ContractRules
from fleetgauge_pipelines.transforms.duplicates import have_same_content
from fleetgauge_pipelines.transforms.lists import Flags, Ints
from fleetgauge_pipelines.transforms.raw_records import RECORD_COLUMNS, check_raw_records
from fleetgauge_pipelines.transforms.record_summaries import RecordSummary, summarize_records

#: Raw records that a task holds at a time, and their bytes.
_RECORDS_AT_ONCE, _BYTES_AT_ONCE = 50_000, 64 * 2**20
#: The one column of what a task returns.
PART_DDL = "part binary"
_PARTS = pa.schema([("part", pa.binary())])
#: What identifies a record of a batch, and where it came from.
KEYS = pa.schema(
    [("run_id", pa.string()), ("sequence", pa.int64()), ("position", pa.int64()), ("source", pa.string())]
)


@dataclass(frozen=True, slots=True)
class CandidateFile:
    """A file of bronze that no commit names yet, and the KEYS of its records in their order."""

    file: WrittenFile
    keys: pa.Table


@dataclass(frozen=True, slots=True)
class CheckedPart:
    """Records that break no rule, in files; the values that do; what the records say of their clusters."""

    files: tuple[CandidateFile, ...]
    refused: pa.Table
    summaries: tuple[RecordSummary, ...]


def check_partition(
    rules: ContractRules, location: str, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield a pickled CheckedPart for each many raw records of a partition."""
    pending: list[pa.RecordBatch] = []
    for batch in batches:
        pending.append(batch)
        if (
            sum(part.num_rows for part in pending) >= _RECORDS_AT_ONCE
            or sum(part.nbytes for part in pending) >= _BYTES_AT_ONCE
        ):
            yield _check(pending, rules, location)
            pending = []
    if pending:
        yield _check(pending, rules, location)


def _check(batches: list[pa.RecordBatch], rules: ContractRules, location: str) -> pa.RecordBatch:
    checked = check_raw_records(pa.Table.from_batches(batches), rules)
    part = CheckedPart(
        tuple(_write_candidates(location, checked.valid, rules.clock)),
        checked.refused,
        tuple(summarize_records(checked.valid)),
    )
    return pa.RecordBatch.from_arrays([pa.array([pickle.dumps(part)], pa.binary())], schema=_PARTS)


def _write_candidates(location: str, valid: pa.Table, clock: datetime) -> Iterator[CandidateFile]:
    schema = arrow_schema(PROBE_MINUTES)
    days = valid["minute"].cast(pa.date32())
    clocks = pa.repeat(pa.scalar(clock, schema.field("ingested_at").type), valid.num_rows)
    rows = valid.append_column(schema.field("ingested_at"), clocks).append_column(schema.field("day"), days)
    for day in sorted(days.unique().to_pylist()):
        of_day = rows.filter(pc.equal(days, day))
        for file in write_files(location, of_day.select(schema.names)):
            yield CandidateFile(file, of_day.select(KEYS.names))


def read_candidates(
    location: str, file: WrittenFile, rows: Ints, columns: Sequence[str] | None = None
) -> pa.Table:
    """Return some records of a candidate file, in this order; all columns but the day if none are named."""
    return _read_file(location, file.path, columns).take(pa.array(rows))


def _read_file(location: str, path: str, columns: Sequence[str] | None) -> pa.Table:
    names = None if columns is None else list(columns)
    return pq.read_table(
        unquote(path), columns=names, filesystem=open_filesystem(location), partitioning=None
    ).combine_chunks()


def keep_candidates(location: str, kept: tuple[WrittenFile, Ints]) -> list[WrittenFile]:
    """Write some records of a candidate file to another one."""
    file, rows = kept
    records = read_candidates(location, file, rows)
    return write_files(location, records.append_column("day", pa.repeat(pa.scalar(file.day), len(rows))))


@dataclass(frozen=True, slots=True)
class RepeatedRecords:
    """Records of a candidate file whose key another record has.

    ``others`` has for each of them the ``path`` of the file with the other one, and its ``row`` there; of a
    stored record, which is found by its ``run_id`` and ``sequence``, the row is NULL.
    """

    file: WrittenFile
    rows: Ints
    others: pa.Table


def compare_repeated(location: str, repeated: RepeatedRecords) -> Flags:
    """Return which of the records have the same content as the other one."""
    ours = read_candidates(location, repeated.file, repeated.rows, RECORD_COLUMNS)
    same = np.zeros(len(repeated.rows), np.bool_)
    for path in repeated.others["path"].unique().to_pylist():
        at = np.flatnonzero(np.asarray(pc.equal(repeated.others["path"], path)))
        others = repeated.others.take(pa.array(at))
        file = _read_file(location, path, RECORD_COLUMNS)
        theirs = file.take(_find_rows(file, others))
        same[at] = have_same_content(ours.take(pa.array(at)), theirs)
    return same


def _find_rows(file: pa.Table, others: pa.Table) -> pa.Array:
    """Return the row in a file of each of the other records."""
    names = list(PROBE_MINUTES.key)
    numbered = file.select(names).append_column("in_file", pa.array(np.arange(file.num_rows)))
    by_key = numbered.group_by(names).aggregate([("in_file", "min")])
    asked = others.select(names).append_column("asked", pa.array(np.arange(others.num_rows)))
    rows = asked.join(by_key, names, join_type="left outer").sort_by("asked")["in_file_min"]
    return pc.coalesce(others["row"], rows).combine_chunks()
