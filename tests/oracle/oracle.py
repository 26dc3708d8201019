"""The oracle: records, settings and a clock in; the rows of silver and gold out.

    tables = evaluate(random_week(seed=7), settings, clock)
    assert not differences(BROKER_MINUTES, tables.broker_minutes, rows_of_the_pipeline)

Rows are dicts with every column of their table but the volatile ones.
Minutes are aware UTC datetimes, weeks and days dates, ``*_us`` and counts int.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from tests.oracle.cause_rules import actions, burn_causes, cause, episodes
from tests.oracle.correction_rules import Occurrence, corrected, occurrences
from tests.oracle.minute_rules import (
    BrokerMinute,
    Record,
    Row,
    broker_minutes,
    cluster_minutes,
    distinct,
)
from tests.oracle.operations import NONE, Operations
from tests.oracle.settings import ClusterSettings, Settings, settings_of
from tests.oracle.week_rules import cluster_weeks, fleet_weeks

__all__ = ["ClusterSettings", "Operations", "Record", "Row", "Settings", "Tables", "evaluate", "settings_of"]


@dataclass(frozen=True, slots=True)
class Tables:
    """The rows of the tables, each in no order that matters."""

    broker_minutes: list[Row]
    cluster_minutes: list[Row]
    cluster_weeks: list[Row]
    fleet_weeks: list[Row]
    burn_causes: list[Row]


def evaluate(
    records: Iterable[Record], settings: Settings, clock: datetime, operations: Operations = NONE
) -> Tables:
    """All levels of all configured clusters; records of other clusters are not looked at."""
    by_cluster: dict[str, list[Record]] = defaultdict(list)
    for record in distinct(records):
        by_cluster[record["cluster_id"]].append(record)
    silver_brokers: list[Row] = []
    silver_clusters: list[Row] = []
    gold_clusters: list[Row] = []
    for cluster in settings.clusters:
        brokers = broker_minutes(by_cluster[cluster.cluster_id], cluster, settings.agent_late_us)
        minutes = cluster_minutes(brokers)
        taken = occurrences(operations.corrections, cluster, settings, [row["minute"] for row in minutes])
        minutes = _with_causes(minutes, brokers, cluster, taken, operations)
        silver_brokers += [one.row for one in brokers]
        silver_clusters += minutes
        gold_clusters += cluster_weeks(minutes, corrected(brokers, taken), cluster, settings, clock)
    return Tables(
        silver_brokers,
        silver_clusters,
        gold_clusters,
        fleet_weeks(gold_clusters, settings, clock),
        burn_causes(gold_clusters, settings),
    )


def _with_causes(
    minutes: Iterable[Row],
    brokers: Iterable[BrokerMinute],
    cluster: ClusterSettings,
    corrections: Sequence[Occurrence],
    operations: Operations,
) -> list[Row]:
    went_on = [*actions(operations, cluster.cluster_id), *episodes(operations, cluster.cluster_id)]
    clients: dict[datetime, list[Row]] = defaultdict(list)
    for one in brokers:
        if one.row["leg"] == "client":
            clients[one.row["minute"]].append(one.row)
    return [
        row | {"cause": cause(row, clients[row["minute"]], cluster, corrections, went_on)} for row in minutes
    ]
