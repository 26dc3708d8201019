"""Raw records to bronze or quarantine, and out of quarantine again."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from fleetgauge_core.fleet import Fleet
from fleetgauge_core.slo.days import days_of
from fleetgauge_core.tables import PROBE_MINUTES, QUARANTINE
from fleetgauge_pipelines.io.lake import Lake, settle
from fleetgauge_pipelines.io.small_frames import utc
from fleetgauge_pipelines.transforms.decode import check, decode
from fleetgauge_pipelines.transforms.deduplicate import RECORD_COLUMNS, first_of_each, that_may_meet


@dataclass(frozen=True, slots=True)
class Ingested:
    """What became of a batch's records, and which minutes they touch (inclusive, per cluster)."""

    received: int
    stored: int
    replayed: int
    quarantined: int
    touched: Mapping[str, tuple[datetime, datetime]]

    @property
    def newest(self) -> datetime | None:
        """The last minute of any cluster."""
        return max((last for _, last in self.touched.values()), default=None)


class Bronze:
    """Writes what came, as it came; what breaks the contract goes to quarantine."""

    def __init__(self, lake: Lake, fleet: Fleet) -> None:
        self._lake = lake
        self._clusters = {cluster.id: cluster for cluster in fleet.clusters}
        self._kept_from: datetime | None = None
        self._any_held = False

    def open(self) -> None:
        """Learn which days have expired: a record of one would make silver anew from what is gone."""
        self._kept_from = self._lake.kept_from(PROBE_MINUTES)
        self._any_held = not self._lake.read(QUARANTINE).isEmpty()

    def ingest(
        self, raw: DataFrame, clock: datetime, oldest: datetime | None = None
    ) -> tuple[Ingested, DataFrame]:
        """``raw`` has value, source, position and hint; minutes before ``oldest`` go to quarantine.

        Returns also source and value of all records that are in bronze by now.
        """
        checked = check(decode(raw), self._clusters, clock, oldest, self._kept_from)
        checked = settle(checked.withColumn("reason", F.coalesce("hint", "reason")))
        good = checked.where("reason IS NULL").select("record.*", "value", "source", "position")
        touched = self._touched(good)
        judged = settle(first_of_each(good, self._known(good, touched)))
        accepted = judged.where("fate != 'conflicting_duplicate'").select("source", "value")
        return self._store(checked, judged, touched, clock), accepted

    def release(self, accepted: DataFrame) -> int:
        """Take out of quarantine what was accepted; returns how many rows that were.

        The last step of a batch: as long as silver and gold lack a record that came
        out of quarantine, a batch that broke off must find it there again.
        """
        if not self._any_held:
            return 0
        held = self._lake.read(QUARANTINE).join(accepted, "source", "left_semi")
        if held.isEmpty():
            return 0
        # Files of two folders may share a name, and then a source.
        same = held.join(accepted, ["source", "value"], "left_semi")
        return self._lake.bring_to(QUARANTINE, same.limit(0), same)

    def _touched(self, good: DataFrame) -> dict[str, tuple[datetime, datetime]]:
        bounds = good.groupBy("cluster_id").agg(F.min("minute").alias("lo"), F.max("minute").alias("hi"))
        return {row["cluster_id"]: (utc(row["lo"]), utc(row["hi"])) for row in bounds.collect()}

    def _known(self, good: DataFrame, touched: Mapping[str, tuple[datetime, datetime]]) -> DataFrame:
        """The stored records that one of these could repeat; mostly there are none, and none is read."""
        stored = self._lake.read(PROBE_MINUTES).where(F.col("day").isin(days_of(touched.values())))
        known = that_may_meet(stored, good)
        return known.limit(0) if known.isEmpty() else known

    def _store(
        self,
        checked: DataFrame,
        judged: DataFrame,
        touched: Mapping[str, tuple[datetime, datetime]],
        clock: datetime,
    ) -> Ingested:
        fates = {row["fate"]: row["count"] for row in judged.groupBy("fate").count().collect()}
        broken = checked.where("reason IS NOT NULL").count()
        if fates.get("new"):
            new = judged.where("fate = 'new'").select(*RECORD_COLUMNS, "source")
            new = new.withColumns({"ingested_at": F.lit(clock), "day": F.to_date("minute")})
            self._lake.append(PROBE_MINUTES, new)
        conflicts = fates.get("conflicting_duplicate", 0)
        if broken or conflicts:
            self._quarantine(checked, judged, clock)
        return Ingested(
            received=broken + sum(fates.values()),
            stored=fates.get("new", 0),
            replayed=fates.get("replay", 0),
            quarantined=broken + conflicts,
            touched=touched,
        )

    def _quarantine(self, checked: DataFrame, judged: DataFrame, clock: datetime) -> None:
        detail = F.concat(
            F.lit("another record has run "), "run_id", F.lit(", sequence "), F.col("sequence").cast("string")
        )
        conflicts = judged.where("fate = 'conflicting_duplicate'").select(
            "source", "value", F.col("fate").alias("reason"), detail.alias("detail")
        )
        broken = checked.where("reason IS NOT NULL").select("source", "value", "reason", "detail")
        rows = broken.unionByName(conflicts).withColumn("ingested_at", F.lit(clock))
        self._any_held = True
        stored = self._lake.read(QUARANTINE).join(rows.select("source"), "source", "left_semi")
        self._lake.bring_to(QUARANTINE, rows, stored)
