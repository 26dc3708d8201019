"""Both silver tables of some clusters' minutes from the records of these minutes."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pyarrow as pa

from fleetgauge_core.contract import Leg
from fleetgauge_core.slo.causes import CauseInterval
from fleetgauge_core.tables import BROKER_MINUTES, CLUSTER_MINUTES
from fleetgauge_core.tables.arrow_schema import arrow_schema
from fleetgauge_pipelines.transforms.broker_minutes import (
    BrokerMinutes,
    Levels,
    build_failure_maps,
    compute_levels,
    mask_all,
    pool_records,
)
from fleetgauge_pipelines.transforms.cluster_minutes import ClusterMinutes, compute_cluster_minutes
from fleetgauge_pipelines.transforms.expected_brokers import (
    ClusterSpan,
    ExpectedMinutes,
    SilentBrokers,
    find_expected_minutes,
    find_silent_brokers,
)
from fleetgauge_pipelines.transforms.lists import Flags, Ints, pair
from fleetgauge_pipelines.transforms.records import SUMS, Records, read_records, to_times


@dataclass(frozen=True, slots=True)
class ClusterWork:
    """What is to be computed of a cluster.

    Minutes count from ``since``, or from ``first_minute`` (the first one that silver holds) or the first
    measured one, whichever is earlier; those before are left out.

    A work that ``follows`` another one of its cluster does not know which brokers that ends with, and whether
    a minute of it was measured.
    """

    span: ClusterSpan
    latency_objective_us: int
    intervals: tuple[CauseInterval, ...] = ()
    since: int | None = None
    first_minute: int | None = None
    follows: bool = False


@dataclass(frozen=True, slots=True)
class ObservedMinutes:
    """A cluster's first measured minute, if there is one, its last minute and the brokers expected then."""

    first_measured: int | None
    last: int
    brokers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SilverMinutes:
    """Rows of both tables in the order of their columns, and what was observed, by cluster.

    Of the clusters ``left_out`` there is no row. What was observed of them is that of their records, and
    nothing of a cluster without a record.
    """

    broker_minutes: pa.Table
    cluster_minutes: pa.Table
    observed: dict[str, ObservedMinutes]
    left_out: frozenset[str] = frozenset()


def compute_silver(table: pa.Table, works: Sequence[ClusterWork], agent_late_us: int) -> SilverMinutes:
    """Return the minutes of clusters; ``table`` has the rows of bronze (records.COLUMNS) in their spans.

    A work that follows another one is left out unless its first minute is measured: only then it needs
    nothing of the minutes before.
    """
    clusters = [work.span.cluster_id for work in works]
    records = read_records(table, clusters, agent_late_us)
    expected = find_expected_minutes(records, [work.span for work in works])
    active = records.take(~_is_retired(records, works))
    brokers = pool_records(active)
    levels = compute_levels(brokers)
    silent = find_silent_brokers(expected, brokers)
    minutes = compute_cluster_minutes(
        expected,
        brokers,
        levels,
        [work.latency_objective_us for work in works],
        [work.intervals for work in works],
    )
    observed = _observe(expected, brokers, clusters)
    left_out = frozenset(
        work.span.cluster_id for work in works if work.follows and not _is_measured_at_start(work, observed)
    )
    counts_from = _find_first_counted(works, observed)
    counts_from[[cluster in left_out for cluster in clusters]] = _NEVER
    broker_table = pa.concat_tables(
        [
            _build_measured(brokers, levels, clusters).filter(
                pa.array(brokers.minute >= counts_from[brokers.cluster])
            ),
            _build_silent(expected, silent, clusters, counts_from),
        ]
    )
    counted = pa.array((expected.minute >= counts_from[expected.cluster]) & (expected.counts > 0))
    cluster_table = _build_cluster_minutes(expected, minutes, clusters).filter(counted)
    return SilverMinutes(broker_table, cluster_table, observed, left_out)


def _is_measured_at_start(work: ClusterWork, observed: dict[str, ObservedMinutes]) -> bool:
    of_cluster = observed.get(work.span.cluster_id)
    return of_cluster is not None and of_cluster.first_measured == work.span.first


def _is_retired(records: Records, works: Sequence[ClusterWork]) -> Flags:
    retired = [(number, broker) for number, work in enumerate(works) for broker in work.span.retired]
    if not retired:
        return np.zeros(len(records), np.bool_)
    clusters, brokers = np.array(retired, np.int64).T
    return np.isin(pair(records.cluster, records.broker), pair(clusters, brokers))


def _observe(
    expected: ExpectedMinutes, brokers: BrokerMinutes, clusters: Sequence[str]
) -> dict[str, ObservedMinutes]:
    measured = brokers.is_measured & ~brokers.is_leader
    first = np.full(len(clusters), _NEVER)
    np.minimum.at(first, brokers.cluster[measured], brokers.minute[measured])
    ends = np.searchsorted(expected.cluster, np.arange(len(clusters)), side="right")
    begins = np.searchsorted(expected.cluster, np.arange(len(clusters)))
    return {
        cluster: ObservedMinutes(
            int(first[number]) if first[number] != _NEVER else None,
            int(expected.minute[end - 1]),
            expected.sets[expected.brokers[end - 1]],
        )
        for number, (cluster, begin, end) in enumerate(zip(clusters, begins, ends, strict=True))
        if begin < end
    }


_NEVER = 2**62


def _find_first_counted(works: Sequence[ClusterWork], observed: dict[str, ObservedMinutes]) -> Ints:
    """Return each cluster's first minute that counts, or a minute that never comes."""
    return np.array([_first_counted(work, observed.get(work.span.cluster_id)) for work in works], np.int64)


def _first_counted(work: ClusterWork, observed: ObservedMinutes | None) -> int:
    if work.since is not None:
        return work.since
    first_measured = observed.first_measured if observed else None
    return min(
        (minute for minute in (work.first_minute, first_measured) if minute is not None), default=_NEVER
    )


def _build_measured(brokers: BrokerMinutes, levels: Levels, clusters: Sequence[str]) -> pa.Table:
    columns = {
        "cluster_id": _name_clusters(brokers.cluster, clusters),
        "broker_id": brokers.broker,
        "leg": pa.array(_LEGS).take(pa.array(brokers.is_leader.astype(np.int8))),
        "minute": to_times(brokers.minute),
        **dict(zip(SUMS, brokers.sums, strict=True)),
        "succeeded": brokers.succeeded,
        **{field.name: getattr(levels, field.name) for field in fields(levels)},
        "failures": build_failure_maps(brokers.failures, len(brokers)),
        "vantages": brokers.vantages,
        "agent_late": brokers.is_agent_late,
        "measured": brokers.is_measured,
        "led_by": brokers.led_by.to_arrow(),
    }
    return _build_table(columns, _BROKER_MINUTES)


_BROKER_MINUTES, _CLUSTER_MINUTES = arrow_schema(BROKER_MINUTES), arrow_schema(CLUSTER_MINUTES)
_LEGS = [Leg.CLIENT.value, Leg.LEADER.value]


def _build_silent(
    expected: ExpectedMinutes, silent: SilentBrokers, clusters: Sequence[str], counts_from: Ints
) -> pa.Table:
    """Return the rows of expected brokers without a record: counts are 0, and nothing is measured."""
    minute, cluster = expected.minute[silent.row], expected.cluster[silent.row]
    counted = np.flatnonzero(minute >= counts_from[cluster])
    rows = len(counted)
    no_items = pa.array(np.zeros(rows + 1, np.int32))
    zeros = np.zeros(rows, np.int64)
    columns = {
        "cluster_id": _name_clusters(cluster[counted], clusters),
        "broker_id": silent.broker[counted],
        "leg": pa.array(_LEGS).take(pa.array(silent.is_leader[counted].astype(np.int8))),
        "minute": to_times(minute[counted]),
        **dict.fromkeys((*SUMS, "succeeded", "vantages"), zeros),
        **{field.name: mask_all(rows) for field in fields(Levels)},
        "failures": pa.MapArray.from_arrays(no_items, pa.array([], pa.string()), pa.array([], pa.int32())),
        "agent_late": np.zeros(rows, np.bool_),
        "measured": np.zeros(rows, np.bool_),
        "led_by": pa.ListArray.from_arrays(no_items, pa.array([], pa.int32())),
    }
    return _build_table(columns, _BROKER_MINUTES)


def _build_cluster_minutes(
    expected: ExpectedMinutes, minutes: ClusterMinutes, clusters: Sequence[str]
) -> pa.Table:
    columns = {
        "cluster_id": _name_clusters(expected.cluster, clusters),
        "minute": to_times(expected.minute),
        **{field.name: getattr(minutes, field.name) for field in fields(minutes)},
    }
    return _build_table(columns, _CLUSTER_MINUTES)


def _name_clusters(numbers: Ints, clusters: Sequence[str]) -> pa.Array:
    return pa.array(clusters, pa.string()).take(pa.array(numbers))


def _build_table(columns: dict[str, Any], schema: pa.Schema) -> pa.Table:
    """Return columns as a table of silver; its day is that of the minute."""
    columns = columns | {"day": columns["minute"].cast(pa.date32())}
    arrays = [_to_arrow(columns[field.name], field.type) for field in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


def _to_arrow(values: Any, type_: pa.DataType) -> pa.Array:
    if isinstance(values, np.ma.MaskedArray):
        values = pa.array(values.data, mask=np.ma.getmaskarray(values))
    elif not isinstance(values, pa.Array):
        values = pa.array(values)
    return values.cast(type_)
