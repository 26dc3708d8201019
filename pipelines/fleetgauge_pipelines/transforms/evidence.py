"""The broker-minutes that decided a week's levels, and their samples."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fleetgauge_core.contract import Leg
from fleetgauge_core.tables import EVIDENCE
from fleetgauge_core.tables.arrow_schema import arrow_schema
from fleetgauge_pipelines.transforms.broker_minutes import BrokerMinutes, build_failure_maps, pool_records
from fleetgauge_pipelines.transforms.cluster_weeks import WeekDefinition
from fleetgauge_pipelines.transforms.lists import Flags, Ints
from fleetgauge_pipelines.transforms.records import Records, read_records, to_minutes, to_times

#: Each level of a week, and the column of cluster-minutes and broker-minutes of which it is a quantile.
RANKED = {
    "latency_p99_us": "latency_p99_us",
    "latency_p99_censored_us": "latency_p99_censored_us",
    "availability_p99": "availability",
}
_BAD = "bad_minute"
_CENSORED = "latency_p99_censored_us"


@dataclass(frozen=True, slots=True)
class DecidingBroker:
    """A broker of a minute, counted from 1970, that decided levels of a week; ``why`` names them."""

    week: WeekDefinition
    minute: int
    broker_id: int
    why: str


def find_deciding_minutes(
    week: WeekDefinition, levels: Mapping[str, Any], minutes: pa.Table
) -> dict[str, Ints]:
    """Return by reason the minutes, counted from 1970, that decided a week with these levels.

    For each level it is the first minute with the level's value; further reasons are bad minutes.
    ``minutes`` are the week's cluster-minutes that count.
    """
    at = to_minutes(minutes["minute"])
    reasons = {
        name: np.sort(at[_equals(minutes[column], levels[name])])[:1] for name, column in RANKED.items()
    }
    return reasons | {_BAD: at[_exceeds(minutes[_CENSORED], week.latency_objective_us)]}


def find_deciding_brokers(
    week: WeekDefinition, levels: Mapping[str, Any], deciding: Mapping[str, Ints], client: pa.Table
) -> list[DecidingBroker]:
    """Return the broker-minutes that decided a week with these levels.

    Of the minutes ``deciding`` (find_deciding_minutes) it is the brokers that had the level's value, or were
    over the objective. ``client`` are the measured broker-minutes of the client leg in these minutes.
    """
    of_client = to_minutes(client["minute"])
    reasons = {
        name: _equals(client[column], levels[name]) & np.isin(of_client, deciding[name])
        for name, column in RANKED.items()
    }
    over = _exceeds(client[_CENSORED], week.latency_objective_us)
    reasons[_BAD] = over & np.isin(of_client, deciding[_BAD])
    rows = np.flatnonzero(np.logical_or.reduce(list(reasons.values())))
    brokers = np.asarray(client["broker_id"])
    return [
        DecidingBroker(
            week,
            int(of_client[row]),
            int(brokers[row]),
            ",".join(name for name, holds in reasons.items() if holds[row]),
        )
        for row in rows.tolist()
    ]


def _equals(column: pa.ChunkedArray, value: Any) -> Flags:
    if value is None:
        return np.zeros(len(column), np.bool_)
    return np.asarray(pc.equal(column, value).fill_null(False))


def _exceeds(column: pa.ChunkedArray, value: int) -> Flags:
    return np.asarray(pc.greater(column, value).fill_null(False))


def collect_samples(records: pa.Table, deciding: Sequence[DecidingBroker], agent_late_us: int) -> pa.Table:
    """Return gold/evidence: the pooled samples of both legs of the deciding broker-minutes.

    ``records`` are rows of bronze (records.COLUMNS) of their clusters and minutes.
    """
    clusters = sorted({each.week.cluster_id for each in deciding})
    number = {cluster_id: position for position, cluster_id in enumerate(clusters)}
    by_key = {(number[each.week.cluster_id], each.minute, each.broker_id): each for each in deciding}
    of_clusters = read_records(records, clusters, agent_late_us)
    is_deciding = np.fromiter((key in by_key for key in _list_keys(of_clusters)), np.bool_)
    brokers = pool_records(of_clusters.take(is_deciding))
    of_rows = [by_key[key] for key in _list_keys(brokers)]
    legs = [Leg.LEADER.value if is_leader else Leg.CLIENT.value for is_leader in brokers.is_leader]
    columns = {
        "cluster_id": pa.array([each.week.cluster_id for each in of_rows], pa.string()),
        "week": pa.array([each.week.week for each in of_rows], pa.date32()),
        "minute": to_times(brokers.minute),
        "broker_id": pa.array(brokers.broker),
        "leg": pa.array(legs, pa.string()),
        "attempted": pa.array(brokers.attempted),
        "ack_us": brokers.ack_us.to_arrow(),
        "e2e_us": brokers.e2e_us.empty_all_but(~brokers.is_leader).to_arrow(),
        "failures": build_failure_maps(brokers.failures, len(brokers)),
        "why": pa.array([each.why for each in of_rows], pa.string()),
    }
    schema = arrow_schema(EVIDENCE)
    return pa.Table.from_arrays([columns[field.name].cast(field.type) for field in schema], schema=schema)


def _list_keys(rows: Records | BrokerMinutes) -> Iterator[tuple[int, int, int]]:
    return zip(rows.cluster.tolist(), rows.minute.tolist(), rows.broker.tolist(), strict=True)
