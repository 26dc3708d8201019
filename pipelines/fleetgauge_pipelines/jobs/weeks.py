"""Cluster-weeks that are being computed: their levels with and without corrections."""

from collections.abc import Iterator, Sequence
from datetime import date, datetime

from pyspark.sql import SparkSession

from fleetgauge_core.slo.corrected_week import WeekRow, add_raw_columns
from fleetgauge_core.slo.corrections import ExcludedRange, join_correction_ids
from fleetgauge_core.slo.utc_days import list_utc_days
from fleetgauge_core.tables import BROKER_MINUTES, CLUSTER_MINUTES
from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.io.table_files import TableFiles
from fleetgauge_pipelines.io.tasks import run_tasks
from fleetgauge_pipelines.jobs.week_tasks import ComputedWeek, WeeksTask, compute_weeks
from fleetgauge_pipelines.quality.gold_facts import SilverCounts
from fleetgauge_pipelines.transforms.cluster_weeks import WeekDefinition

#: Weeks of a task. A week has up to 10,080 minutes of 120 bytes.
_FEWEST_WEEKS, _MOST_WEEKS = 50, 400

ClusterWeekKey = tuple[str, date]


class CorrectedWeeks:
    """The weeks to compute, and the ranges that corrections exclude from them."""

    def __init__(
        self,
        spark: SparkSession,
        lake: Lake,
        weeks: Sequence[WeekDefinition],
        exclusions: Sequence[ExcludedRange],
    ) -> None:
        self._spark = spark
        self._lake = lake
        self._weeks = weeks
        self._exclusions = exclusions

    def compute(self) -> list[ComputedWeek]:
        """Return the weeks that have a minute."""
        tasks = list(self.split(self._weeks))
        return [week for part in run_tasks(self._spark, compute_weeks, tasks) for week in part]

    def split(self, weeks: Sequence[WeekDefinition]) -> Iterator[WeeksTask]:
        """Yield tasks for some of the weeks; a cluster's weeks are side by side."""
        days = list_utc_days((week.starts, week.ends) for week in weeks)
        silver = {table: self._lake.list_files(table, days) for table in (BROKER_MINUTES, CLUSTER_MINUTES)}
        ordered = sorted(weeks, key=lambda week: (week.cluster_id, week.week))
        cores = self._spark.sparkContext.defaultParallelism
        size = min(max(_FEWEST_WEEKS, -(-len(ordered) // cores)), _MOST_WEEKS)
        for first in range(0, len(ordered), size):
            part = tuple(ordered[first : first + size])
            clusters = {week.cluster_id for week in part}
            exclusions = tuple(range_ for range_ in self._exclusions if range_.cluster_id in clusters)
            of_part = {table: _select_files(files, part) for table, files in silver.items()}
            yield WeeksTask(of_part, part, exclusions)


def _select_files(files: TableFiles, weeks: Sequence[WeekDefinition]) -> TableFiles:
    """Return the files that may have minutes of weeks, which are in the order of their clusters."""
    first, last = weeks[0].cluster_id, weeks[-1].cluster_id
    of_days = files.of_days(set(list_utc_days((week.starts, week.ends) for week in weeks)))
    return of_days.select(lambda file: file.overlaps("cluster_id", first, last))


def build_week_rows(weeks: Sequence[ComputedWeek], clock: datetime) -> list[WeekRow]:
    """Return rows of gold/cluster_weeks without their revision columns."""
    return [
        {
            **add_raw_columns(week.raw, week.corrected, join_correction_ids(week.corrections)),
            "computed_at": clock,
        }
        for week in weeks
    ]


def count_minutes(weeks: Sequence[ComputedWeek]) -> dict[ClusterWeekKey, SilverCounts]:
    """Return how many minutes silver has of each week."""
    return {(week.raw["cluster_id"], week.raw["week"]): week.counts for week in weeks}
