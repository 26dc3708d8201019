"""What a task does for weeks: read their minutes from silver, and compute levels and corrections."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fleetgauge_core.contract import Leg
from fleetgauge_core.slo.corrections import ExcludedRange
from fleetgauge_core.slo.minute_range import ceil_to_minute
from fleetgauge_core.slo.week_levels import apply_corrections
from fleetgauge_core.tables import BROKER_MINUTES, CLUSTER_MINUTES, Table
from fleetgauge_pipelines.io.table_files import TableFiles
from fleetgauge_pipelines.jobs.span_reads import read_spans
from fleetgauge_pipelines.quality.gold_facts import SilverCounts, count_silver_minutes
from fleetgauge_pipelines.transforms.cluster_weeks import (
    COLUMNS,
    OrderedRows,
    WeekDefinition,
    compute_cluster_week,
)
from fleetgauge_pipelines.transforms.evidence import (
    DecidingBroker,
    find_deciding_brokers,
    find_deciding_minutes,
)
from fleetgauge_pipelines.transforms.lists import Ints
from fleetgauge_pipelines.transforms.minute_spans import MinuteSpans
from fleetgauge_pipelines.transforms.records import to_minute, to_minutes, to_times

#: The columns of silver/broker_minutes from which a minute without some of its brokers is computed.
_BROKER_COLUMNS = (
    *("cluster_id", "broker_id", "leg", "minute", "measured", "attempted", "succeeded", "availability"),
    *("latency_p99_us", "latency_p99_censored_us"),
)


@dataclass(frozen=True, slots=True)
class WeeksTask:
    """Weeks of some clusters, the files with their minutes, and what corrections exclude of them."""

    silver: Mapping[Table, TableFiles]
    weeks: tuple[WeekDefinition, ...]
    exclusions: tuple[ExcludedRange, ...]


@dataclass(frozen=True, slots=True)
class ComputedWeek:
    """A week's levels without corrections and with them, the corrections that changed it, silver's counts.

    ``corrected`` is None if no correction changed the week, or if corrections exclude all of it.
    """

    raw: Mapping[str, Any]
    corrected: Mapping[str, Any] | None
    corrections: tuple[str, ...]
    counts: SilverCounts


def compute_weeks(task: WeeksTask) -> list[ComputedWeek]:
    """Return the weeks that have a minute."""
    minutes = _read_minutes(task)
    counts = count_silver_minutes(minutes, task.weeks)
    excluded, ordered = _Exclusions.read(task), OrderedRows(minutes)
    computed = []
    for week in task.weeks:
        of_week = ordered.select(week)
        if raw := compute_cluster_week(of_week, week):
            counted, applied = excluded.apply(week, of_week)
            corrected = compute_cluster_week(counted, week) if applied else None
            computed.append(ComputedWeek(raw, corrected, applied, counts[week.cluster_id, week.week]))
    return computed


def find_deciding(
    task: WeeksTask, rows: Mapping[tuple[str, date], Mapping[str, Any]]
) -> list[DecidingBroker]:
    """Return the broker-minutes that decided weeks; ``rows`` are their levels in gold/cluster_weeks."""
    excluded, ordered = _Exclusions.read(task), OrderedRows(_read_minutes(task))
    deciding = {}
    for week in task.weeks:
        counted, _ = excluded.apply(week, ordered.select(week))
        deciding[week] = find_deciding_minutes(week, rows[week.cluster_id, week.week], counted)
    client = OrderedRows(_read_measured(task, deciding.values()))
    return [
        broker
        for week, minutes in deciding.items()
        for broker in find_deciding_brokers(
            week, rows[week.cluster_id, week.week], minutes, client.select(week)
        )
    ]


def _read_minutes(task: WeeksTask) -> pa.Table:
    return read_spans(task.silver[CLUSTER_MINUTES], _list_spans(task), COLUMNS)


def _read_measured(task: WeeksTask, deciding: Iterable[Mapping[str, Ints]]) -> pa.Table:
    """Return the measured broker-minutes of the client leg in the minutes that decided a week."""
    minutes = [at for of_week in deciding for at in of_week.values()]
    times = to_times(np.unique(np.concatenate([np.empty(0, np.int64), *minutes])))
    is_measured = (pc.field("leg") == Leg.CLIENT.value) & pc.field("measured")
    where = is_measured & pc.field("minute").isin(times)
    return read_spans(task.silver[BROKER_MINUTES], _list_spans(task), _BROKER_COLUMNS, where)


def _list_spans(task: WeeksTask) -> MinuteSpans:
    """Return the span from the first to the last minute of each cluster's weeks."""
    spans: dict[str, tuple[datetime, datetime]] = {}
    for week in task.weeks:
        starts, ends = spans.get(week.cluster_id, (week.starts, week.ends))
        spans[week.cluster_id] = min(starts, week.starts), max(ends, week.ends)
    return MinuteSpans.of(spans)


@dataclass(frozen=True, slots=True)
class _Exclusions:
    """What corrections exclude of each cluster, and the rows of minutes of which a broker is excluded."""

    exclusions: Mapping[str, Sequence[ExcludedRange]]
    brokers: Mapping[str, Sequence[Mapping[str, Any]]]

    @classmethod
    def read(cls, task: WeeksTask) -> "_Exclusions":
        exclusions: dict[str, list[ExcludedRange]] = defaultdict(list)
        for range_ in task.exclusions:
            exclusions[range_.cluster_id].append(range_)
        of_brokers = [range_ for range_ in task.exclusions if range_.broker_id is not None]
        brokers: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
        for row in _read_brokers(task, of_brokers) if of_brokers else ():
            brokers[row["cluster_id"]].append(row)
        return cls(exclusions, brokers)

    def apply(self, week: WeekDefinition, minutes: pa.Table) -> tuple[pa.Table, tuple[str, ...]]:
        """Return the week's minutes that count, and the IDs of the corrections that excluded any of them.

        A minute of which brokers are excluded is computed from its others.
        """
        of_week = [
            range_
            for range_ in self.exclusions.get(week.cluster_id, ())
            if range_.starts < week.ends and week.starts < range_.ends
        ]
        at = to_minutes(minutes["minute"])
        excluded, partly = np.zeros(len(at), np.bool_), np.zeros(len(at), np.bool_)
        applied = set()
        for range_ in of_week:
            # A minute begins in the range.
            inside = (at >= _ceil_to_minute(range_.starts)) & (at < _ceil_to_minute(range_.ends))
            if range_.broker_id is None:
                excluded |= inside
            else:
                inside &= np.isin(at, self._list_minutes(range_))
                partly |= inside
            if inside.any():
                applied.add(range_.correction_id)
        if not applied:
            return minutes, ()
        partly &= ~excluded
        before = {row["minute"]: row for row in minutes.filter(pa.array(partly)).to_pylist()}
        rest = apply_corrections(before.values(), self.brokers.get(week.cluster_id, ()), of_week)
        counted = pa.concat_tables(
            [
                minutes.filter(pa.array(~excluded & ~partly)),
                pa.Table.from_pylist([before[row["minute"]] | row for row in rest], minutes.schema),
            ]
        )
        return counted.sort_by("minute"), tuple(applied)

    def _list_minutes(self, range_: ExcludedRange) -> Ints:
        """Return the minutes in which silver has a row of an excluded broker."""
        minutes = [
            to_minute(row["minute"])
            for row in self.brokers.get(range_.cluster_id, ())
            if row["broker_id"] == range_.broker_id and range_.starts <= row["minute"] < range_.ends
        ]
        return np.array(minutes, np.int64)


def _ceil_to_minute(at: datetime) -> int:
    return to_minute(ceil_to_minute(at))


def _read_brokers(task: WeeksTask, exclusions: Sequence[ExcludedRange]) -> list[dict[str, Any]]:
    """Return the client leg's rows of all brokers in the minutes of which one is excluded."""
    where = pc.scalar(False)
    for range_ in exclusions:
        where |= (
            (pc.field("cluster_id") == range_.cluster_id)
            & (pc.field("minute") >= range_.starts)
            & (pc.field("minute") < range_.ends)
        )
    is_client = pc.field("leg") == Leg.CLIENT.value
    rows: list[dict[str, Any]] = (
        task.silver[BROKER_MINUTES].read(_BROKER_COLUMNS, is_client & where).to_pylist()
    )
    return rows
