"""The oracle's entry point: computes the rows of silver and gold from records, settings and a clock.

    tables = evaluate(random_week(seed=7), settings, clock)
    assert not differences(BROKER_MINUTES, tables.broker_minutes, rows_of_the_pipeline)

Rows are dicts with every column of their table except the volatile ones. Minutes are aware UTC datetimes,
weeks and days are dates, ``*_us`` and counts are ints.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from tests.oracle.cause_rules import (
    compute_burn_causes,
    find_cause,
    list_actions,
    list_changes,
    list_episodes,
)
from tests.oracle.correction_rules import Occurrence, apply_corrections, find_occurrences
from tests.oracle.minute_rules import (
    BrokerMinute,
    ProbeRecord,
    Row,
    compute_broker_minutes,
    compute_cluster_minutes,
    drop_duplicates,
    drop_lone_beginning,
)
from tests.oracle.operations import NO_OPERATIONS, Operations
from tests.oracle.settings import ClusterSettings, Settings, read_settings
from tests.oracle.week_rules import compute_cluster_weeks, compute_fleet_weeks

__all__ = [
    "ClusterSettings",
    "Operations",
    "ProbeRecord",
    "Row",
    "Settings",
    "Tables",
    "drop_lone_beginnings",
    "evaluate",
    "read_settings",
]


@dataclass(frozen=True, slots=True)
class Tables:
    """The rows of the tables, in no particular order."""

    broker_minutes: list[Row]
    cluster_minutes: list[Row]
    cluster_weeks: list[Row]
    fleet_weeks: list[Row]
    burn_causes: list[Row]


def drop_lone_beginnings(
    records: Iterable[ProbeRecord], settings: Settings, clock: datetime
) -> list[ProbeRecord]:
    """Return the records from which the tables are computed, if all came at the clock."""
    by_cluster: dict[str, list[ProbeRecord]] = defaultdict(list)
    for record in drop_duplicates(records):
        by_cluster[record["cluster_id"]].append(record)
    return [
        record
        for cluster in settings.clusters
        for record in drop_lone_beginning(by_cluster[cluster.cluster_id], cluster, clock)
    ]


def evaluate(
    records: Iterable[ProbeRecord],
    settings: Settings,
    clock: datetime,
    operations: Operations = NO_OPERATIONS,
) -> Tables:
    """Return the levels of all configured clusters; records of other clusters are ignored."""
    by_cluster: dict[str, list[ProbeRecord]] = defaultdict(list)
    for record in drop_duplicates(records):
        by_cluster[record["cluster_id"]].append(record)
    silver_brokers: list[Row] = []
    silver_clusters: list[Row] = []
    gold_clusters: list[Row] = []
    for cluster in settings.clusters:
        brokers = compute_broker_minutes(by_cluster[cluster.cluster_id], cluster, settings.agent_late_us)
        minutes = compute_cluster_minutes(brokers)
        exclusions = find_occurrences(
            operations.corrections, cluster, settings, [row["minute"] for row in minutes]
        )
        minutes = _with_causes(minutes, brokers, cluster, exclusions, operations)
        silver_brokers += [broker_minute.row for broker_minute in brokers]
        silver_clusters += minutes
        gold_clusters += compute_cluster_weeks(
            minutes, apply_corrections(brokers, exclusions), cluster, settings, clock
        )
    return Tables(
        silver_brokers,
        silver_clusters,
        gold_clusters,
        compute_fleet_weeks(gold_clusters, settings, clock),
        compute_burn_causes(gold_clusters, settings),
    )


def _with_causes(
    minutes: Iterable[Row],
    brokers: Iterable[BrokerMinute],
    cluster: ClusterSettings,
    corrections: Sequence[Occurrence],
    operations: Operations,
) -> list[Row]:
    periods = [
        *list_actions(operations, cluster.cluster_id),
        *list_changes(operations, cluster),
        *list_episodes(operations, cluster),
    ]
    clients: dict[datetime, list[Row]] = defaultdict(list)
    for broker_minute in brokers:
        if broker_minute.row["leg"] == "client":
            clients[broker_minute.row["minute"]].append(broker_minute.row)
    return [
        row | {"cause": find_cause(row, clients[row["minute"]], cluster, corrections, periods)}
        for row in minutes
    ]
