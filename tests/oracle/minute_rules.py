"""Broker-minutes and cluster-minutes (the silver tables), computed from probe records."""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.oracle.quantile import quantile
from tests.oracle.settings import ClusterSettings

Row = dict[str, Any]
ProbeRecord = Mapping[str, Any]

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
LEGS = ("client", "leader")
DEADLINE_US = {"client": 10_000_000, "leader": 5_000_000}
SUCCESSES = {"client": "e2e_us", "leader": "ack_us"}
MIN_MEASURED_ATTEMPTS = 50


@dataclass(frozen=True, slots=True)
class BrokerMinute:
    """A row of silver/broker_minutes, and the pooled successes behind it."""

    row: Row
    successes_us: Sequence[int]


def drop_duplicates(records: Iterable[ProbeRecord]) -> list[ProbeRecord]:
    """Return the records without duplicates, which have the same run_id and sequence."""
    return list({(record["run_id"], record["sequence"]): record for record in records}.values())


def drop_lone_beginning(
    records: Sequence[ProbeRecord], cluster: ClusterSettings, clock: datetime
) -> list[ProbeRecord]:
    """Return a cluster's records from the first minute on at which it was measured.

    A record that is more than an hour old when it comes, and the only one within an hour of it, does not show
    that the cluster was measured then.
    """
    minutes = sorted(record["minute"] for record in records)
    if cluster.since is not None:
        return list(records)

    def is_beginning(minute: datetime) -> bool:
        near = bisect_right(minutes, minute + HOUR) - bisect_left(minutes, minute - HOUR)
        return near > 1 or clock - minute <= HOUR

    first = next((minute for minute in minutes if is_beginning(minute)), None)
    return [record for record in records if first is not None and record["minute"] >= first]


# --- Expected broker-minutes ---------------------------------------


def find_expected_brokers(
    records: Iterable[ProbeRecord], cluster: ClusterSettings
) -> dict[datetime, frozenset[int]]:
    """Return the expected brokers of every minute of the cluster, also before its first measured minute.

    A minute with a record expects the brokers that its records list or belong to. A minute without one has
    the brokers of the latest earlier minute with a record, or, if there is none (``since``), of the first.
    """
    listed: dict[datetime, set[int]] = defaultdict(set)
    for record in records:
        listed[record["minute"]] |= {*record["expected_brokers"], record["broker_id"]}
    minutes_with_record = sorted(listed)

    def latest_listed(minute: datetime) -> frozenset[int]:
        position = max(bisect_right(minutes_with_record, minute) - 1, 0)
        return frozenset(listed[minutes_with_record[position]]) - cluster.retired

    return {minute: latest_listed(minute) for minute in _minutes(minutes_with_record, cluster)}


def _minutes(minutes_with_record: Sequence[datetime], cluster: ClusterSettings) -> Iterator[datetime]:
    """Yield the minutes from ``since``, or the first record, to the latest record, and before ``until``."""
    if not minutes_with_record:
        return
    minute = _next_full_minute(cluster.since) if cluster.since else minutes_with_record[0]
    while minute <= minutes_with_record[-1] and (cluster.until is None or minute < cluster.until):
        yield minute
        minute += MINUTE


def _next_full_minute(moment: datetime) -> datetime:
    """Return the first minute that starts at or after the moment."""
    moment = moment.astimezone(UTC)
    floor = moment.replace(second=0, microsecond=0)
    return floor if floor == moment else floor + MINUTE


# --- Broker-minutes ----------------------------------------------------------


def compute_broker_minutes(
    records: Iterable[ProbeRecord], cluster: ClusterSettings, agent_late_us: int
) -> list[BrokerMinute]:
    """Return one row per expected broker, leg and minute of a cluster, from its distinct records."""
    cluster_records = list(records)
    by_key: dict[tuple[datetime, int, str], list[ProbeRecord]] = defaultdict(list)
    for record in cluster_records:
        by_key[record["minute"], record["broker_id"], record["leg"]].append(record)
    rows = [
        _broker_minute(cluster.cluster_id, broker, leg, minute, by_key[minute, broker, leg], agent_late_us)
        for minute, brokers in find_expected_brokers(cluster_records, cluster).items()
        for broker in sorted(brokers)
        for leg in LEGS
    ]
    return _drop_minutes_before_first_measured(rows, cluster)


def _drop_minutes_before_first_measured(
    rows: list[BrokerMinute], cluster: ClusterSettings
) -> list[BrokerMinute]:
    """Drop the minutes before the first measured client broker-minute, unless the cluster has ``since``."""
    if cluster.since is not None:
        return rows
    measured = [
        broker_minute.row["minute"]
        for broker_minute in rows
        if broker_minute.row["leg"] == "client" and broker_minute.row["measured"]
    ]
    if not measured:
        return []
    return [broker_minute for broker_minute in rows if broker_minute.row["minute"] >= min(measured)]


def _broker_minute(
    cluster_id: str,
    broker_id: int,
    leg: str,
    minute: datetime,
    records: Sequence[ProbeRecord],
    agent_late_us: int,
) -> BrokerMinute:
    """Return the row of the pooled records of on-time agents; it is measured from 50 attempts on."""
    pooled = [record for record in records if record["schedule_lag_p95_us"] <= agent_late_us]
    successes_us = sorted(us for record in pooled for us in record[SUCCESSES[leg]])
    attempted = _sum(pooled, "attempted")
    measured = attempted >= MIN_MEASURED_ATTEMPTS
    row = {
        "cluster_id": cluster_id,
        "broker_id": broker_id,
        "leg": leg,
        "minute": minute,
        "attempted": attempted,
        "succeeded": len(successes_us),
        "acknowledged": _sum(pooled, "acknowledged"),
        "received": _sum(pooled, "received"),
        "failures": _failures(pooled),
        "lost": _sum(pooled, "lost"),
        "duplicated": _sum(pooled, "duplicated"),
        "vantages": len({record["vantage"] for record in pooled}),
        "agent_late": len(pooled) < len(records),
        "measured": measured,
        "led_by": sorted({broker for record in records for broker in record["led_by"]}),
        "day": minute.astimezone(UTC).date(),
    }
    ack_us = [us for record in pooled for us in record["ack_us"]]
    levels = _levels(leg, attempted, successes_us, ack_us)
    return BrokerMinute(row | (levels if measured else dict.fromkeys(levels)), successes_us)


def _levels(leg: str, attempted: int, successes_us: Sequence[int], ack_us: Sequence[int]) -> Row:
    """Return the levels of a measured broker-minute; censored, a failure counts as the leg's deadline."""
    failed = attempted - len(successes_us)
    return {
        "availability": len(successes_us) / attempted if attempted else None,
        "latency_p50_us": quantile(successes_us, 50),
        "latency_p99_us": quantile(successes_us, 99),
        "latency_p99_censored_us": quantile([*successes_us, *[DEADLINE_US[leg]] * failed], 99),
        "latency_max_us": max(successes_us, default=None),
        "ack_p99_us": quantile(ack_us, 99),
    }


def _sum(records: Iterable[ProbeRecord], column: str) -> int:
    return sum(record[column] for record in records)


def _failures(records: Iterable[ProbeRecord]) -> dict[str, int]:
    """Return the number of produce and consume failures by code."""
    total: Counter[str] = Counter()
    for record in records:
        total.update(record["produce_failures"])
        total.update(record["consume_failures"])
    return dict(total)


# --- Cluster-minutes ---------------------------------------------------------


def compute_cluster_minutes(brokers: Iterable[BrokerMinute]) -> list[Row]:
    """Return one row per minute of a cluster: the worst measured broker, and all of them pooled."""
    by_minute: dict[datetime, list[BrokerMinute]] = defaultdict(list)
    for broker_minute in brokers:
        by_minute[broker_minute.row["minute"]].append(broker_minute)
    return [compute_cluster_minute(minute, by_minute[minute]) for minute in sorted(by_minute)]


def compute_cluster_minute(minute: datetime, brokers: Sequence[BrokerMinute]) -> Row:
    """Return the row of a minute with at least one expected broker, without its cause."""
    expected = [broker_minute for broker_minute in brokers if broker_minute.row["leg"] == "client"]
    measured = [broker_minute for broker_minute in expected if broker_minute.row["measured"]]
    clients = [broker_minute.row for broker_minute in measured]
    leaders = [
        broker_minute.row
        for broker_minute in brokers
        if broker_minute.row["leg"] == "leader" and broker_minute.row["measured"]
    ]
    latency_p99_us, latency_worst_home = _worst(clients, "latency_p99_us", sign=1)
    censored_us, _ = _worst(clients, "latency_p99_censored_us", sign=1)
    availability, availability_worst_home = _worst(clients, "availability", sign=-1)
    leader_ack_p99_us, leader_worst_broker = _worst(leaders, "latency_p99_us", sign=1)
    attempted, succeeded = _sum(clients, "attempted"), _sum(clients, "succeeded")
    return {
        "cluster_id": brokers[0].row["cluster_id"],
        "minute": minute,
        "latency_p99_us": latency_p99_us,
        "latency_worst_home": latency_worst_home,
        "latency_p99_censored_us": censored_us,
        "latency_pooled_p99_us": quantile(
            [us for broker_minute in measured for us in broker_minute.successes_us], 99
        ),
        "availability": availability,
        "availability_worst_home": availability_worst_home,
        "availability_pooled": succeeded / attempted if attempted else None,
        "leader_ack_p99_us": leader_ack_p99_us,
        "leader_worst_broker": leader_worst_broker,
        "brokers_expected": len(expected),
        "brokers_measured": len(measured),
        "attempted": attempted,
        "succeeded": succeeded,
        "cause": None,
        "day": minute.astimezone(UTC).date(),
    }


def _worst(rows: Iterable[Row], column: str, sign: int) -> tuple[Any, int | None]:
    """Return the largest (sign 1) or smallest (sign -1) value and its broker; the lowest id of equals."""
    candidates = [
        (-sign * row[column], row["broker_id"], row[column]) for row in rows if row[column] is not None
    ]
    if not candidates:
        return None, None
    _, broker_id, value = min(candidates)
    return value, broker_id
