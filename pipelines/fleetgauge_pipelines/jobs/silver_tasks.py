"""What a task does: read the records of a unit, compute its minutes, and write their files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fleetgauge_core.tables import BROKER_MINUTES, CLUSTER_MINUTES, PROBE_MINUTES, Table
from fleetgauge_core.tables.arrow_schema import arrow_schema
from fleetgauge_pipelines.io.table_files import FILE, TableVersion, write_files
from fleetgauge_pipelines.jobs.changed_rows import ChangedRows, write_differences
from fleetgauge_pipelines.jobs.silver_units import Unit
from fleetgauge_pipelines.quality.silver_facts import SilverFacts, compute_silver_facts
from fleetgauge_pipelines.transforms.causes import BROKER_COLUMNS, recompute_causes
from fleetgauge_pipelines.transforms.lists import Flags
from fleetgauge_pipelines.transforms.records import COLUMNS, to_minutes, to_times
from fleetgauge_pipelines.transforms.silver import ObservedMinutes, compute_silver, outline_silver

_SAMPLES = ("ack_us", "e2e_us", "produce_failures", "consume_failures", "led_by")


@dataclass(frozen=True, slots=True)
class SilverTask:
    """A unit, the version of bronze that it is computed from, and both silver tables.

    ``stored`` are the versions of silver that may hold minutes of the unit; None if they hold none.
    """

    bronze: TableVersion
    locations: Mapping[Table, str]
    unit: Unit
    agent_late_us: int
    stored: Mapping[Table, TableVersion] | None = None


@dataclass(frozen=True, slots=True)
class ComputedUnit:
    """The changed rows of both tables, facts for the quality gate, and what was observed by cluster."""

    rows: Mapping[Table, ChangedRows]
    facts: SilverFacts
    observed: Mapping[str, ObservedMinutes]


def compute_unit(task: SilverTask) -> ComputedUnit:
    """Compute the minutes of a unit, and write files of those rows that no table holds yet."""
    silver = compute_silver(_read_records(task, COLUMNS), task.unit, task.agent_late_us)
    rows = {
        table: _write_changed(task, table, wanted)
        for table, wanted in (
            (BROKER_MINUTES, silver.broker_minutes),
            (CLUSTER_MINUTES, silver.cluster_minutes),
        )
    }
    return ComputedUnit(rows, compute_silver_facts(silver.broker_minutes), silver.observed)


@dataclass(frozen=True, slots=True)
class CausesTask:
    """A unit of stored minutes whose causes are computed again, and where the changed ones go.

    Of the unit only ``spans`` are computed: clusters with their first and last minutes, since 1970.
    """

    stored: Mapping[Table, TableVersion]
    location: str
    unit: Unit
    spans: tuple[tuple[str, int, int], ...]


def recompute_unit_causes(task: CausesTask) -> ChangedRows:
    """Compute the causes of stored minutes again, and write files of those that change."""
    minutes = _read_spans(task.stored[CLUSTER_MINUTES], task.unit, (*CLUSTER_MINUTES.column_names, FILE))
    minutes = minutes.filter(pa.array(_are_within(minutes, task.spans)))
    brokers = _read_spans(task.stored[BROKER_MINUTES], task.unit, BROKER_COLUMNS)
    return write_differences(
        task.location,
        CLUSTER_MINUTES,
        recompute_causes(minutes.drop_columns([FILE]), brokers, task.unit),
        minutes,
    )


def _are_within(minutes: pa.Table, spans: Sequence[tuple[str, int, int]]) -> Flags:
    """Return which rows are in one of the spans."""
    clusters = sorted({cluster_id for cluster_id, _, _ in spans})
    number = np.asarray(pc.index_in(minutes["cluster_id"], pa.array(clusters, pa.string())).fill_null(-1))
    at, within = to_minutes(minutes["minute"]), np.zeros(minutes.num_rows, np.bool_)
    for cluster_id, first, last in spans:
        within |= (number == clusters.index(cluster_id)) & (at >= first) & (at <= last)
    return within


def _write_changed(task: SilverTask, table: Table, wanted: pa.Table) -> ChangedRows:
    location = task.locations[table]
    if task.stored is None:
        return ChangedRows(tuple(write_files(location, wanted)), {}, wanted.num_rows)
    stored = _read_spans(task.stored[table], task.unit, (*table.column_names, FILE))
    return write_differences(location, table, wanted, stored)


def outline_unit(task: SilverTask) -> dict[str, ObservedMinutes]:
    """Return what is observed in a unit, without reading samples; nothing of a cluster without a record."""
    names = [name for name in COLUMNS if name not in _SAMPLES]
    return outline_silver(_read_records(task, names), task.unit, task.agent_late_us)


def _read_records(task: SilverTask, columns: Sequence[str]) -> pa.Table:
    """Return the records of a unit with all COLUMNS; those that are not read are NULL."""
    table, schema = _read_spans(task.bronze, task.unit, columns), arrow_schema(PROBE_MINUTES)
    for name in COLUMNS:
        if name not in columns:
            table = table.append_column(name, pa.nulls(table.num_rows, schema.field(name).type))
    return table


def _read_spans(version: TableVersion, unit: Unit, columns: Sequence[str]) -> pa.Table:
    """Return the rows of a table in the spans of a unit."""
    spans = [work.span for work in unit]
    first, last = min(span.first for span in spans), max(span.last for span in spans)
    lo, hi = to_times(np.array([first, last]))
    of_clusters = pc.field("cluster_id").isin([span.cluster_id for span in spans])
    where = of_clusters & (pc.field("minute") >= lo) & (pc.field("minute") <= hi)
    table = version.read(columns, _list_days(first, last), where)
    if all((span.first, span.last) == (first, last) for span in spans):
        return table
    number = np.asarray(pc.index_in(table["cluster_id"], pa.array([span.cluster_id for span in spans])))
    firsts, lasts = np.array([(span.first, span.last) for span in spans]).T
    minutes = to_minutes(table["minute"])
    return table.filter(pa.array((minutes >= firsts[number]) & (minutes <= lasts[number])))


def _list_days(first: int, last: int) -> list[date]:
    begin, end = (datetime.fromtimestamp(60 * minute, UTC).date() for minute in (first, last))
    return [begin + timedelta(days=number) for number in range((end - begin).days + 1)]
