"""Evidence of closed weeks: the samples of the minutes that decided a week, kept after bronze has expired."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from fleetgauge_core.fleet import Fleet
from fleetgauge_core.slo.utc_days import list_utc_days
from fleetgauge_core.tables import EVIDENCE, PROBE_MINUTES
from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.io.table_files import FILE, TableFiles
from fleetgauge_pipelines.io.tasks import run_tasks
from fleetgauge_pipelines.jobs.changed_rows import ChangedRows, commit_changes, write_differences
from fleetgauge_pipelines.jobs.week_tasks import WeeksTask, find_deciding
from fleetgauge_pipelines.jobs.weeks import CorrectedWeeks
from fleetgauge_pipelines.transforms.cluster_weeks import WeekDefinition
from fleetgauge_pipelines.transforms.evidence import DecidingBroker, collect_samples
from fleetgauge_pipelines.transforms.records import COLUMNS, to_times

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _EvidenceTables:
    """The tables that evidence is collected from and stored in.

    Evidence of minutes before ``kept_from``, whose records have expired, stays as it is.
    """

    bronze: TableFiles
    evidence: TableFiles
    kept_from: datetime | None
    agent_late_us: int


class EvidenceWriter:
    """Keeps gold/evidence in step with the closed weeks."""

    def __init__(self, spark: SparkSession, lake: Lake, fleet: Fleet) -> None:
        self._spark = spark
        self._lake = lake
        self._agent_late_us = round(fleet.agent_late_ms * 1000)

    def update(
        self, weeks: CorrectedWeeks, definitions: Sequence[WeekDefinition], changed: Sequence[Row]
    ) -> int:
        """Store the samples that decided the closed ones of the ``changed`` rows of gold/cluster_weeks.

        Return how many rows of gold/evidence changed.
        """
        closed = {(row["cluster_id"], row["week"]): row for row in changed if row["closed"]}
        if not closed:
            return 0
        of_closed = [week for week in definitions if (week.cluster_id, week.week) in closed]
        days = list_utc_days((week.starts, week.ends) for week in of_closed)
        tables = _EvidenceTables(
            self._lake.list_files(PROBE_MINUTES, days),
            self._lake.list_files(EVIDENCE),
            self._lake.kept_from(PROBE_MINUTES),
            self._agent_late_us,
        )
        tasks = list(weeks.split(of_closed))
        parts = run_tasks(self._spark, partial(_collect, tables, closed), tasks)
        return commit_changes(self._spark, self._lake, EVIDENCE, parts)


def _collect(tables: _EvidenceTables, closed: Mapping[tuple[str, date], Row], task: WeeksTask) -> ChangedRows:
    """Find what decided the weeks of a task, and write the samples that are not stored."""
    deciding = find_deciding(task, closed)
    wanted = collect_samples(_read_records(tables, deciding), deciding, tables.agent_late_us)
    is_of_week = pc.scalar(False)
    for week in task.weeks:
        is_of_week |= (pc.field("cluster_id") == week.cluster_id) & (pc.field("week") == week.week)
    if tables.kept_from is not None:
        is_of_week &= pc.field("minute") >= tables.kept_from
    stored = tables.evidence.read((*EVIDENCE.column_names, FILE), is_of_week)
    return write_differences(tables.evidence.location, EVIDENCE, wanted, stored)


def _read_records(tables: _EvidenceTables, deciding: Sequence[DecidingBroker]) -> pa.Table:
    clusters = pa.array(sorted({each.week.cluster_id for each in deciding}), pa.string())
    times = to_times(np.array(sorted({each.minute for each in deciding}), np.int64))
    where = pc.field("cluster_id").isin(clusters) & pc.field("minute").isin(times)
    days = {day.as_py() for day in times.cast(pa.date32()).unique()}
    return tables.bronze.of_days(days).read(COLUMNS, where)
