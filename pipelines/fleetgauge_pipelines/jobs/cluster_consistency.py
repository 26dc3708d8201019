"""Compares what a batch's records say about their clusters with what the clusters' other records say."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from fleetgauge_core.contract.bounds import MAX_UNCONFIRMED_BROKERS
from fleetgauge_core.slo.utc_days import list_utc_days
from fleetgauge_core.tables import PROBE_MINUTES
from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.transforms.contract_rules import Breach
from fleetgauge_pipelines.transforms.record_summaries import (
    SUMMARY_COLUMNS,
    Period,
    RecordSummary,
    merge_stored,
    summarize_stored,
)
from fleetgauge_pipelines.transforms.unlikely_records import (
    BROKER_COLUMNS,
    KAFKA_ID_COLUMNS,
    NamedBrokers,
    find_other_kafka_ids,
    find_unconfirmed_brokers,
    group_named_brokers,
    merge_named_brokers,
)

T = TypeVar("T")

#: A cluster that was set up anew keeps its name and has another Kafka cluster ID. It is believed this long
#: after the last record of the one before; until then an agent may only be connected to the wrong cluster.
SUCCEEDS_AFTER = timedelta(minutes=2)
#: Records so near in time are about the same cluster.
_NEAR = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class ClusterHistory:
    """The Kafka cluster IDs that a cluster has had, each with the minutes of its records, and its brokers.

    ``covered``: the minutes whose records have been read.
    """

    covered: Period
    kafka_ids: Mapping[str, Period] = field(default_factory=dict)
    brokers: frozenset[int] = frozenset()

    def add_summaries(self, summaries: Iterable[RecordSummary]) -> "ClusterHistory":
        """Return the history with accepted records too."""
        kafka_ids, brokers, covered = dict(self.kafka_ids), self.brokers, self.covered
        for summary in summaries:
            brokers |= summary.brokers
            covered = covered.extend(summary.period)
            # An agent that has not reached its cluster yet names none.
            if summary.kafka_id:
                kafka_ids[summary.kafka_id] = summary.period.extend(
                    kafka_ids.get(summary.kafka_id, summary.period)
                )
        return ClusterHistory(covered, kafka_ids, brokers)


def find_disputed_kafka_ids(
    history: ClusterHistory, summaries: Sequence[RecordSummary]
) -> Mapping[str, Period]:
    """Return the Kafka cluster IDs in a cluster's history, if a record of the batch may contradict them.

    The result is empty if no record names another ID than the one in the history at its minute. Only the ID
    that was seen last goes on with the batch: an earlier one that comes back after it was followed is that of
    an agent which was forgotten.
    """
    periods = dict(history.kafka_ids) or history.add_summaries(_select_heaviest(summaries)).kafka_ids
    present = max(periods, key=lambda kafka_id: periods[kafka_id].last, default=None)
    periods = {
        kafka_id: summary.period.extend(period)
        if kafka_id == present and (summary := _find_summary(summaries, kafka_id))
        else period
        for kafka_id, period in periods.items()
    }
    is_disputed = any(
        summary.kafka_id != other
        and period.first <= summary.period.last
        and summary.period.first <= period.last + SUCCEEDS_AFTER
        for summary in summaries
        if summary.kafka_id
        for other, period in periods.items()
    )
    return periods if is_disputed else {}


def _find_summary(summaries: Iterable[RecordSummary], kafka_id: str) -> RecordSummary | None:
    return next((summary for summary in summaries if summary.kafka_id == kafka_id), None)


def _select_heaviest(summaries: Iterable[RecordSummary]) -> list[RecordSummary]:
    """Return the summary of most records, among those that name an ID; an empty list if none does."""
    named = [summary for summary in summaries if summary.kafka_id]
    return sorted(named, key=lambda summary: (-summary.records, summary.period.first, summary.kafka_id))[:1]


class ClusterConsistency:
    """Compares the records of each batch with those accepted before, by cluster."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._histories: dict[str, ClusterHistory] = {}
        self._has_stored_records = False

    def open(self) -> None:
        """Take over that bronze may hold records, which are read when a batch has some of their cluster."""
        self._has_stored_records = True

    def find_unlikely(
        self, read_columns: Callable[[Sequence[str]], pa.Table], summaries: Sequence[RecordSummary]
    ) -> dict[int, Breach]:
        """Return the records that contradict others of their cluster, by their rows.

        ``read_columns`` returns columns of the batch's valid records, of which ``summaries`` are.
        """
        by_cluster = _group(summaries)
        self._read_histories(by_cluster)
        disputed = {
            cluster_id: kafka_ids
            for cluster_id, of_cluster in by_cluster.items()
            if (kafka_ids := find_disputed_kafka_ids(self._histories[cluster_id], of_cluster))
        }
        unconfirmed = [
            cluster_id
            for cluster_id, of_cluster in by_cluster.items()
            if len(_name_brokers(of_cluster) - self._histories[cluster_id].brokers) > MAX_UNCONFIRMED_BROKERS
        ]
        unlikely: dict[int, Breach] = {}
        if disputed:
            unlikely |= find_other_kafka_ids(read_columns(KAFKA_ID_COLUMNS), disputed, SUCCEEDS_AFTER)
        if unconfirmed:
            stored = self._read_named_brokers({name: _find_near(by_cluster[name]) for name in unconfirmed})
            unlikely |= find_unconfirmed_brokers(
                read_columns(BROKER_COLUMNS), stored, unconfirmed, set(unlikely)
            )
        return unlikely

    def add_summaries(self, summaries: Sequence[RecordSummary]) -> None:
        """Add accepted records to the histories of their clusters."""
        for cluster_id, of_cluster in _group(summaries).items():
            self._histories[cluster_id] = self._histories[cluster_id].add_summaries(of_cluster)

    def _read_histories(self, summaries: Mapping[str, Sequence[RecordSummary]]) -> None:
        """Read the stored records of about the same time, unless they have been read."""
        unread = {
            cluster_id: near
            for cluster_id, of_cluster in summaries.items()
            if not self._covers(cluster_id, near := _find_near(of_cluster))
        }
        for cluster_id, near in unread.items():
            history = self._histories.get(cluster_id, ClusterHistory(near))
            self._histories[cluster_id] = replace(history, covered=history.covered.extend(near))
        if not unread or not self._has_stored_records:
            return
        stored = self._scan_near(unread, (*SUMMARY_COLUMNS, "ingested_at"), summarize_stored, merge_stored)
        for each in sorted(stored, key=lambda each: each.first_ingested_at):
            cluster_id = each.summary.cluster_id
            self._histories[cluster_id] = self._histories[cluster_id].add_summaries([each.summary])

    def _read_named_brokers(self, periods: Mapping[str, Period]) -> list[NamedBrokers]:
        """Return the brokers that the stored records of clusters name in the days of these periods."""
        return self._scan_near(periods, BROKER_COLUMNS, group_named_brokers, merge_named_brokers)

    def _covers(self, cluster_id: str, near: Period) -> bool:
        history = self._histories.get(cluster_id)
        # What follows within a day of the last batch is near to it.
        return (
            history is not None
            and history.covered.first <= near.first
            and near.last <= history.covered.last + 2 * _NEAR
        )

    def _scan_near(
        self,
        periods: Mapping[str, Period],
        columns: Sequence[str],
        summarize: Callable[[pa.Table], T],
        merge: Callable[[Iterable[T]], T],
    ) -> T:
        """Return what the stored records of clusters say in the days of these periods."""
        files = self._lake.list_files(PROBE_MINUTES, list_utc_days(periods.values()))
        of_clusters = pc.field("cluster_id").isin(pa.array(sorted(periods), pa.string()))
        return self._lake.scan(files, columns, of_clusters, summarize, merge)


def _group(summaries: Sequence[RecordSummary]) -> dict[str, list[RecordSummary]]:
    by_cluster: dict[str, list[RecordSummary]] = {}
    for summary in summaries:
        by_cluster.setdefault(summary.cluster_id, []).append(summary)
    return by_cluster


def _find_near(summaries: Sequence[RecordSummary]) -> Period:
    """Return the minutes of the records, and a day before and after them."""
    return Period(
        min(summary.period.first for summary in summaries) - _NEAR,
        max(summary.period.last for summary in summaries) + _NEAR,
    )


def _name_brokers(summaries: Sequence[RecordSummary]) -> frozenset[int]:
    return frozenset().union(*(summary.brokers for summary in summaries))
