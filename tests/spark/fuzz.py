"""Random and malicious damage to records, and what the pipeline may do with each value."""

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from enum import Enum
from pathlib import Path
from random import Random
from typing import Any

from pyspark.sql import SparkSession

from fleetgauge_core.contract import (
    HEADER_BYTES,
    MAX_RECORD_BYTES,
    PROBE_MINUTE,
    RecordDecodeError,
)
from fleetgauge_core.tables import PROBE_MINUTES, QUARANTINE, QUARANTINE_REASONS
from tests.spark.broken import Record, conflicting, good_record, mutated
from tests.spark.lakes import SOURCE, opened, raw_frame, rows

CLUSTER = "orders"
FLEET = {"clusters": [{"id": CLUSTER, "bootstrap": "orders:9092"}]}
CLOCK = datetime(2026, 4, 1, 12, 0, 30, tzinfo=UTC)
OLDEST = CLOCK - timedelta(days=35)
MINUTES = 30
FIRST = CLOCK.replace(second=0) - MINUTES * timedelta(minutes=1)

#: As Avro writes 100, the length of a full minute's arrays and three of its counts.
_HUNDRED = b"\xc8\x01"

Made = Callable[[bytes, Random], bytes | None]


class Fate(Enum):
    """What the contract requires for a value, by the Python decoder."""

    TAKEN = "taken"
    REFUSED = "refused"
    EITHER = "either"
    """Decoders may differ: an int of 33 bits, or arrays in an encoding that no agent writes."""


def values(number: int, rng: Random) -> list[bytes | None]:
    """Return values: a quarter valid, some duplicated or conflicting, the others damaged or noise."""
    values_: list[bytes | None] = []
    good: list[bytes] = []
    for sequence in range(number):
        encoded = PROBE_MINUTE.encode(_record(sequence, rng))
        chance = rng.random()
        if chance < 0.25 or not good:
            good.append(encoded)
            values_.append(encoded)
        elif chance < 0.28:
            values_.append(rng.choice(good))
        elif chance < 0.30:
            values_.append(_in_conflict(rng.choice(good)))
        else:
            values_.append(rng.choice(_DAMAGES)(encoded, rng))
    return values_


def _record(sequence: int, rng: Random) -> Record:
    minute = FIRST + rng.randrange(MINUTES) * timedelta(minutes=1)
    record = good_record(sequence, minute, CLUSTER, rng.randint(1, 3), rng.choice(("client", "leader")))
    if rng.random() < 0.5:
        return record
    # Small ones, of which a flipped bit hits something that matters.
    few = {"attempted": 3, "acknowledged": 2, "ack_us": (1000, 2000), "produce_failures": {"ACK_LATE": 1}}
    received = {"received": 1, "e2e_us": (3000,)} if record["leg"] == "client" else {}
    return record | few | received | {"rack": None, "leader_epoch": None}


def _in_conflict(encoded: bytes) -> bytes:
    record = PROBE_MINUTE.decode(encoded)
    if record["leg"] == "client":
        return conflicting(record)
    return PROBE_MINUTE.encode(record | {"lost": record["lost"] + 1})


def _varint(value: int) -> bytes:
    """Encode an integer of any size as Avro's zig-zag varint."""
    left = value << 1 if value >= 0 else (-value << 1) - 1
    out = bytearray()
    while left > 0x7F:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes(out) + bytes([left])


def _bit_flips(value: bytes, rng: Random) -> bytes:
    data = bytearray(value)
    for _ in range(rng.choice((1, 1, 2, 8))):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


def _body_flip(value: bytes, rng: Random) -> bytes:
    """Flip a bit in the short fields at the end of a record, which often still decodes."""
    data = bytearray(value)
    data[-rng.randint(1, min(40, len(value) - HEADER_BYTES))] ^= 1 << rng.randrange(8)
    return bytes(data)


def _truncated(value: bytes, rng: Random) -> bytes:
    return value[: rng.randrange(len(value))]


def _spliced(value: bytes, rng: Random) -> bytes:
    other = PROBE_MINUTE.encode(_record(rng.randrange(10**6, 10**7), rng))
    return value[: rng.randrange(len(value))] + other[rng.randrange(len(other)) :]


def _trailing(value: bytes, rng: Random) -> bytes:
    return value + rng.choice((rng.randbytes(rng.randint(1, 50)), bytes(rng.randint(1, 9)), value))


def _wrong_fingerprint(value: bytes, rng: Random) -> bytes:
    return value[:2] + rng.randbytes(8) + value[HEADER_BYTES:]


def _wild_varint(value: bytes, rng: Random) -> bytes:
    at = rng.randrange(HEADER_BYTES, len(value))
    wild = rng.choice(
        (
            _varint(rng.choice((-1, 1)) << rng.randint(7, 70)),
            b"\xff" * rng.randint(1, 12),
            b"\x80" * rng.randint(1, 12) + b"\x01",
        )
    )
    return value[:at] + wild + value[at + rng.randint(0, len(wild)) :]


def _huge_count(value: bytes, rng: Random) -> bytes:
    """Insert a count or an array length beyond the record's size, also as a negative block count."""
    places = [at for at in range(HEADER_BYTES, len(value) - 1) if value[at : at + 2] == _HUNDRED]
    at = rng.choice(places) if places else rng.randrange(HEADER_BYTES, len(value))
    huge = rng.choice((-1, 1)) * rng.choice((2**16, 2**24, 2**31 - 1, 2**31, 2**40, 2**62, 2**63 - 1))
    return value[:at] + _varint(huge) + value[at + 2 :]


def _oversize(value: bytes, rng: Random) -> bytes:
    return value + rng.randbytes(rng.choice((MAX_RECORD_BYTES - len(value), MAX_RECORD_BYTES, 200_000)))


def _noise(_: bytes, rng: Random) -> bytes | None:
    size = rng.choice((0, 1, 9, 10, 11, 100, 1000))
    return rng.choice((None, rng.randbytes(size), PROBE_MINUTE.header + rng.randbytes(size)))


_DAMAGES: Sequence[Made] = (
    *(_bit_flips, _body_flip, _body_flip, _truncated, _spliced, _trailing, _wrong_fingerprint) * 6,
    *(_wild_varint, _huge_count, mutated, mutated) * 6,
    *(_noise,) * 4,
    _oversize,
)


def fate(value: bytes | None) -> Fate:
    """Return the required fate by the Python decoder and the contract's rules in plain Python."""
    try:
        record = PROBE_MINUTE.decode(value or b"")
    except RecordDecodeError as error:
        return Fate.EITHER if "outside the range of its type" in error.detail else Fate.REFUSED
    if not _keeps_the_rules(record):
        return Fate.REFUSED
    return Fate.TAKEN if PROBE_MINUTE.encode(record) == value else Fate.EITHER


def _keeps_the_rules(record: Record) -> bool:
    acks, ends, client = record["ack_us"], record["e2e_us"], record["leg"] == "client"
    counts = ("attempted", "acknowledged", "received", "lost", "duplicated", "out_of_order", "sequence")
    minute = record["minute"]
    return (
        all(record[name] for name in ("agent_id", "run_id", "vantage"))
        and record["cluster_id"] == CLUSTER
        and record["leg"] in ("client", "leader")
        and minute == minute.replace(second=0, microsecond=0)
        and OLDEST <= minute <= CLOCK + timedelta(minutes=5)
        and all(
            list(latencies) == sorted(latencies) and min(latencies, default=0) >= 0
            for latencies in (acks, ends)
        )
        and all(record[name] >= 0 for name in counts)
        and len(ends) <= record["acknowledged"] == len(acks) <= record["attempted"]
        and len(ends) <= record["received"]
        and (client or (not ends and not record["received"]))
        and max(record["received"], record["lost"]) <= record["attempted"]
        and is_plausible(record)
    )


def is_plausible(record: Record) -> bool:
    """Return whether an agent that probes every 600 ms, with two deadlines, can have measured the values."""
    failures = (record["produce_failures"], record["consume_failures"])
    brokers = (record["expected_brokers"], record["led_by"])
    lags = (record["schedule_lag_p95_us"], record["schedule_lag_max_us"])
    names = ("agent_id", "agent_version", "run_id", "vantage", "kafka_cluster_uuid", "rack", "cluster_id")
    texts = [record[name] or "" for name in names] + [code for codes in failures for code in codes]
    return (
        record["attempted"] <= 200
        and max(record["ack_us"], default=0) <= 5_000_000
        and max(record["e2e_us"], default=0) <= 10_000_000
        and max(record["duplicated"], record["out_of_order"]) <= 2_000
        and all(len(codes) <= 200 for codes in failures)
        and all(0 <= count <= 200 for codes in failures for count in codes.values())
        and all(len(ids) <= 2_000 and min(ids, default=0) >= 0 for ids in brokers)
        and min(record["broker_id"], *lags) >= 0
        and max(map(len, texts)) <= 512
    )


def process(
    spark: SparkSession,
    folder: Path,
    sent: Sequence[bytes | None],
    batches: int,
    before_each: Callable[[int], object],
) -> Counter[str]:
    """Process all values in a new lake in several batches, and return the sums of the batches' counts."""
    _, pipeline = opened(spark, folder, FLEET)
    counts: Counter[str] = Counter()
    size = -(-len(sent) // batches)
    for number, at in enumerate(range(0, len(sent), size)):
        before_each(number)
        frame = raw_frame(spark, sent[at : at + size], at)
        ingested = pipeline.process(frame, f"fuzz/{number}", CLOCK, OLDEST).ingested
        counts.update(
            received=ingested.received,
            stored=ingested.stored,
            replayed=ingested.replayed,
            quarantined=ingested.quarantined,
        )
    return counts


def judge(folder: Path, sent: Sequence[bytes | None], counts: Counter[str]) -> dict[str, Any]:
    """Compare the lake with the values that were sent; all ``faults`` are 0 if it is correct."""
    lies = {SOURCE.format(at): value for at, value in enumerate(sent)}
    bronze = {row["source"]: (row["run_id"], row["sequence"]) for row in rows(folder, PROBE_MINUTES)}
    winners = {key: lies.get(source) for source, key in bronze.items()}
    quarantine = {row["source"]: row for row in rows(folder, QUARANTINE)}
    faults = {
        "unaccounted": len(sent) - counts["stored"] - counts["replayed"] - counts["quarantined"],
        "bronze_rows_unsaid": len(rows(folder, PROBE_MINUTES)) - counts["stored"],
        "quarantine_rows_unsaid": len(rows(folder, QUARANTINE)) - counts["quarantined"],
        "taken_twice": len(bronze) - len(winners) + len(bronze.keys() & quarantine.keys()),
        "unknown_reasons": sum(row["reason"] not in QUARANTINE_REASONS for row in quarantine.values()),
        "other_bytes": sum(row["value"] != lies.get(source, b"?") for source, row in quarantine.items()),
        "broken_in_bronze": sum(fate(lies[source]) is Fate.REFUSED for source in bronze),
        "valid_in_quarantine": sum(
            fate(row["value"]) is Fate.TAKEN and not _conflicts(row, winners) and not _is_lone(row)
            for row in quarantine.values()
        ),
    }
    reasons = Counter(row["reason"] for row in quarantine.values())
    return {"sent": len(sent), **counts, "reasons": dict(sorted(reasons.items())), "faults": faults}


def _is_lone(row: dict[str, Any]) -> bool:
    """Return whether a record says of its cluster what no other record of these values says."""
    record = PROBE_MINUTE.decode(row["value"])
    common = good_record(0, FIRST, CLUSTER)
    if row["reason"] == "other_kafka_cluster":
        return bool(record["kafka_cluster_uuid"] != common["kafka_cluster_uuid"])
    strangers = {*record["expected_brokers"], record["broker_id"]} - {*common["expected_brokers"]}
    return row["reason"] == "unconfirmed_brokers" and len(strangers) > 8


def _conflicts(row: dict[str, Any], winners: dict[tuple[str, int], bytes | None]) -> bool:
    """Return whether bronze has another record with the same run_id and sequence."""
    record = PROBE_MINUTE.decode(row["value"])
    winner = winners.get((record["run_id"], record["sequence"]), row["value"])
    return row["reason"] == "conflicting_duplicate" and winner != row["value"]
