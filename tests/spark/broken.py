"""Invalid records of every kind, each derived from a valid record."""

import copy
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from io import BytesIO
from random import Random
from typing import Any
from uuid import UUID

import fastavro

from fleetgauge_core.contract import (
    HEADER_BYTES,
    MAX_RECORD_BYTES,
    PROBE_MINUTE,
    PROBE_PULSE,
)

Record = dict[str, Any]
Change = Mapping[str, Any]

REASONS = (
    "not_decodable",
    "unknown_fingerprint",
    "oversize",
    "unknown_cluster",
    "future",
    "too_old",
    "unsorted_latencies",
    "negative_latency",
    "counts_do_not_add_up",
    "missing_field",
    "conflicting_duplicate",
    "trailing_bytes",
    "implausible",
    "unconfirmed_brokers",
    "other_kafka_cluster",
)


@dataclass(frozen=True, slots=True)
class Broken:
    """An invalid value; ``what`` distinguishes it from other values with the same reason."""

    reason: str
    what: str
    value: bytes | None


def good_record(
    sequence: int, minute: datetime, cluster_id: str = "orders", broker_id: int = 1, leg: str = "client"
) -> Record:
    """Return a valid record of 100 successful probes, whose latencies depend on its number."""
    ack_us = tuple(2000 + sequence % 50 + 10 * n for n in range(100))
    client = leg == "client"
    return {
        "agent_id": "host/zone-a",
        "agent_version": "0.1.0",
        "run_id": str(UUID(int=7, version=4)),
        "sequence": sequence,
        "vantage": "zone-a",
        "cluster_id": cluster_id,
        "kafka_cluster_uuid": "uuid-of-orders",
        "broker_id": broker_id,
        "rack": "z1",
        "leg": leg,
        "minute": minute,
        "expected_brokers": (1, 2, 3),
        "attempted": 100,
        "acknowledged": 100,
        "received": 100 if client else 0,
        "ack_us": ack_us,
        "e2e_us": tuple(us + 500 for us in ack_us) if client else (),
        "produce_failures": {},
        "consume_failures": {},
        "lost": 0,
        "duplicated": 0,
        "out_of_order": 0,
        "schedule_lag_p95_us": 900,
        "schedule_lag_max_us": 2000,
        "led_by": (broker_id,),
        "leader_epoch": 4,
        "emitted_at": minute + timedelta(seconds=72),
    }


def broken_records(good: Callable[[], Record], clock: datetime) -> Iterator[Broken]:
    """Yield an invalid record of each kind except conflicting_duplicate, made from new ``good`` records."""
    yield from _unreadable(good, clock)
    for reason, what, change in _rule_breaking(clock):
        yield Broken(reason, what, PROBE_MINUTE.encode(good() | change))
    for what, change in _implausible():
        yield Broken("implausible", what, PROBE_MINUTE.encode(good() | change))
    wrong_cluster = good() | {"kafka_cluster_uuid": "uuid-of-payments"}
    yield Broken("other_kafka_cluster", "an agent at the wrong cluster", PROBE_MINUTE.encode(wrong_cluster))
    yield Broken(
        "unconfirmed_brokers", "9 that no other names", PROBE_MINUTE.encode(_with_strangers(good(), 9))
    )


def _with_strangers(record: Record, count: int) -> Record:
    """Return the record with brokers that no other record names."""
    first = 1000 + 100 * record["sequence"]
    return record | {"expected_brokers": (1, 2, 3, *range(first, first + count))}


def conflicting(record: Record) -> bytes:
    """Return another record with the run_id and sequence of a valid one."""
    slower = tuple(us + 1 for us in record["e2e_us"])
    return PROBE_MINUTE.encode(record | {"e2e_us": slower})


def broken_of(reason: str, good: Callable[[], Record], clock: datetime, rng: Random) -> Broken:
    """Return a random invalid record with the given reason."""
    if reason == "conflicting_duplicate":
        return Broken(reason, "other latencies", conflicting(good()))
    return rng.choice([broken for broken in broken_records(good, clock) if broken.reason == reason])


def _unreadable(good: Callable[[], Record], clock: datetime) -> Iterator[Broken]:
    value = PROBE_MINUTE.encode(good())
    noise = Random(len(value)).randbytes(300)
    yield Broken("not_decodable", "no value at all", None)
    yield Broken("not_decodable", "an empty value", b"")
    yield Broken("not_decodable", "random bytes", noise)
    yield Broken("not_decodable", "text", b'{"cluster_id": "orders"}')
    yield Broken("not_decodable", "half a header", value[:5])
    yield Broken("not_decodable", "a header without a body", value[:HEADER_BYTES])
    yield Broken("not_decodable", "a body cut in the middle", value[: len(value) // 2])
    yield Broken("not_decodable", "a body that lacks its last byte", value[:-1])
    yield Broken("not_decodable", "random bytes behind a header", value[:HEADER_BYTES] + noise)
    yield Broken(
        "not_decodable", "a length far beyond the record", value[:HEADER_BYTES] + b"\xfe" * 4 + b"\x0f"
    )
    yield Broken(
        "not_decodable", "a negative length", value[:HEADER_BYTES] + b"\x05" + value[HEADER_BYTES + 1 :]
    )
    yield Broken("not_decodable", "text that is not UTF-8", _with_agent_id(good(), b"h\xffst"))
    yield Broken("unknown_fingerprint", "a pulse's fingerprint", PROBE_PULSE.header + value[HEADER_BYTES:])
    yield Broken(
        "unknown_fingerprint", "one bit of it", value[:9] + bytes([value[9] ^ 1]) + value[HEADER_BYTES:]
    )
    oversized = good() | {"agent_id": "a" * MAX_RECORD_BYTES}
    yield Broken("oversize", "a valid record that is too long", PROBE_MINUTE.encode(oversized))
    yield Broken("oversize", "one byte too long", value + bytes(MAX_RECORD_BYTES + 1 - len(value)))
    yield Broken("trailing_bytes", "one byte", value + b"\x00")
    yield Broken("trailing_bytes", "a second record", value + value)
    yield Broken("trailing_bytes", "as much as fits", value + bytes(MAX_RECORD_BYTES - len(value)))


def _rule_breaking(clock: datetime) -> Iterator[tuple[str, str, Change]]:
    this_minute = clock.replace(second=0, microsecond=0)
    yield "unknown_cluster", "of no fleet", {"cluster_id": "nobody's"}
    yield "unknown_cluster", "other capitals", {"cluster_id": "Orders"}
    yield "future", "six minutes ahead", {"minute": this_minute + timedelta(minutes=6)}
    yield "future", "ten years ahead", {"minute": this_minute + timedelta(days=3650)}
    yield "too_old", "36 days ago", {"minute": this_minute - timedelta(days=36)}
    yield "too_old", "a clock that was never set", {"minute": datetime(1970, 1, 1, tzinfo=UTC)}
    ascending = tuple(range(1000, 1100))
    swapped = (*ascending[:50], ascending[51], ascending[50], *ascending[52:])
    for name in ("ack_us", "e2e_us"):
        yield "unsorted_latencies", f"{name}, two of it swapped", {name: swapped}
        yield "unsorted_latencies", f"{name} descending", {name: ascending[::-1]}
        yield "negative_latency", f"{name}, one of it", {name: (-1, *ascending[1:])}
        yield "negative_latency", f"all of {name}", {name: tuple(range(-100, 0))}
    yield from (("counts_do_not_add_up", what, change) for what, change in _miscounted(ascending))
    for name in ("agent_id", "run_id", "vantage", "cluster_id"):
        yield "missing_field", f"{name} is empty", {name: ""}
    yield "missing_field", "no such leg", {"leg": "middle"}
    yield (
        "missing_field",
        "a minute that does not start a minute",
        {"minute": this_minute - timedelta(seconds=30)},
    )


def _implausible() -> Iterator[tuple[str, Change]]:
    """Yield changes to values that no agent measures, although each is of its type."""
    yield "two billion attempts", {"attempted": 2_000_000_000}
    yield "201 attempts", {"attempted": 201}
    fast = tuple(range(1000, 1099))
    yield "an acknowledgement after 5 s", {"ack_us": (*fast, 5_000_001)}
    yield "a success after 10 s", {"e2e_us": (*fast, 10_000_001)}
    yield "a success after half an hour", {"e2e_us": (*fast, 2_147_000_000)}
    yield "8,999 brokers", {"expected_brokers": tuple(range(1, 9000))}
    yield "a negative broker", {"broker_id": -1}
    for name in ("expected_brokers", "led_by"):
        yield f"a negative one of {name}", {name: (1, -2)}
        yield f"2,001 of {name}", {name: tuple(range(2001))}
    for name in ("duplicated", "out_of_order"):
        yield f"2,001 {name}", {name: 2001}
    for name in ("produce_failures", "consume_failures"):
        yield f"a negative count of {name}", {name: {"MSG_TIMED_OUT": -1}}
        yield f"201 failures of a code in {name}", {name: {"MSG_TIMED_OUT": 201}}
        yield f"201 codes in {name}", {name: {f"CODE_{number}": 1 for number in range(201)}}
        yield f"a code of 513 characters in {name}", {name: {"C" * 513: 1}}
    for name in ("schedule_lag_p95_us", "schedule_lag_max_us"):
        yield f"a negative {name}", {name: -1}
    for name in ("agent_id", "agent_version", "run_id", "vantage", "kafka_cluster_uuid", "rack"):
        yield f"{name} of 513 characters", {name: "n" * 513}


def _miscounted(ascending: tuple[int, ...]) -> Iterator[tuple[str, Change]]:
    leader = {"leg": "leader", "e2e_us": (), "received": 0}
    yield "fewer acks than acknowledged", {"ack_us": ascending[:99]}
    yield "more acks than acknowledged", {"ack_us": (*ascending, 2000)}
    yield "more acknowledged than attempted", {"attempted": 99}
    yield "more successes than received", {"received": 99}
    yield "more successes than acknowledged", {"acknowledged": 99, "ack_us": ascending[:99]}
    yield "more successes than attempted", {"e2e_us": (*ascending, 2000), "received": 101}
    yield "successes without an attempt", {"attempted": 0}
    yield "more received than attempted", {"received": 101}
    yield "more lost than attempted", {"lost": 101}
    yield "a leader leg with end-to-end latencies", leader | {"e2e_us": ascending[:1]}
    yield "a leader leg that received", leader | {"received": 100}
    yield "a leader leg with fewer acks", leader | {"ack_us": ascending[:99]}
    yield "a negative number of attempts", {"attempted": -1, "acknowledged": 0, "ack_us": (), "e2e_us": ()}
    for name in ("lost", "duplicated", "out_of_order"):
        yield f"a negative number of {name}", {name: -1}


def _with_agent_id(record: Record, agent_id: bytes) -> bytes:
    """Replace the text of agent_id, whose length Avro encodes as a zig-zag integer of one byte."""
    value = PROBE_MINUTE.encode(record)
    length = len(record["agent_id"])
    at = HEADER_BYTES + 1
    return value[: at - 1] + bytes([2 * len(agent_id)]) + agent_id + value[at + length :]


def encode_untimed(record: Record) -> bytes:
    """Encode a record whose times may be any milliseconds, even outside of the calendar."""
    buffer = BytesIO()
    buffer.write(PROBE_MINUTE.header)
    fastavro.schemaless_writer(buffer, _untimed_schema(), record)
    return buffer.getvalue()


def _untimed_schema() -> Any:
    schema = copy.deepcopy(json.loads(PROBE_MINUTE.text))
    for field in schema["fields"]:
        if isinstance(field["type"], dict):
            field["type"].pop("logicalType", None)
    return fastavro.parse_schema(schema)


def mutated(value: bytes, rng: Random) -> bytes:
    """Return a value with random damage: bytes flipped, cut, doubled, replaced or moved."""
    data = bytearray(value)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        at = rng.randrange(len(data)) if data else 0
        match rng.randrange(6):
            case 0:
                data[at : at + 1] = bytes([data[at] ^ (1 << rng.randrange(8))]) if data else b""
            case 1:
                del data[at:]
            case 2:
                del data[at : at + rng.randint(1, 8)]
            case 3:
                data[at:at] = rng.randbytes(rng.randint(1, 8))
            case 4:
                data[at : at + 4] = rng.choice(
                    (b"\xff" * 4, b"\x00" * 4, b"\x80" * 4, b"\xfe\xff\xff\xff\x0f")
                )
            case _:
                data += data[at : at + rng.randint(1, 40)]
    return bytes(data)
