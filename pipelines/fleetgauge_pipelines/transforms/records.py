"""Probe records of bronze, column by column."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fleetgauge_core.contract import Leg
from fleetgauge_pipelines.transforms.lists import Flags, Ints, Lists, join_chunks

SUMS = ("attempted", "acknowledged", "received", "lost", "duplicated")
_FAILURES = ("produce_failures", "consume_failures")
#: The columns of bronze that silver is computed from.
COLUMNS = (
    *("cluster_id", "broker_id", "leg", "minute", "vantage", "expected_brokers", *SUMS),
    *("ack_us", "e2e_us", *_FAILURES, "schedule_lag_p95_us", "led_by"),
)
_MINUTE_US = 60_000_000
_EPOCH, _MINUTE = datetime(1970, 1, 1, tzinfo=UTC), timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class FailureCounts:
    """How often each failure occurred: a row for each record and code.

    Those of records are in any order, those of broker-minutes in the order of rows and codes.
    """

    row: Ints
    code: Ints
    count: Ints
    codes: tuple[str, ...]
    """All codes in ascending order; ``code`` is a position in it."""


@dataclass(frozen=True, slots=True)
class Records:
    """Records in any order; ``cluster`` are positions in a list of clusters, ``minute`` counts from 1970."""

    cluster: Ints
    minute: Ints
    broker: Ints
    is_leader: Flags
    vantage: Ints
    is_on_time: Flags
    sums: NDArray[np.int64]
    """A row of numbers for each name of SUMS."""
    ack_us: Lists
    e2e_us: Lists
    expected_brokers: Lists
    led_by: Lists
    failures: FailureCounts

    def __len__(self) -> int:
        return len(self.cluster)

    def take(self, rows: Flags) -> "Records":
        """Return some of the records."""
        if rows.all():
            return self
        failures = self.failures
        kept, number = rows[failures.row], np.cumsum(rows) - 1
        return Records(
            self.cluster[rows],
            self.minute[rows],
            self.broker[rows],
            self.is_leader[rows],
            self.vantage[rows],
            self.is_on_time[rows],
            self.sums[:, rows],
            self.ack_us.take(rows),
            self.e2e_us.take(rows),
            self.expected_brokers.take(rows),
            self.led_by.take(rows),
            FailureCounts(
                number[failures.row[kept]], failures.code[kept], failures.count[kept], failures.codes
            ),
        )


def read_records(table: pa.Table, clusters: Sequence[str], agent_late_us: int) -> Records:
    """Return rows of bronze (COLUMNS) of some clusters, all of which ``clusters`` has.

    A record is on time if its p95 schedule lag is at most ``agent_late_us``; others are not pooled.
    """
    return Records(
        cluster=_to_ints(pc.index_in(table["cluster_id"], pa.array(clusters, pa.string()))),
        minute=to_minutes(table["minute"]),
        broker=_to_ints(table["broker_id"]),
        is_leader=np.asarray(pc.equal(table["leg"], Leg.LEADER.value)),
        vantage=_to_ints(join_chunks(table["vantage"]).dictionary_encode().indices),
        is_on_time=_to_ints(table["schedule_lag_p95_us"]) <= agent_late_us,
        sums=np.stack([_to_ints(table[name]) for name in SUMS]),
        ack_us=Lists.from_arrow(table["ack_us"]),
        e2e_us=Lists.from_arrow(table["e2e_us"]),
        expected_brokers=Lists.from_arrow(table["expected_brokers"]),
        led_by=Lists.from_arrow(table["led_by"]),
        failures=_read_failures(table),
    )


def to_minutes(times: pa.ChunkedArray) -> Ints:
    """Return the minutes since 1970 of times in UTC that are whole minutes."""
    return _to_ints(times.cast(pa.timestamp("us", "UTC")).cast(pa.int64())) // _MINUTE_US


def to_minute(at: datetime) -> int:
    """Return the minutes since 1970 of a time, rounded down."""
    return (at - _EPOCH) // _MINUTE


def to_time(minute: int) -> datetime:
    """Return the time of a minute since 1970, in UTC."""
    return _EPOCH + minute * _MINUTE


def to_times(minutes: Ints) -> pa.Array:
    """Return the times of minutes since 1970, in UTC."""
    return pa.array(minutes * _MINUTE_US).cast(pa.timestamp("us", "UTC"))


def _to_ints(column: pa.ChunkedArray | pa.Array) -> Ints:
    return np.asarray(column, np.int64)


def _read_failures(table: pa.Table) -> FailureCounts:
    parts = [_read_codes(join_chunks(table[name])) for name in _FAILURES]
    codes = pa.concat_arrays([code for _, code, _ in parts])
    distinct = sorted(codes.unique().to_pylist())
    return FailureCounts(
        np.concatenate([row for row, _, _ in parts]),
        _to_ints(pc.index_in(codes, pa.array(distinct, pa.string()))),
        np.concatenate([count for _, _, count in parts]),
        tuple(distinct),
    )


def _read_codes(column: pa.MapArray) -> tuple[Ints, pa.Array, Ints]:
    """Return of each entry of a column of maps the row, the code and the count."""
    starts, ends = column.offsets[0].as_py(), column.offsets[-1].as_py()
    rows = np.repeat(np.arange(len(column)), np.diff(np.asarray(column.offsets)))
    length = ends - starts
    return (
        rows,
        column.keys.slice(starts, length).cast(pa.string()),
        _to_ints(column.items.slice(starts, length)),
    )
