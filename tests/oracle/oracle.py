"""The oracle: records, settings and a clock in; the rows of silver and gold out.

    tables = evaluate(random_week(seed=7), settings, clock)
    assert not differences(BROKER_MINUTES, tables.broker_minutes, rows_of_the_pipeline)

Rows are dicts with every column of their table but the volatile ones.
Minutes are aware UTC datetimes, weeks and days dates, ``*_us`` and counts int.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from tests.oracle.minute_rules import Record, Row, broker_minutes, cluster_minutes
from tests.oracle.settings import ClusterSettings, Settings, settings_of
from tests.oracle.week_rules import cluster_weeks, fleet_weeks

__all__ = ["ClusterSettings", "Record", "Row", "Settings", "Tables", "evaluate", "settings_of"]


@dataclass(frozen=True, slots=True)
class Tables:
    """The rows of the four tables, each in no order that matters."""

    broker_minutes: list[Row]
    cluster_minutes: list[Row]
    cluster_weeks: list[Row]
    fleet_weeks: list[Row]


def evaluate(records: Iterable[Record], settings: Settings, clock: datetime) -> Tables:
    """All levels of all configured clusters; records of other clusters are not looked at."""
    records = list(records)
    silver_brokers: list[Row] = []
    silver_clusters: list[Row] = []
    gold_clusters: list[Row] = []
    for cluster in settings.clusters:
        brokers = broker_minutes(records, cluster, settings.agent_late_us)
        minutes = cluster_minutes(brokers)
        silver_brokers += [one.row for one in brokers]
        silver_clusters += minutes
        gold_clusters += cluster_weeks(minutes, cluster, settings, clock)
    return Tables(silver_brokers, silver_clusters, gold_clusters, fleet_weeks(gold_clusters, settings, clock))
