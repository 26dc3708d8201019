"""From records to broker-minutes and cluster-minutes (the silver tables)."""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.oracle.quantile import quantile
from tests.oracle.settings import ClusterSettings

Row = dict[str, Any]
Record = Mapping[str, Any]

MINUTE = timedelta(minutes=1)
LEGS = ("client", "leader")
DEADLINE_US = {"client": 10_000_000, "leader": 5_000_000}
SUCCESSES = {"client": "e2e_us", "leader": "ack_us"}
ATTEMPTS_TO_BE_MEASURED = 50


@dataclass(frozen=True, slots=True)
class BrokerMinute:
    """A row of silver/broker_minutes, and the pooled successes behind it."""

    row: Row
    successes_us: Sequence[int]


def distinct(records: Iterable[Record]) -> list[Record]:
    """A record that came again (same run_id and sequence) counts once."""
    return list({(record["run_id"], record["sequence"]): record for record in records}.values())


# --- Which broker-minutes are expected ---------------------------------------


def expected_brokers(records: Iterable[Record], cluster: ClusterSettings) -> dict[datetime, frozenset[int]]:
    """Every minute of the cluster and the brokers expected in it, before the rule of where it begins.

    A minute with a record expects what its records expect and whoever has one;
    a minute without has the set of the latest earlier minute with a record, or
    of the first such minute where there is no earlier one (``since``).
    """
    known: dict[datetime, set[int]] = defaultdict(set)
    for record in records:
        known[record["minute"]] |= {*record["expected_brokers"], record["broker_id"]}
    minutes_with_record = sorted(known)

    def last_known(minute: datetime) -> frozenset[int]:
        position = max(bisect_right(minutes_with_record, minute) - 1, 0)
        return frozenset(known[minutes_with_record[position]]) - cluster.retired

    return {minute: last_known(minute) for minute in _minutes(minutes_with_record, cluster)}


def _minutes(minutes_with_record: Sequence[datetime], cluster: ClusterSettings) -> Iterator[datetime]:
    """From ``since`` (else the first record) to the latest record, and before ``until``."""
    if not minutes_with_record:
        return
    minute = _next_full_minute(cluster.since) if cluster.since else minutes_with_record[0]
    while minute <= minutes_with_record[-1] and (cluster.until is None or minute < cluster.until):
        yield minute
        minute += MINUTE


def _next_full_minute(moment: datetime) -> datetime:
    """The first minute that starts at or after the moment."""
    moment = moment.astimezone(UTC)
    floor = moment.replace(second=0, microsecond=0)
    return floor if floor == moment else floor + MINUTE


# --- Broker-minutes ----------------------------------------------------------


def broker_minutes(
    records: Iterable[Record], cluster: ClusterSettings, agent_late_us: int
) -> list[BrokerMinute]:
    """One row for every expected broker, leg and minute of a cluster, from its distinct records."""
    own = list(records)
    by_key: dict[tuple[datetime, int, str], list[Record]] = defaultdict(list)
    for record in own:
        by_key[record["minute"], record["broker_id"], record["leg"]].append(record)
    rows = [
        _broker_minute(cluster.cluster_id, broker, leg, minute, by_key[minute, broker, leg], agent_late_us)
        for minute, brokers in expected_brokers(own, cluster).items()
        for broker in sorted(brokers)
        for leg in LEGS
    ]
    return _from_beginning(rows, cluster)


def _from_beginning(rows: list[BrokerMinute], cluster: ClusterSettings) -> list[BrokerMinute]:
    """Without ``since`` a cluster begins at its first minute with a measured client broker-minute."""
    if cluster.since is not None:
        return rows
    measured = [one.row["minute"] for one in rows if one.row["leg"] == "client" and one.row["measured"]]
    if not measured:
        return []
    return [one for one in rows if one.row["minute"] >= min(measured)]


def _broker_minute(
    cluster_id: str, broker_id: int, leg: str, minute: datetime, records: Sequence[Record], agent_late_us: int
) -> BrokerMinute:
    """Late agents' records leave pooling; what is left is summed, and measured from 50 attempts on."""
    pooled = [record for record in records if record["schedule_lag_p95_us"] <= agent_late_us]
    successes_us = sorted(us for record in pooled for us in record[SUCCESSES[leg]])
    attempted = _sum(pooled, "attempted")
    measured = attempted >= ATTEMPTS_TO_BE_MEASURED
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
    """What a measured broker-minute says; a failure counts as the leg's deadline where censored."""
    failed = attempted - len(successes_us)
    return {
        "availability": len(successes_us) / attempted if attempted else None,
        "latency_p50_us": quantile(successes_us, 50),
        "latency_p99_us": quantile(successes_us, 99),
        "latency_p99_censored_us": quantile([*successes_us, *[DEADLINE_US[leg]] * failed], 99),
        "latency_max_us": max(successes_us, default=None),
        "ack_p99_us": quantile(ack_us, 99),
    }


def _sum(records: Iterable[Record], column: str) -> int:
    return sum(record[column] for record in records)


def _failures(records: Iterable[Record]) -> dict[str, int]:
    """Per code, produce and consume failures together."""
    total: Counter[str] = Counter()
    for record in records:
        total.update(record["produce_failures"])
        total.update(record["consume_failures"])
    return dict(total)


# --- Cluster-minutes ---------------------------------------------------------


def cluster_minutes(brokers: Iterable[BrokerMinute]) -> list[Row]:
    """One row a minute of one cluster: the worst over its measured brokers, and the pool of them."""
    by_minute: dict[datetime, list[BrokerMinute]] = defaultdict(list)
    for one in brokers:
        by_minute[one.row["minute"]].append(one)
    return [cluster_minute(minute, by_minute[minute]) for minute in sorted(by_minute)]


def cluster_minute(minute: datetime, brokers: Sequence[BrokerMinute]) -> Row:
    """``brokers`` are the expected ones, one at least; what goes on at that time is not looked at."""
    expected = [one for one in brokers if one.row["leg"] == "client"]
    measured = [one for one in expected if one.row["measured"]]
    clients = [one.row for one in measured]
    leaders = [one.row for one in brokers if one.row["leg"] == "leader" and one.row["measured"]]
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
        "latency_pooled_p99_us": quantile([us for one in measured for us in one.successes_us], 99),
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
    """The largest (sign 1) or smallest (sign -1) value and its broker; of equals the lowest id."""
    candidates = [
        (-sign * row[column], row["broker_id"], row[column]) for row in rows if row[column] is not None
    ]
    if not candidates:
        return None, None
    _, broker_id, value = min(candidates)
    return value, broker_id
