"""Compares what a batch's records say about their clusters with what the clusters' other records say."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import NamedTuple

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from fleetgauge_core.contract.bounds import MAX_UNCONFIRMED_BROKERS
from fleetgauge_core.slo.utc_days import list_utc_days
from fleetgauge_core.tables import PROBE_MINUTES
from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.io.small_frames import create_dataframe, to_utc
from fleetgauge_pipelines.transforms.claims import (
    KAFKA_IDS_DDL,
    list_claim_columns,
    refuse_other_kafka_ids,
    refuse_unconfirmed_brokers,
)

#: A cluster that was set up anew keeps its name and has another Kafka cluster ID. It is believed this long
#: after the last record of the one before; until then an agent may only be connected to the wrong cluster.
SUCCEEDS_AFTER = timedelta(minutes=2)
#: Records so near in time are about the same cluster.
_NEAR = timedelta(days=1)


class Period(NamedTuple):
    """The first and the last minute with a record."""

    first: datetime
    last: datetime

    def extend(self, other: "Period") -> "Period":
        """Return the shortest period that contains both."""
        return Period(min(self.first, other.first), max(self.last, other.last))


@dataclass(frozen=True, slots=True)
class Claim:
    """What the records of a cluster say that name the same Kafka cluster ID; empty if they know none."""

    cluster_id: str
    kafka_id: str
    records: int
    period: Period
    brokers: frozenset[int]


@dataclass(frozen=True, slots=True)
class KnownCluster:
    """The Kafka cluster IDs of a cluster, each with the minutes of its records, and its brokers.

    ``covered``: the minutes whose records have been read.
    """

    covered: Period
    kafka_ids: Mapping[str, Period] = field(default_factory=dict)
    brokers: frozenset[int] = frozenset()

    def learn(self, claims: Iterable[Claim]) -> "KnownCluster":
        """Return what is known with the claims of accepted records too."""
        kafka_ids, brokers, covered = dict(self.kafka_ids), self.brokers, self.covered
        for claim in claims:
            brokers |= claim.brokers
            covered = covered.extend(claim.period)
            # An agent that has not reached its cluster yet names none.
            if claim.kafka_id:
                kafka_ids[claim.kafka_id] = claim.period.extend(kafka_ids.get(claim.kafka_id, claim.period))
        return KnownCluster(covered, kafka_ids, brokers)


def find_disputed_kafka_ids(known: KnownCluster, claims: Sequence[Claim]) -> Mapping[str, Period]:
    """Return the known Kafka cluster IDs of a cluster, if a record of the batch may contradict them.

    The result is empty if no record names another ID than the one that is known for its minute. Only the ID
    that was seen last goes on with the batch: an earlier one that comes back after it was followed is that of
    an agent which was forgotten.
    """
    periods = dict(known.kafka_ids) or known.learn(_select_heaviest(claims)).kafka_ids
    present = max(periods, key=lambda kafka_id: periods[kafka_id].last, default=None)
    periods = {
        kafka_id: claim.period.extend(period)
        if kafka_id == present and (claim := _find_claim(claims, kafka_id))
        else period
        for kafka_id, period in periods.items()
    }
    is_disputed = any(
        claim.kafka_id != other
        and period.first <= claim.period.last
        and claim.period.first <= period.last + SUCCEEDS_AFTER
        for claim in claims
        if claim.kafka_id
        for other, period in periods.items()
    )
    return periods if is_disputed else {}


def _find_claim(claims: Iterable[Claim], kafka_id: str) -> Claim | None:
    return next((claim for claim in claims if claim.kafka_id == kafka_id), None)


def _select_heaviest(claims: Iterable[Claim]) -> list[Claim]:
    """Return the claim of most records, of those that name an ID; none if there is none."""
    named = [claim for claim in claims if claim.kafka_id]
    return sorted(named, key=lambda claim: (-claim.records, claim.period.first, claim.kafka_id))[:1]


class ClusterClaims:
    """Judges the records of one batch after another; what it has accepted is known from then on."""

    def __init__(self, spark: SparkSession, lake: Lake) -> None:
        self._spark = spark
        self._lake = lake
        self._known: dict[str, KnownCluster] = {}
        self._has_stored_records = False

    def open(self) -> None:
        """Take over that bronze may hold records, which are read when a batch has some of their cluster."""
        self._has_stored_records = True

    def refuse_unlikely(self, checked: DataFrame, claims: Sequence[Claim]) -> DataFrame | None:
        """Return the records, those refused that contradict others of their cluster; None if none does.

        ``claims`` are those of the valid records of ``checked``, which is as check_contract returns it.
        """
        by_cluster = _group(claims)
        self._read_known(by_cluster)
        disputed = {
            cluster_id: kafka_ids
            for cluster_id, of_cluster in by_cluster.items()
            if (kafka_ids := find_disputed_kafka_ids(self._known[cluster_id], of_cluster))
        }
        unconfirmed = [
            cluster_id
            for cluster_id, of_cluster in by_cluster.items()
            if len(_name_brokers(of_cluster) - self._known[cluster_id].brokers) > MAX_UNCONFIRMED_BROKERS
        ]
        judged = checked
        if disputed:
            judged = refuse_other_kafka_ids(judged, self._build_kafka_ids(disputed))
        if unconfirmed:
            judged = refuse_unconfirmed_brokers(
                judged, self._read_near({name: _find_near(by_cluster[name]) for name in unconfirmed})
            )
        return judged if disputed or unconfirmed else None

    def learn(self, claims: Sequence[Claim]) -> None:
        """Take over what accepted records say."""
        for cluster_id, of_cluster in _group(claims).items():
            self._known[cluster_id] = self._known[cluster_id].learn(of_cluster)

    def _read_known(self, claims: Mapping[str, Sequence[Claim]]) -> None:
        """Read what the stored records near to the claims say, where that is not known yet."""
        unread = {
            cluster_id: near
            for cluster_id, of_cluster in claims.items()
            if not self._knows(cluster_id, near := _find_near(of_cluster))
        }
        for cluster_id, near in unread.items():
            known = self._known.get(cluster_id, KnownCluster(near))
            self._known[cluster_id] = replace(known, covered=known.covered.extend(near))
        if not unread or not self._has_stored_records:
            return
        rows = (
            self._read_near(unread)
            .groupBy("cluster_id", F.col("kafka_cluster_uuid").alias("kafka_id"))
            .agg(*list_claim_columns(), F.min("ingested_at").alias("known_at"))
            .orderBy("known_at")
        )
        for row in rows.collect():
            self._known[row["cluster_id"]] = self._known[row["cluster_id"]].learn([to_claim(row)])

    def _knows(self, cluster_id: str, near: Period) -> bool:
        known = self._known.get(cluster_id)
        # What follows within a day of the last batch is near to it.
        return (
            known is not None
            and known.covered.first <= near.first
            and near.last <= known.covered.last + 2 * _NEAR
        )

    def _read_near(self, periods: Mapping[str, Period]) -> DataFrame:
        """Return the stored records of clusters in the days of these periods."""
        stored = self._lake.read(PROBE_MINUTES)
        return stored.where(
            F.col("day").isin(list_utc_days(periods.values())) & F.col("cluster_id").isin(list(periods))
        )

    def _build_kafka_ids(self, disputed: Mapping[str, Mapping[str, Period]]) -> DataFrame:
        rows = [
            (cluster_id, kafka_id, *period, period.last + SUCCEEDS_AFTER)
            for cluster_id, kafka_ids in disputed.items()
            for kafka_id, period in kafka_ids.items()
        ]
        return create_dataframe(self._spark, rows, KAFKA_IDS_DDL)


def to_claim(row: Row) -> Claim:
    """Return a row of summarize_claims with a cluster as a value."""
    period = Period(to_utc(row["first"]), to_utc(row["last"]))
    return Claim(row["cluster_id"], row["kafka_id"], row["records"], period, frozenset(row["brokers"]))


def _group(claims: Sequence[Claim]) -> dict[str, list[Claim]]:
    by_cluster: dict[str, list[Claim]] = {}
    for claim in claims:
        by_cluster.setdefault(claim.cluster_id, []).append(claim)
    return by_cluster


def _find_near(claims: Sequence[Claim]) -> Period:
    """Return the minutes of claims, and a day before and after them."""
    return Period(
        min(claim.period.first for claim in claims) - _NEAR,
        max(claim.period.last for claim in claims) + _NEAR,
    )


def _name_brokers(claims: Sequence[Claim]) -> frozenset[int]:
    return frozenset().union(*(claim.brokers for claim in claims))
