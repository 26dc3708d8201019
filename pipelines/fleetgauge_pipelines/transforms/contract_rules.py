"""The rules of the contract for records: which of them a record breaks first, and how.

The rules are plain Python, and only for records that a look at whole columns does not clear. That look never
clears a record that breaks a rule.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fleetgauge_core.contract import Leg
from fleetgauge_core.contract.bounds import (
    ACK_DEADLINE_US,
    MAX_ATTEMPTED,
    MAX_BROKERS,
    MAX_FAILURE_CODES,
    MAX_REPEATED,
    MAX_TEXT_LENGTH,
    RECEIVE_DEADLINE_US,
)
from fleetgauge_pipelines.transforms.lists import Flags, Lists

#: How far an agent's clock may be ahead of the pipeline's.
FUTURE_TOLERANCE = timedelta(minutes=5)

_REQUIRED_TEXT = ("agent_id", "run_id", "vantage", "cluster_id")
_TEXTS = (*_REQUIRED_TEXT, "agent_version", "kafka_cluster_uuid", "rack", "leg")
_CODES = ("produce_failures", "consume_failures")
_COUNTS = ("attempted", "acknowledged", "received", "lost", "duplicated", "out_of_order", "sequence")
#: Latencies and their bounds.
_LATENCIES = {"ack_us": ACK_DEADLINE_US, "e2e_us": RECEIVE_DEADLINE_US}
_BROKER_LISTS = ("expected_brokers", "led_by")
_NOT_NEGATIVE = ("broker_id", "schedule_lag_p95_us", "schedule_lag_max_us")
_LEGS = tuple(leg.value for leg in Leg)

Record = Mapping[str, Any]
#: A quarantine reason (tables.QUARANTINE_REASONS), and what is wrong in words.
Breach = tuple[str, str]


@dataclass(frozen=True, slots=True)
class ContractRules:
    """What a record is judged by beside its own values.

    ``oldest`` is the first minute that the caller accepts, ``kept_from`` the first that has not expired from
    bronze; None for no limit. ``accepts_unlikely``: a person has accepted values beyond their bounds.
    """

    clusters: Collection[str]
    clock: datetime
    oldest: datetime | None
    kept_from: datetime | None
    accepts_unlikely: bool = False

    def judge(self, record: Record) -> Breach | None:
        """Return the first rule that a record breaks; None if it breaks none."""
        return next(self._find_breaches(record), None)

    def _find_breaches(self, record: Record) -> Iterator[Breach]:
        minute = record["minute"]
        written = minute.replace(tzinfo=None).isoformat(sep=" ")
        if empty := [name for name in _REQUIRED_TEXT if not record[name]]:
            yield "missing_field", f"empty: {', '.join(empty)}"
        if record["leg"] not in _LEGS:
            yield "missing_field", f"leg is neither client nor leader: {record['leg']}"
        if minute.second or minute.microsecond:
            yield "missing_field", "minute is not the start of a minute"
        if record["cluster_id"] not in self.clusters:
            yield "unknown_cluster", record["cluster_id"]
        if minute > self.clock + FUTURE_TOLERANCE:
            yield "future", written
        if self.oldest is not None and minute < self.oldest:
            yield "too_old", written
        if self.kept_from is not None and minute < self.kept_from:
            yield "expired", written
        if any(min(record[name], default=0) < 0 for name in _LATENCIES):
            yield "negative_latency", "ack_us or e2e_us holds a negative value"
        if any(list(record[name]) != sorted(record[name]) for name in _LATENCIES):
            yield "unsorted_latencies", "ack_us or e2e_us does not ascend"
        if not _counts_add_up(record):
            yield "counts_do_not_add_up", _describe_counts(record)
        if not self.accepts_unlikely and (implausible := "; ".join(_describe_implausible(record))):
            yield "implausible", implausible

    def are_surely_valid(self, records: pa.Table) -> Flags:
        """Return which records (the fields of the schema) break no rule, as far as their columns show."""
        minute = records["minute"]
        ints = {name: np.asarray(records[name], np.int64) for name in (*_COUNTS, *_NOT_NEGATIVE)}
        latencies = {name: Lists.from_arrow(records[name]) for name in _LATENCIES}
        succeeded, is_leader = (
            latencies["e2e_us"].sizes,
            np.asarray(pc.equal(records["leg"], Leg.LEADER.value)),
        )
        times = [pc.less_equal(minute, _to_scalar(self.clock + FUTURE_TOLERANCE, minute))]
        times += [
            pc.greater_equal(minute, _to_scalar(limit, minute))
            for limit in (self.oldest, self.kept_from)
            if limit is not None
        ]
        conditions = [
            *(np.asarray(pc.not_equal(records[name], "")) for name in _REQUIRED_TEXT),
            *(np.asarray(condition) for condition in times),
            _is_in(records["leg"], _LEGS),
            _is_in(records["cluster_id"], self.clusters),
            np.asarray(pc.equal(minute, pc.floor_temporal(minute, unit="minute"))),
            *(values >= 0 for values in ints.values()),
            *(ints[name] <= ints["attempted"] for name in ("acknowledged", "received", "lost")),
            ints["acknowledged"] == latencies["ack_us"].sizes,
            succeeded <= np.minimum(ints["acknowledged"], ints["received"]),
            ~is_leader | ((succeeded == 0) & (ints["received"] == 0)),
            *(_is_ascending(lists) for lists in latencies.values()),
            *(_are_within(latencies[name], 0, bound) for name, bound in _LATENCIES.items()),
            ints["attempted"] <= MAX_ATTEMPTED,
            *(ints[name] <= MAX_REPEATED for name in ("duplicated", "out_of_order")),
            *(np.asarray(pc.utf8_length(records[name]).fill_null(0)) <= MAX_TEXT_LENGTH for name in _TEXTS),
            *(_is_short(Lists.from_arrow(records[name])) for name in _BROKER_LISTS),
            *(_are_plausible_failures(records[name].combine_chunks()) for name in _CODES),
        ]
        valid: Flags = np.logical_and.reduce(conditions)
        return valid


def _counts_add_up(record: Record) -> bool:
    succeeded, attempted = len(record["e2e_us"]), record["attempted"]
    return (
        all(record[name] >= 0 for name in _COUNTS)
        and record["acknowledged"] == len(record["ack_us"])
        and all(record[name] <= attempted for name in ("acknowledged", "received", "lost"))
        and succeeded <= min(record["acknowledged"], record["received"])
        and not (record["leg"] == Leg.LEADER.value and (succeeded or record["received"]))
    )


def _describe_counts(record: Record) -> str:
    return (
        f"attempted {record['attempted']}, acknowledged {record['acknowledged']} "
        f"({len(record['ack_us'])} latencies), received {record['received']}, "
        f"succeeded {len(record['e2e_us'])}"
    )


def _describe_implausible(record: Record) -> Iterator[str]:
    """Yield which values are beyond their bounds."""
    for name, value in _list_lowest(record):
        if value < 0:
            yield f"{name}: {value}, at least 0"
    for name, value, bound in _list_bounded(record):
        if value > bound:
            yield f"{name}: {value}, at most {bound}"


def _list_lowest(record: Record) -> Iterator[tuple[str, int]]:
    """Yield the values that cannot be negative, beside those that have to add up."""
    for name in _NOT_NEGATIVE:
        yield name, record[name]
    for name in _BROKER_LISTS:
        yield f"lowest of {name}", min(record[name], default=0)
    for name in _CODES:
        yield f"lowest count of {name}", min(record[name].values(), default=0)


def _list_bounded(record: Record) -> Iterator[tuple[str, int, int]]:
    """Yield the values that have an upper bound: what each is, its value, and the bound."""
    yield "attempted", record["attempted"], MAX_ATTEMPTED
    for name, bound in _LATENCIES.items():
        yield f"highest of {name}", max(record[name], default=0), bound
    for name in ("duplicated", "out_of_order"):
        yield name, record[name], MAX_REPEATED
    for name in _CODES:
        codes = record[name]
        yield f"codes in {name}", len(codes), MAX_FAILURE_CODES
        yield f"length of a code in {name}", max(map(len, codes), default=0), MAX_TEXT_LENGTH
        yield f"highest count of {name}", max(codes.values(), default=0), MAX_ATTEMPTED
    for name in _BROKER_LISTS:
        yield f"number of {name}", len(record[name]), MAX_BROKERS
    for name in _TEXTS:
        yield f"length of {name}", len(record[name] or ""), MAX_TEXT_LENGTH


def _to_scalar(at: datetime, column: pa.ChunkedArray) -> pa.Scalar:
    return pa.scalar(at.astimezone(UTC), column.type)


def _is_in(column: pa.ChunkedArray, texts: Collection[str]) -> Flags:
    return np.asarray(pc.is_in(column, pa.array(sorted(texts), pa.string())))


def _is_ascending(lists: Lists) -> Flags:
    values, rows = lists.flatten()
    descends = (values[1:] < values[:-1]) & (rows[1:] == rows[:-1])
    ascending = np.ones(len(lists), np.bool_)
    ascending[rows[1:][descends]] = False
    return ascending


def _are_within(lists: Lists, lowest: int, highest: int) -> Flags:
    values, rows = lists.flatten()
    within = np.ones(len(lists), np.bool_)
    within[rows[(values < lowest) | (values > highest)]] = False
    return within


def _is_short(lists: Lists) -> Flags:
    return (lists.sizes <= MAX_BROKERS) & _are_within(lists, 0, np.iinfo(np.int32).max)


def _are_plausible_failures(column: pa.MapArray) -> Flags:
    counts = Lists.of(np.asarray(column.items), column)
    lengths = Lists.of(np.asarray(pc.utf8_length(column.keys)), column)
    return (
        (counts.sizes <= MAX_FAILURE_CODES)
        & _are_within(counts, 0, MAX_ATTEMPTED)
        & _are_within(lengths, 0, MAX_TEXT_LENGTH)
    )
