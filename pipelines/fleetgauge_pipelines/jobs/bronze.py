"""Store valid records in bronze and others in quarantine, and release records that became valid."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from fleetgauge_core.fleet import Fleet
from fleetgauge_core.slo.utc_days import list_utc_days
from fleetgauge_core.tables import PROBE_MINUTES, QUARANTINE
from fleetgauge_pipelines.io.lake import Lake, materialize
from fleetgauge_pipelines.io.small_frames import to_utc
from fleetgauge_pipelines.jobs.cluster_consistency import (
    ClusterConsistency,
    Period,
    RecordSummary,
    to_summary,
)
from fleetgauge_pipelines.transforms.decode import check_contract, decode_records
from fleetgauge_pipelines.transforms.deduplicate import (
    RECORD_COLUMNS,
    judge_duplicates,
    select_possible_duplicates,
)
from fleetgauge_pipelines.transforms.record_summaries import summarize_records


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


class BronzeWriter:
    """Stores valid records unchanged in bronze, and records that break the contract in quarantine."""

    def __init__(self, spark: SparkSession, lake: Lake, fleet: Fleet) -> None:
        self._lake = lake
        self._consistency = ClusterConsistency(spark, lake)
        self._clusters = {cluster.id: cluster for cluster in fleet.clusters}
        self._kept_from: datetime | None = None
        self._has_quarantined_rows = False

    def open(self) -> None:
        """Read which days of bronze have expired, and whether quarantine holds any row.

        A record of an expired day is refused, because silver would be recomputed without the expired records.
        """
        self._kept_from = self._lake.kept_from(PROBE_MINUTES)
        self._consistency.open()
        self._has_quarantined_rows = not self._lake.read(QUARANTINE).isEmpty()

    def ingest(
        self,
        raw: DataFrame,
        clock: datetime,
        oldest: datetime | None = None,
        accepts_unlikely: bool = False,
    ) -> tuple[IngestResult, DataFrame]:
        """Store raw records and return what became of them.

        ``raw`` has the columns value, source, position and hint; records of minutes before ``oldest`` go to
        quarantine, and unlikely ones (ACCEPTABLE_REASONS) unless a person accepts them. The second frame has
        source and value of every record of the batch that is in bronze now.
        """
        checked = check_contract(
            decode_records(raw), self._clusters, clock, oldest, self._kept_from, accepts_unlikely
        )
        checked = materialize(checked.withColumn("reason", F.coalesce("hint", "reason")))
        invalid, summaries = _summarize(checked)
        if not accepts_unlikely:
            judged = self._consistency.refuse_unlikely(checked, summaries)
            if judged is not None:
                checked = materialize(judged)
                invalid, summaries = _summarize(checked)
            self._consistency.add_summaries(summaries)
        touched = _find_touched(summaries)
        valid = checked.where("reason IS NULL").select("record.*", "value", "source", "position")
        judged = materialize(judge_duplicates(valid, self._read_possible_duplicates(valid, touched)))
        accepted = judged.where("fate != 'conflicting_duplicate'").select("source", "value")
        return self._store(checked, judged, invalid, touched, clock), accepted

    def find_stored(self, since: datetime | None) -> IngestResult:
        """Return the minutes of the records that were stored at ``since`` or later; of all if it is None."""
        stored = self._lake.read(PROBE_MINUTES)
        if since:
            stored = stored.where(F.col("ingested_at") >= since)
        rows = stored.groupBy("cluster_id").agg(F.min("minute").alias("lo"), F.max("minute").alias("hi"))
        touched = {row["cluster_id"]: (to_utc(row["lo"]), to_utc(row["hi"])) for row in rows.collect()}
        return IngestResult(0, 0, 0, 0, touched)

    def release(self, accepted: DataFrame) -> int:
        """Delete accepted records from quarantine and return how many rows were deleted.

        This is the last step of a batch. Until silver and gold include a record, it must stay in quarantine,
        so that a batch that failed finds it there when it is repeated.
        """
        if not self._has_quarantined_rows:
            return 0
        same_source = self._lake.read(QUARANTINE).join(accepted, "source", "left_semi")
        if same_source.isEmpty():
            return 0
        # Files of the same name in two folders have the same source; only the value distinguishes their
        # records.
        released = same_source.join(accepted, ["source", "value"], "left_semi")
        return self._lake.replace_rows(QUARANTINE, released.limit(0), released)

    def _read_possible_duplicates(
        self, valid: DataFrame, touched: Mapping[str, tuple[datetime, datetime]]
    ) -> DataFrame:
        """Return the stored records that share a key with a new one."""
        stored = self._lake.read(PROBE_MINUTES).where(F.col("day").isin(list_utc_days(touched.values())))
        candidates = select_possible_duplicates(stored, valid)
        # Usually there is none; then the judgement need not read bronze at all.
        return candidates.limit(0) if candidates.isEmpty() else candidates

    def _store(
        self,
        checked: DataFrame,
        judged: DataFrame,
        invalid: int,
        touched: Mapping[str, tuple[datetime, datetime]],
        clock: datetime,
    ) -> IngestResult:
        fates = {row["fate"]: row["count"] for row in judged.groupBy("fate").count().collect()}
        if fates.get("new"):
            new = judged.where("fate = 'new'").select(*RECORD_COLUMNS, "source")
            new = new.withColumns({"ingested_at": F.lit(clock), "day": F.to_date("minute")})
            self._lake.append(PROBE_MINUTES, new)
        conflicts = fates.get("conflicting_duplicate", 0)
        if invalid or conflicts:
            self._quarantine(checked, judged, clock)
        return IngestResult(
            received=invalid + sum(fates.values()),
            stored=fates.get("new", 0),
            replayed=fates.get("replay", 0),
            quarantined=invalid + conflicts,
            touched=touched,
        )

    def _quarantine(self, checked: DataFrame, judged: DataFrame, clock: datetime) -> None:
        detail = F.concat(
            F.lit("another record has run "), "run_id", F.lit(", sequence "), F.col("sequence").cast("string")
        )
        conflicts = judged.where("fate = 'conflicting_duplicate'").select(
            "source", "value", F.col("fate").alias("reason"), detail.alias("detail")
        )
        invalid = checked.where("reason IS NOT NULL").select("source", "value", "reason", "detail")
        rows = invalid.unionByName(conflicts).withColumn("ingested_at", F.lit(clock))
        self._has_quarantined_rows = True
        stored = self._lake.read(QUARANTINE).join(rows.select("source"), "source", "left_semi")
        self._lake.replace_rows(QUARANTINE, rows, stored)


def _summarize(checked: DataFrame) -> tuple[int, list[RecordSummary]]:
    """Return how many records are invalid, and what the valid ones say about their clusters."""
    rows = summarize_records(checked).collect()
    return (
        sum(row["records"] for row in rows if row["cluster_id"] is None),
        [to_summary(row) for row in rows if row["cluster_id"] is not None],
    )


def _find_touched(summaries: Iterable[RecordSummary]) -> dict[str, tuple[datetime, datetime]]:
    touched: dict[str, Period] = {}
    for summary in summaries:
        touched[summary.cluster_id] = summary.period.extend(touched.get(summary.cluster_id, summary.period))
    return dict(touched)
