"""Summaries and unlikely records are those that a look at one record after the other finds."""

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_core.contract.bounds import MAX_UNCONFIRMED_BROKERS
from fleetgauge_core.tables import PROBE_MINUTES
from fleetgauge_core.tables.arrow_schema import arrow_schema
from fleetgauge_pipelines.transforms.record_summaries import (
    Period,
    merge_stored,
    merge_summaries,
    summarize_records,
    summarize_stored,
)
from fleetgauge_pipelines.transforms.unlikely_records import (
    BROKER_COLUMNS,
    find_other_kafka_ids,
    find_unconfirmed_brokers,
    group_named_brokers,
    merge_named_brokers,
)

NOON = datetime(2026, 4, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
Record = dict[str, Any]
#: Lists of brokers that mostly agree, and some that are far too long.
LISTS = st.sampled_from([(1, 2, 3), (1, 2), (2, 1, 3), tuple(range(1, 15)), tuple(range(5, 30))])
RECORDS = st.lists(
    st.fixed_dictionaries(
        {
            "cluster_id": st.sampled_from("ab"),
            "kafka_cluster_uuid": st.sampled_from(["", "x", "y"]),
            "run_id": st.sampled_from("rs"),
            "sequence": st.integers(0, 4),
            "minute": st.integers(0, 9).map(lambda number: NOON + number * MINUTE),
            "expected_brokers": LISTS,
            "broker_id": st.integers(1, 40),
        }
    ),
    max_size=8,
)


def to_table(records: list[Record]) -> pa.Table:
    schema = arrow_schema(PROBE_MINUTES)
    names = ("kafka_cluster_uuid", "minute", "ingested_at", *BROKER_COLUMNS)
    rows = [record | {"ingested_at": record["minute"] + MINUTE} for record in records]
    return pa.Table.from_pylist(rows, pa.schema([schema.field(name) for name in names]))


def name_brokers(record: Record) -> frozenset[int]:
    return frozenset((*record["expected_brokers"], record["broker_id"]))


@given(RECORDS, RECORDS, st.sets(st.sampled_from("ab")), st.sets(st.integers(0, 7)), st.integers(0, 8))
def test_brokers_that_one_record_alone_names_are_unconfirmed(
    records: list[Record], stored: list[Record], clusters: set[str], refused: set[int], split: int
) -> None:
    without = {row for row in refused if row < len(records)}
    asked = [
        (row, record)
        for row, record in enumerate(records)
        if row not in without and record["cluster_id"] in clusters
    ]
    naming: dict[tuple[str, int], set[Any]] = defaultdict(set)
    identities: dict[str, set[Any]] = defaultdict(set)
    for record in (*(record for _, record in asked), *stored):
        identity = record["run_id"], record["sequence"]
        identities[record["cluster_id"]].add(identity)
        for broker in name_brokers(record):
            naming[record["cluster_id"], broker].add(identity)
    wanted = {}
    for row, record in asked:
        cluster_id = record["cluster_id"]
        alone = sum(len(naming[cluster_id, broker]) == 1 for broker in name_brokers(record))
        if alone > MAX_UNCONFIRMED_BROKERS and len(identities[cluster_id]) > 1:
            wanted[row] = f"names {alone} brokers that no other record names, at most 8"

    parts = (group_named_brokers(to_table(part)) for part in (stored[:split], stored[split:]))
    breaches = find_unconfirmed_brokers(to_table(records), merge_named_brokers(parts), clusters, without)

    assert {row: detail for row, (_, detail) in breaches.items()} == wanted


@given(RECORDS, st.integers(0, 8))
def test_summaries_of_two_parts_are_those_of_all_records(records: list[Record], split: int) -> None:
    of_group: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for record in records:
        of_group[record["cluster_id"], record["kafka_cluster_uuid"]].append(record)
    parts = (records[:split], records[split:])
    summaries = merge_summaries(summary for part in parts for summary in summarize_records(to_table(part)))
    stored = merge_stored(summarize_stored(to_table(part)) for part in parts)
    assert [each.summary for each in stored] == summaries
    assert all(each.first_ingested_at == each.summary.period.first + MINUTE for each in stored)
    assert {(summary.cluster_id, summary.kafka_id) for summary in summaries} == of_group.keys()
    for summary in summaries:
        group = of_group[summary.cluster_id, summary.kafka_id]
        minutes = [record["minute"] for record in group]
        assert summary.period == Period(min(minutes), max(minutes))
        assert (summary.records, summary.brokers) == (
            len(group),
            frozenset().union(*(name_brokers(record) for record in group)),
        )


def test_another_kafka_id_is_refused_until_some_time_after_the_one_before() -> None:
    kafka_ids = {"a": {"x": Period(NOON, NOON + 5 * MINUTE)}}
    record = {"run_id": "r", "sequence": 0, "expected_brokers": (1,), "broker_id": 1}
    records = [
        record | {"cluster_id": cluster_id, "kafka_cluster_uuid": kafka_id, "minute": NOON + minute * MINUTE}
        for cluster_id, kafka_id, minute in (
            *(("a", "x", 3), ("a", "y", 3), ("a", "y", 7), ("a", "y", 8)),
            *(("a", "", 3), ("b", "y", 3)),
        )
    ]
    breaches = find_other_kafka_ids(to_table(records), kafka_ids, 2 * MINUTE)
    assert breaches == dict.fromkeys(
        (1, 2), ("other_kafka_cluster", "kafka_cluster_uuid is y, that of a is x")
    )
