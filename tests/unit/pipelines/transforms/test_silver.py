"""Silver of random fleets, compared with the oracle's plain Python."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from fleetgauge_core.fleet import Fleet
from fleetgauge_core.tables import BROKER_MINUTES, CLUSTER_MINUTES, PROBE_MINUTES
from fleetgauge_core.tables.arrow_schema import arrow_schema
from fleetgauge_pipelines.jobs.silver_units import Unit, resume_units
from fleetgauge_pipelines.transforms.expected_brokers import ClusterSpan
from fleetgauge_pipelines.transforms.records import COLUMNS
from fleetgauge_pipelines.transforms.silver import ClusterWork, SilverMinutes, compute_silver
from tests.oracle.compare import find_differences
from tests.oracle.oracle import (
    ClusterSettings,
    ProbeRecord,
    Tables,
    drop_lone_beginnings,
    evaluate,
    read_settings,
)
from tests.oracle.random_fleets import random_lake

BRONZE = pa.schema([arrow_schema(PROBE_MINUTES).field(name) for name in COLUMNS])


def to_minute(at: datetime) -> int:
    """Return the minute of a time; of one within a minute, the next one."""
    return -(-int(at.timestamp() * 1_000_000) // 60_000_000)


def plan_work(cluster: ClusterSettings, records: Sequence[ProbeRecord]) -> ClusterWork | None:
    minutes = [to_minute(record["minute"]) for record in records]
    if not minutes:
        return None
    since = to_minute(cluster.since) if cluster.since else None
    first, last = min(minutes) if since is None else since, max(minutes)
    if cluster.until is not None:
        last = min(last, to_minute(cluster.until) - 1)
    initial = None
    if since is not None:
        of_first = [record for record in records if to_minute(record["minute"]) == min(minutes)]
        initial = {id_ for record in of_first for id_ in (*record["expected_brokers"], record["broker_id"])}
    span = ClusterSpan(cluster.cluster_id, first, last, tuple(initial) if initial else None, cluster.retired)
    return ClusterWork(span, cluster.latency_objective_us, since=since)


@dataclass(frozen=True)
class Fleets:
    """Random fleets: their records in the spans of the works, and what the oracle makes of them."""

    records: pa.Table
    works: list[ClusterWork]
    agent_late_us: int
    expected: Tables


def draw_fleets(seed: int) -> Fleets:
    lake = random_lake(seed, fleets=25)
    settings = read_settings(Fleet.model_validate(lake.document))
    clock = lake.deliveries[-1].clock
    records = drop_lone_beginnings(
        (record for delivery in lake.deliveries for record in delivery.records), settings, clock
    )
    by_cluster = defaultdict(list)
    for record in records:
        by_cluster[record["cluster_id"]].append(record)
    works = [
        work
        for cluster in settings.clusters
        if (work := plan_work(cluster, by_cluster[cluster.cluster_id])) and work.span.first <= work.span.last
    ]
    return Fleets(
        select(
            pa.Table.from_pylist([{name: record[name] for name in COLUMNS} for record in records], BRONZE),
            works,
        ),
        works,
        settings.agent_late_us,
        evaluate(records, settings, clock),
    )


def select(records: pa.Table, works: Sequence[ClusterWork]) -> pa.Table:
    """Return the records in the spans of works."""
    spans = {work.span.cluster_id: work.span for work in works}
    wanted = [
        (span := spans.get(cluster_id)) is not None and span.first <= to_minute(at) <= span.last
        for cluster_id, at in zip(
            records["cluster_id"].to_pylist(), records["minute"].to_pylist(), strict=True
        )
    ]
    return records.filter(pa.array(wanted))


@pytest.mark.parametrize("seed", range(4))
def test_silver_of_random_fleets_equals_the_oracle_s(seed: int) -> None:
    fleets = draw_fleets(seed)
    silver = compute_silver(fleets.records, fleets.works, fleets.agent_late_us)
    for table, expected, rows in (
        (BROKER_MINUTES, fleets.expected.broker_minutes, silver.broker_minutes),
        (CLUSTER_MINUTES, fleets.expected.cluster_minutes, silver.cluster_minutes),
    ):
        assert not find_differences(table, expected, to_rows(rows))


@pytest.mark.parametrize("seed", range(4))
def test_silver_in_units_that_follow_each_other_is_the_same(seed: int) -> None:
    fleets, rng = draw_fleets(seed), Random(seed)
    whole = compute_silver(fleets.records, fleets.works, fleets.agent_late_us)
    left_out = 0
    for work in fleets.works:
        first, last = work.span.first, work.span.last
        cuts = sorted(rng.sample(range(first + 1, last + 1), min(2, last - first)))
        spans = zip([first, *cuts], [*(cut - 1 for cut in cuts), last], strict=True)
        units = [Unit((cut(work, begin, end),), frozenset()) for begin, end in spans]
        parts = [compute(fleets, unit) for unit in units]
        left_out += sum(len(part.left_out) for part in parts)
        rest = resume_units(units, [part.observed for part in parts], [part.left_out for part in parts])
        parts += [compute(fleets, unit) for unit in rest if unit.works]
        of_cluster = pc.field("cluster_id") == work.span.cluster_id
        for name in ("broker_minutes", "cluster_minutes"):
            rows = pa.concat_tables([getattr(part, name) for part in parts])
            assert sort(rows) == sort(getattr(whole, name).filter(of_cluster))
    assert left_out


def compute(fleets: Fleets, unit: Unit) -> SilverMinutes:
    return compute_silver(select(fleets.records, unit.works), unit.works, fleets.agent_late_us)


def cut(work: ClusterWork, first: int, last: int) -> ClusterWork:
    """Return some minutes of a work."""
    span = replace(work.span, first=first, last=last)
    if first == work.span.first:
        return replace(work, span=span)
    return replace(work, span=replace(span, initial_brokers=None), follows=True)


def sort(rows: pa.Table) -> list[dict[str, Any]]:
    keys = [name for name in ("minute", "broker_id", "leg") if name in rows.column_names]
    return to_rows(rows.sort_by([(name, "ascending") for name in keys]))


def to_rows(table: pa.Table) -> list[dict[str, Any]]:
    return [
        {name: dict(value) if name == "failures" else value for name, value in row.items()}
        for row in table.to_pylist()
    ]
