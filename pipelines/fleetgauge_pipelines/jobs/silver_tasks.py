"""What a task does: read the records of a unit, compute its minutes, and write their files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fleetgauge_core.tables import BROKER_MINUTES, CLUSTER_MINUTES, Table
from fleetgauge_pipelines.io.table_files import FILE, TableFiles, write_files
from fleetgauge_pipelines.jobs.changed_rows import ChangedRows, write_differences
from fleetgauge_pipelines.jobs.silver_units import list_spans
from fleetgauge_pipelines.jobs.span_reads import read_spans
from fleetgauge_pipelines.quality.silver_facts import SilverFacts, compute_silver_facts
from fleetgauge_pipelines.transforms.causes import BROKER_COLUMNS, recompute_causes
from fleetgauge_pipelines.transforms.lists import Flags
from fleetgauge_pipelines.transforms.records import COLUMNS, to_minutes
from fleetgauge_pipelines.transforms.silver import ClusterWork, ObservedMinutes, compute_silver


@dataclass(frozen=True, slots=True)
class SilverTask:
    """Works of a unit, the files with their records, and where both silver tables are.

    ``stored`` are the files of silver that may hold minutes of the works; it is empty if they hold none.
    """

    bronze: TableFiles
    stored: Mapping[Table, TableFiles]
    locations: Mapping[Table, str]
    works: tuple[ClusterWork, ...]
    agent_late_us: int


@dataclass(frozen=True, slots=True)
class ComputedUnit:
    """The changed rows of both tables, facts for the quality gate, and what was observed by cluster.

    Works ``left_out`` have to be computed after those that they follow: see compute_silver.
    """

    rows: Mapping[Table, ChangedRows]
    facts: SilverFacts
    observed: Mapping[str, ObservedMinutes]
    left_out: frozenset[str]


def compute_unit(task: SilverTask) -> ComputedUnit:
    """Compute the minutes of a unit, and write files of those rows that no table holds yet."""
    spans = list_spans(task.works)
    records = spans.select(task.bronze.read(COLUMNS, spans.where))
    silver = compute_silver(records, task.works, task.agent_late_us)
    computed = [work for work in task.works if work.span.cluster_id not in silver.left_out]
    rows = {
        table: _write_changed(task, computed, table, wanted)
        for table, wanted in (
            (BROKER_MINUTES, silver.broker_minutes),
            (CLUSTER_MINUTES, silver.cluster_minutes),
        )
    }
    facts = compute_silver_facts(silver.broker_minutes)
    return ComputedUnit(rows, facts, silver.observed, silver.left_out)


@dataclass(frozen=True, slots=True)
class CausesTask:
    """Works of a unit of stored minutes, whose causes are computed again, and where the changed ones go.

    Of the works only ``spans`` are computed: clusters with their first and last minutes, since 1970.
    """

    stored: Mapping[Table, TableFiles]
    location: str
    works: tuple[ClusterWork, ...]
    spans: tuple[tuple[str, int, int], ...]


def recompute_unit_causes(task: CausesTask) -> ChangedRows:
    """Compute the causes of stored minutes again, and write files of those that change."""
    spans = list_spans(task.works)
    minutes = read_spans(task.stored[CLUSTER_MINUTES], spans, (*CLUSTER_MINUTES.column_names, FILE))
    minutes = minutes.filter(pa.array(_are_within(minutes, task.spans)))
    brokers = read_spans(task.stored[BROKER_MINUTES], spans, BROKER_COLUMNS)
    return write_differences(
        task.location,
        CLUSTER_MINUTES,
        recompute_causes(minutes.drop_columns([FILE]), brokers, task.works),
        minutes,
    )


def _are_within(minutes: pa.Table, spans: Sequence[tuple[str, int, int]]) -> Flags:
    """Return which rows are in one of the spans."""
    numbers = {cluster_id: number for number, cluster_id in enumerate({span[0] for span in spans})}
    number = np.asarray(pc.index_in(minutes["cluster_id"], pa.array(numbers, pa.string())).fill_null(-1))
    at, within = to_minutes(minutes["minute"]), np.zeros(minutes.num_rows, np.bool_)
    for cluster_id, first, last in spans:
        within |= (number == numbers[cluster_id]) & (at >= first) & (at <= last)
    return within


def _write_changed(
    task: SilverTask, works: Sequence[ClusterWork], table: Table, wanted: pa.Table
) -> ChangedRows:
    """Write the wanted rows of works that no file holds; what is stored of other works is left alone."""
    location = task.locations[table]
    if table not in task.stored:
        return ChangedRows(tuple(write_files(location, wanted)), {}, wanted.num_rows)
    if not works:
        return ChangedRows((), {}, 0)
    stored = read_spans(task.stored[table], list_spans(works), (*table.column_names, FILE))
    return write_differences(location, table, wanted, stored)
