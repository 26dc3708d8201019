"""What records say about their cluster: every one names its brokers and the ID that Kafka gave it."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import NamedTuple

import pyarrow as pa

from fleetgauge_pipelines.transforms.expected_brokers import number_lists
from fleetgauge_pipelines.transforms.lists import Lists


class Period(NamedTuple):
    """The first and the last minute with a record."""

    first: datetime
    last: datetime

    def extend(self, other: "Period") -> "Period":
        """Return the shortest period that contains both."""
        return Period(min(self.first, other.first), max(self.last, other.last))


@dataclass(frozen=True, slots=True)
class RecordSummary:
    """What the records of a cluster say that name the same Kafka cluster ID; empty if they know none."""

    cluster_id: str
    kafka_id: str
    records: int
    period: Period
    brokers: frozenset[int]


def summarize_records(records: pa.Table) -> list[RecordSummary]:
    """Return a summary for each cluster and Kafka cluster ID that records name."""
    named = records.select([*_NAMES, "minute", "broker_id"])
    listed, lists = number_lists(Lists.from_arrow(records["expected_brokers"]))
    named = named.append_column("listed", pa.array(listed))
    brokers: dict[tuple[str, str], set[int]] = defaultdict(set)
    for cluster_id, kafka_id, number in _list_distinct(named, "listed"):
        brokers[cluster_id, kafka_id] |= lists[number]
    for cluster_id, kafka_id, broker_id in _list_distinct(named, "broker_id"):
        brokers[cluster_id, kafka_id].add(broker_id)
    aggregates = [("minute", "min"), ("minute", "max"), ("minute", "count")]
    return [
        RecordSummary(
            row["cluster_id"],
            row["kafka_cluster_uuid"],
            row["minute_count"],
            Period(row["minute_min"], row["minute_max"]),
            frozenset(brokers[row["cluster_id"], row["kafka_cluster_uuid"]]),
        )
        for row in named.group_by(list(_NAMES)).aggregate(aggregates).to_pylist()
    ]


_NAMES = ("cluster_id", "kafka_cluster_uuid")
#: The columns of bronze that are summarized.
SUMMARY_COLUMNS = (*_NAMES, "minute", "expected_brokers", "broker_id")


def _list_distinct(named: pa.Table, column: str) -> Iterator[tuple[str, str, int]]:
    """Return the different values of a column for each cluster and Kafka cluster ID."""
    distinct = named.group_by([*_NAMES, column]).aggregate([])
    return zip(*(distinct[name].to_pylist() for name in (*_NAMES, column)), strict=True)


def merge_summaries(summaries: Iterable[RecordSummary]) -> list[RecordSummary]:
    """Return one summary for each cluster and Kafka cluster ID."""
    merged: dict[tuple[str, str], RecordSummary] = {}
    for summary in summaries:
        key = summary.cluster_id, summary.kafka_id
        before = merged.get(key)
        merged[key] = summary if before is None else _join(before, summary)
    return list(merged.values())


def _join(left: RecordSummary, right: RecordSummary) -> RecordSummary:
    return RecordSummary(
        left.cluster_id,
        left.kafka_id,
        left.records + right.records,
        left.period.extend(right.period),
        left.brokers | right.brokers,
    )


@dataclass(frozen=True, slots=True)
class StoredSummary:
    """A summary of records in bronze, and when the first of them was ingested."""

    summary: RecordSummary
    first_ingested_at: datetime


def summarize_stored(records: pa.Table) -> list[StoredSummary]:
    """Return a summary for each cluster and Kafka cluster ID that rows of bronze name."""
    ingested = records.group_by(list(_NAMES)).aggregate([("ingested_at", "min")])
    keys = zip(*(ingested[name].to_pylist() for name in _NAMES), strict=True)
    first = dict(zip(keys, ingested["ingested_at_min"].to_pylist(), strict=True))
    return [
        StoredSummary(summary, first[summary.cluster_id, summary.kafka_id])
        for summary in summarize_records(records)
    ]


def merge_stored(parts: Iterable[list[StoredSummary]]) -> list[StoredSummary]:
    """Return one summary for each cluster and Kafka cluster ID."""
    merged: dict[tuple[str, str], StoredSummary] = {}
    for stored in chain.from_iterable(parts):
        key = stored.summary.cluster_id, stored.summary.kafka_id
        before = merged.get(key)
        merged[key] = stored if before is None else _join_stored(before, stored)
    return list(merged.values())


def _join_stored(left: StoredSummary, right: StoredSummary) -> StoredSummary:
    first = min(left.first_ingested_at, right.first_ingested_at)
    return StoredSummary(_join(left.summary, right.summary), first)
