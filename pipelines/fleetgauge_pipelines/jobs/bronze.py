"""Store valid records in bronze and others in quarantine, and release records that became valid."""

import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from fleetgauge_core.fleet import Fleet
from fleetgauge_core.slo.utc_days import list_utc_days
from fleetgauge_core.tables import PROBE_MINUTES, QUARANTINE
from fleetgauge_core.tables.arrow_schema import arrow_schema
from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.io.record_files import RAW_DDL
from fleetgauge_pipelines.io.small_frames import create_dataframe
from fleetgauge_pipelines.io.table_files import FILE, WrittenFile
from fleetgauge_pipelines.io.tasks import run_tasks
from fleetgauge_pipelines.jobs.changed_rows import (
    ChangedRows,
    commit_changes,
    group_by_file,
    write_differences,
)
from fleetgauge_pipelines.jobs.cluster_consistency import ClusterConsistency
from fleetgauge_pipelines.jobs.ingest_tasks import (
    KEYS,
    PART_DDL,
    CandidateFile,
    CheckedPart,
    RepeatedRecords,
    check_partition,
    compare_repeated,
    keep_candidates,
    read_candidates,
)
from fleetgauge_pipelines.jobs.stored_sequences import StoredSequences
from fleetgauge_pipelines.transforms.contract_rules import ContractRules
from fleetgauge_pipelines.transforms.duplicates import find_repeated_keys
from fleetgauge_pipelines.transforms.grouping import Grouping
from fleetgauge_pipelines.transforms.lists import Flags, Ints
from fleetgauge_pipelines.transforms.raw_records import REFUSED
from fleetgauge_pipelines.transforms.record_summaries import (
    SUMMARY_COLUMNS,
    Period,
    RecordSummary,
    merge_summaries,
    summarize_records,
)

_END_OF_TIME = datetime.max.replace(tzinfo=UTC)
_SPAN = Grouping(("cluster_id",), (("minute", "min"), ("minute", "max")))


@dataclass(frozen=True, slots=True)
class IngestResult:
    """What became of a batch's records; ``touched`` has the first and last minute with one, per cluster."""

    received: int
    stored: int
    replayed: int
    quarantined: int
    touched: Mapping[str, tuple[datetime, datetime]]

    @property
    def newest(self) -> datetime | None:
        """Return the newest minute of any cluster, None for a batch without a valid record."""
        return max((last for _, last in self.touched.values()), default=None)


@dataclass(frozen=True, slots=True)
class AcceptedRecords:
    """The raw records of a batch, and the KEYS of those that are in bronze now."""

    raw: DataFrame
    keys: pa.Table


class BronzeWriter:
    """Stores valid records unchanged in bronze, and records that break the contract in quarantine."""

    def __init__(self, spark: SparkSession, lake: Lake, fleet: Fleet) -> None:
        self._spark = spark
        self._lake = lake
        self._consistency = ClusterConsistency(lake)
        self._stored_sequences = StoredSequences(lake)
        self._clusters = frozenset(cluster.id for cluster in fleet.clusters)
        self._kept_from: datetime | None = None
        self._has_quarantined_rows = False

    def open(self) -> None:
        """Read which days of bronze have expired, and whether quarantine holds any row.

        A record of an expired day is refused, because silver would be recomputed without the expired records.
        """
        self._kept_from = self._lake.kept_from(PROBE_MINUTES)
        self._consistency.open()
        self._has_quarantined_rows = bool(self._lake.list_files(QUARANTINE).files)

    def warm_up(self, clock: datetime) -> None:
        """Check a value that is no record, and store nothing: Spark then has started its Python workers."""
        raw = create_dataframe(self._spark, [(b"", "warm-up", 0, None)], RAW_DDL)
        self._check(raw, ContractRules(self._clusters, clock, None, None, False))

    def ingest(
        self,
        raw: DataFrame,
        clock: datetime,
        oldest: datetime | None = None,
        accepts_unlikely: bool = False,
    ) -> tuple[IngestResult, AcceptedRecords]:
        """Store raw records and return what became of them.

        ``raw`` has the columns value, source, position and hint; records of minutes before ``oldest`` go to
        quarantine, and unlikely ones (ACCEPTABLE_REASONS) unless a person accepts them.
        """
        rules = ContractRules(self._clusters, clock, oldest, self._kept_from, accepts_unlikely)
        parts = self._check(raw, rules)
        candidates = _Candidates(self._spark, self._lake.path(PROBE_MINUTES), parts)
        summaries = merge_summaries(summary for part in parts for summary in part.summaries)
        unlikely: dict[int, tuple[str, str]] = {}
        if not accepts_unlikely:
            unlikely = self._consistency.find_unlikely(candidates.read_columns, summaries)
            if unlikely:
                summaries = candidates.summarize(without=list(unlikely))
            self._consistency.add_summaries(summaries)
        touched = _find_touched(summaries)
        replays, conflicts = self._find_duplicates(candidates, list(unlikely), touched)
        dropped = np.concatenate([replays, conflicts, np.fromiter(unlikely, np.int64, len(unlikely))])
        files = candidates.keep_all_but(dropped)
        candidates.add_to(self._stored_sequences)
        self._lake.commit_files(PROBE_MINUTES, files)
        refused = pa.concat_tables([part.refused for part in parts]) if parts else REFUSED.empty_table()
        reasons = unlikely | {row: _describe_conflict(candidates.keys, row) for row in conflicts.tolist()}
        quarantined = pa.concat_tables([refused, self._refuse(raw, candidates.keys, reasons)])
        if quarantined.num_rows:
            self._quarantine(quarantined, clock)
        result = IngestResult(
            received=refused.num_rows + candidates.keys.num_rows,
            stored=candidates.keys.num_rows - len(dropped),
            replayed=len(replays),
            quarantined=quarantined.num_rows,
            touched=touched,
        )
        accepted = np.ones(candidates.keys.num_rows, np.bool_)
        accepted[list(reasons)] = False
        return result, AcceptedRecords(raw, candidates.keys.filter(pa.array(accepted)))

    def find_stored(self, since: datetime | None) -> IngestResult:
        """Return the minutes of the fleet's records that were stored at ``since`` or later; None: of all."""
        where = None if since is None else pc.field("ingested_at") >= since
        files = self._lake.list_files(PROBE_MINUTES)
        if since is not None:
            files = files.select(lambda file: file.overlaps("ingested_at", since, _END_OF_TIME))
        spans = self._lake.scan(files, ("cluster_id", "minute"), where, _SPAN.summarize, _SPAN.merge)
        touched = {
            row["cluster_id"]: (row["minute_min"], row["minute_max"])
            for row in spans.to_pylist()
            if row["cluster_id"] in self._clusters
        }
        return IngestResult(0, 0, 0, 0, touched)

    def release(self, accepted: AcceptedRecords) -> int:
        """Delete accepted records from quarantine and return how many rows were deleted.

        This is the last step of a batch. Until silver and gold include a record, it must stay in quarantine,
        so that a batch that failed finds it there when it is repeated.
        """
        if not self._has_quarantined_rows:
            return 0
        quarantine = self._lake.list_files(QUARANTINE)
        same_sources = pc.field("source").isin(accepted.keys["source"].combine_chunks())
        # Usually there is none; then no value need be read.
        if not quarantine.read(("source",), same_sources).num_rows:
            return 0
        rows = quarantine.read(("source", "value", FILE), same_sources)
        same_source = accepted.keys.filter(pc.is_in(accepted.keys["source"], rows["source"].combine_chunks()))
        values = self._read_values(accepted.raw, same_source["position"].to_pylist())
        # Files of the same name in two folders have the same source; only the value distinguishes their
        # records.
        pairs = set(
            zip(
                same_source["source"].to_pylist(),
                map(values.get, same_source["position"].to_pylist()),
                strict=True,
            )
        )
        is_released = [
            pair in pairs for pair in zip(rows["source"].to_pylist(), rows["value"].to_pylist(), strict=True)
        ]
        released = rows.filter(pa.array(is_released, pa.bool_()))
        removed = group_by_file(released.select([*QUARANTINE.key, FILE]))
        changes = ChangedRows((), removed, released.num_rows)
        return commit_changes(self._spark, self._lake, QUARANTINE, [changes])

    def _check(self, raw: DataFrame, rules: ContractRules) -> list[CheckedPart]:
        check = partial(check_partition, rules, self._lake.path(PROBE_MINUTES))
        checked = raw.select("value", "source", "position", "hint").mapInArrow(check, PART_DDL)
        # Only tasks of this batch have pickled them.
        return [pickle.loads(row["part"]) for row in checked.collect()]  # noqa: S301

    def _find_duplicates(
        self,
        candidates: "_Candidates",
        unlikely: Sequence[int],
        touched: Mapping[str, tuple[datetime, datetime]],
    ) -> tuple[Ints, Ints]:
        """Return the rows of the batch that are replays, and those that conflict with another record."""
        others = np.setdiff1d(np.arange(candidates.keys.num_rows), np.array(unlikely, np.int64))
        keys = candidates.keys.take(pa.array(others))
        stored = self._read_possible_duplicates(keys, list_utc_days(touched.values()))
        repeated = find_repeated_keys(keys, stored)
        winners = np.where(repeated.is_stored, repeated.winner, others[repeated.winner * ~repeated.is_stored])
        rows = others[repeated.row]
        same = candidates.compare(rows, winners, repeated.is_stored, stored)
        return rows[same], rows[~same]

    def _read_possible_duplicates(self, keys: pa.Table, days: Sequence[date]) -> pa.Table:
        """Return the keys that are stored in some days and that a new record may have, each with its FILE."""
        names = [*PROBE_MINUTES.key, FILE]
        possible = keys.filter(pa.array(self._stored_sequences.may_be_stored(keys, days)))
        if not possible.num_rows:
            schema = arrow_schema(PROBE_MINUTES)
            key = [schema.field(name) for name in PROBE_MINUTES.key]
            return pa.schema([*key, (FILE, pa.string())]).empty_table()
        bounds = pc.min_max(possible["sequence"]).as_py()
        where = pc.field("run_id").isin(pc.unique(possible["run_id"]))
        where &= (pc.field("sequence") >= bounds["min"]) & (pc.field("sequence") <= bounds["max"])
        return self._lake.list_files(PROBE_MINUTES, days).read(names, where)

    def _read_values(self, raw: DataFrame, positions: Iterable[int]) -> dict[int, bytes | None]:
        """Return the raw values at some positions."""
        wanted = create_dataframe(self._spark, [(position,) for position in positions], "position bigint")
        rows = raw.select("position", "value").join(F.broadcast(wanted), "position", "left_semi")
        return {
            row["position"]: None if row["value"] is None else bytes(row["value"]) for row in rows.collect()
        }

    def _refuse(self, raw: DataFrame, keys: pa.Table, reasons: Mapping[int, tuple[str, str]]) -> pa.Table:
        """Return records of the batch, by their rows, as values that were refused."""
        if not reasons:
            return REFUSED.empty_table()
        chosen = keys.take(pa.array(list(reasons), pa.int64()))
        positions = chosen["position"].to_pylist()
        values = self._read_values(raw, positions)
        columns: list[Any] = [
            chosen["source"],
            pa.array([values[position] for position in positions], pa.binary()),
            *(pa.array([each[part] for each in reasons.values()], pa.string()) for part in (0, 1)),
        ]
        return pa.Table.from_arrays(columns, schema=REFUSED)

    def _quarantine(self, refused: pa.Table, clock: datetime) -> None:
        schema = arrow_schema(QUARANTINE)
        clocks = pa.repeat(pa.scalar(clock, schema.field("ingested_at").type), refused.num_rows)
        wanted = refused.append_column(schema.field("ingested_at"), clocks).select(schema.names)
        self._has_quarantined_rows = True
        same_source = pc.field("source").isin(wanted["source"].combine_chunks())
        stored = self._lake.list_files(QUARANTINE).read((*QUARANTINE.column_names, FILE), same_source)
        changes = write_differences(self._lake.path(QUARANTINE), QUARANTINE, wanted, stored)
        commit_changes(self._spark, self._lake, QUARANTINE, [changes])


class _Candidates:
    """The valid records of a batch in files, numbered through all files."""

    def __init__(self, spark: SparkSession, location: str, parts: Iterable[CheckedPart]) -> None:
        self._spark = spark
        self._location = location
        self._files: list[CandidateFile] = [file for part in parts for file in part.files]
        self._ends = np.cumsum([file.file.rows for file in self._files], dtype=np.int64)
        #: The KEYS of all records.
        self.keys = pa.concat_tables([KEYS.empty_table(), *(file.keys for file in self._files)])

    def add_to(self, stored: StoredSequences) -> None:
        """Take over the sequences of all records, before they are stored."""
        for candidate in self._files:
            if candidate.file.day is not None:
                stored.add(candidate.file.day, candidate.keys)

    def read_columns(self, names: Sequence[str]) -> pa.Table:
        """Return columns of all records."""
        return pa.concat_tables(
            [
                read_candidates(self._location, each.file, np.arange(each.file.rows), names)
                for each in self._files
            ]
        )

    def summarize(self, without: Sequence[int]) -> list[RecordSummary]:
        """Return what the records say of their clusters, without some of them."""
        kept = np.ones(self.keys.num_rows, np.bool_)
        kept[list(without)] = False
        return summarize_records(self.read_columns(SUMMARY_COLUMNS).filter(pa.array(kept)))

    def compare(self, rows: Ints, winners: Ints, is_stored: Flags, stored: pa.Table) -> Flags:
        """Return which rows have the same content as the record that was first.

        ``winners`` are rows of ``stored`` (key and FILE) where ``is_stored``, elsewhere rows of the batch.
        """
        paths = np.array([each.file.path for each in self._files], object)
        number = np.searchsorted(self._ends, winners, side="right") * ~is_stored
        path = paths[number] if len(paths) else paths
        path[is_stored] = np.array(stored[FILE].take(pa.array(winners[is_stored])).to_pylist(), object)
        begins = np.array([self._begin(each) for each in range(len(self._files))], np.int64)
        row = winners - begins[number] if len(begins) else winners
        others = self.keys.select(list(PROBE_MINUTES.key)).take(pa.array(rows))
        others = others.append_column("path", pa.array(path, pa.string()))
        others = others.append_column("row", pa.array(row, pa.int64(), mask=is_stored))
        parts, order = [], []
        for each, begin, end in self._split(rows):
            chosen = np.flatnonzero((rows >= begin) & (rows < end))
            parts.append(RepeatedRecords(each.file, rows[chosen] - begin, others.take(pa.array(chosen))))
            order.append(chosen)
        same = np.zeros(len(rows), np.bool_)
        compared = run_tasks(self._spark, partial(compare_repeated, self._location), parts)
        for chosen, flags in zip(order, compared, strict=True):
            same[chosen] = flags
        return same

    def keep_all_but(self, dropped: Ints) -> list[WrittenFile]:
        """Return files with all records but some, which are written again where they have any of these."""
        changed: list[tuple[WrittenFile, Ints]] = []
        paths: set[str] = set()
        for each, begin, end in self._split(dropped):
            gone = dropped[(dropped >= begin) & (dropped < end)] - begin
            paths.add(each.file.path)
            if len(rows := np.setdiff1d(np.arange(each.file.rows), gone)):
                changed.append((each.file, rows))
        kept = run_tasks(self._spark, partial(keep_candidates, self._location), changed)
        whole = [each.file for each in self._files if each.file.path not in paths]
        return whole + [file for part in kept for file in part]

    def _split(self, rows: Ints) -> Iterator[tuple[CandidateFile, int, int]]:
        """Yield each file that has one of the rows, and its first row and that of the next."""
        for number in np.unique(np.searchsorted(self._ends, rows, side="right")).tolist():
            yield self._files[number], self._begin(number), int(self._ends[number])

    def _begin(self, number: int) -> int:
        return int(self._ends[number]) - self._files[number].file.rows


def _describe_conflict(keys: pa.Table, row: int) -> tuple[str, str]:
    record = keys.slice(row, 1).to_pylist()[0]
    return (
        "conflicting_duplicate",
        f"another record has run {record['run_id']}, sequence {record['sequence']}",
    )


def _find_touched(summaries: Iterable[RecordSummary]) -> dict[str, tuple[datetime, datetime]]:
    touched: dict[str, Period] = {}
    for summary in summaries:
        touched[summary.cluster_id] = summary.period.extend(touched.get(summary.cluster_id, summary.period))
    return dict(touched)
