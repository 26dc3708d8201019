"""Records that contradict what others say of their cluster.

An agent sends two records a minute for each broker, which all say the same: what one of them says alone was
damaged, or it is about another cluster. Brokers may join at any time, so a few that nobody else names are
believed.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fleetgauge_core.contract.bounds import MAX_UNCONFIRMED_BROKERS
from fleetgauge_pipelines.transforms.contract_rules import Breach
from fleetgauge_pipelines.transforms.expected_brokers import number_lists
from fleetgauge_pipelines.transforms.lists import Flags, Ints, Lists
from fleetgauge_pipelines.transforms.record_summaries import Period

KAFKA_ID_COLUMNS = ("cluster_id", "kafka_cluster_uuid", "minute")
BROKER_COLUMNS = ("cluster_id", "run_id", "sequence", "expected_brokers", "broker_id")

#: What identifies a record: its run and sequence.
Identity = tuple[str, int]


@dataclass(frozen=True, slots=True)
class NamedBrokers:
    """Brokers that records of a cluster name, all of them the same ones.

    ``first`` and ``last`` are the lowest and the highest run and sequence; of a single record they are equal.
    """

    cluster_id: str
    brokers: frozenset[int]
    first: Identity
    last: Identity


def find_other_kafka_ids(
    records: pa.Table, kafka_ids: Mapping[str, Mapping[str, Period]], succeeds_after: timedelta
) -> dict[int, Breach]:
    """Return the records for whose cluster and minute another Kafka cluster ID is known, by their rows.

    ``kafka_ids`` are those that are known of disputed clusters, each with the minutes of its records; until
    so long after them no other one is believed. A record whose own ID is known for its minute is not refused.
    """
    breaches: dict[int, Breach] = {}
    rows = np.flatnonzero(_is_of_clusters(records, kafka_ids))
    for row, record in zip(rows.tolist(), records.take(pa.array(rows)).to_pylist(), strict=True):
        named, minute = record["kafka_cluster_uuid"], record["minute"]
        at_that_time = {
            kafka_id: period
            for kafka_id, period in kafka_ids[record["cluster_id"]].items()
            if period.first <= minute <= period.last + succeeds_after
        }
        others = sorted(kafka_id for kafka_id in at_that_time if kafka_id != named)
        is_expected = named in at_that_time and minute <= at_that_time[named].last
        if named and others and not is_expected:
            detail = f"kafka_cluster_uuid is {named}, that of {record['cluster_id']} is {others[0]}"
            breaches[row] = "other_kafka_cluster", detail
    return breaches


def find_unconfirmed_brokers(
    records: pa.Table, stored: Iterable[NamedBrokers], clusters: Collection[str], without: Collection[int]
) -> dict[int, Breach]:
    """Return the records of clusters that name many brokers that no other record names, by their rows.

    ``stored`` are the brokers that bronze's records of the same clusters name about that time; the rows
    ``without`` are refused already.
    """
    is_asked = _is_of_clusters(records, clusters)
    is_asked[list(without)] = False
    rows = np.flatnonzero(is_asked)
    asked = records.take(pa.array(rows))
    listed, lists = number_lists(Lists.from_arrow(asked["expected_brokers"]))
    naming: dict[tuple[str, int], set[Identity]] = defaultdict(set)
    identities: dict[str, set[Identity]] = defaultdict(set)
    for named in (*_group_named(asked, listed, lists), *stored):
        identities[named.cluster_id] |= {named.first, named.last}
        for broker in named.brokers:
            naming[named.cluster_id, broker] |= {named.first, named.last}
    breaches: dict[int, Breach] = {}
    names = zip(asked["cluster_id"].to_pylist(), listed.tolist(), asked["broker_id"].to_pylist(), strict=True)
    unconfirmed_in: dict[tuple[str, int, int], int] = {}
    for row, key in zip(rows.tolist(), names, strict=True):
        cluster_id, number, broker_id = key
        if key not in unconfirmed_in:
            unconfirmed_in[key] = sum(
                len(naming[cluster_id, broker]) == 1 for broker in {*lists[number], broker_id}
            )
        unconfirmed = unconfirmed_in[key]
        # Nobody contradicts the only record of a cluster.
        if unconfirmed > MAX_UNCONFIRMED_BROKERS and len(identities[cluster_id]) > 1:
            detail = (
                f"names {unconfirmed} brokers that no other record names, at most {MAX_UNCONFIRMED_BROKERS}"
            )
            breaches[row] = "unconfirmed_brokers", detail
    return breaches


def group_named_brokers(records: pa.Table) -> list[NamedBrokers]:
    """Return the brokers that rows of bronze (BROKER_COLUMNS) name."""
    listed, lists = number_lists(Lists.from_arrow(records["expected_brokers"]))
    return merge_named_brokers([_group_named(records, listed, lists)])


def merge_named_brokers(parts: Iterable[Iterable[NamedBrokers]]) -> list[NamedBrokers]:
    """Return each cluster's sets of brokers once, with the lowest and the highest run and sequence of all."""
    merged: dict[tuple[str, frozenset[int]], NamedBrokers] = {}
    for named in chain.from_iterable(parts):
        before = merged.get((named.cluster_id, named.brokers), named)
        merged[named.cluster_id, named.brokers] = NamedBrokers(
            named.cluster_id,
            named.brokers,
            (min(before.first[0], named.first[0]), min(before.first[1], named.first[1])),
            (max(before.last[0], named.last[0]), max(before.last[1], named.last[1])),
        )
    return list(merged.values())


def _group_named(records: pa.Table, listed: Ints, lists: list[frozenset[int]]) -> Iterator[NamedBrokers]:
    """Yield the brokers of records with the same list and broker together."""
    keys = ["cluster_id", "listed", "broker_id"]
    bounds = [(name, bound) for name in ("run_id", "sequence") for bound in ("min", "max")]
    groups = records.append_column("listed", pa.array(listed)).select([*keys, "run_id", "sequence"])
    for row in groups.group_by(keys).aggregate(bounds).to_pylist():
        yield NamedBrokers(
            row["cluster_id"],
            lists[row["listed"]] | {row["broker_id"]},
            (row["run_id_min"], row["sequence_min"]),
            (row["run_id_max"], row["sequence_max"]),
        )


def _is_of_clusters(records: pa.Table, clusters: Collection[str]) -> Flags:
    flags = np.asarray(pc.is_in(records["cluster_id"], pa.array(sorted(clusters), pa.string())))
    return flags.copy()
