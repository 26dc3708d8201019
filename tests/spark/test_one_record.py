"""One damaged or hostile record moves at most its own cluster and minute, as an agent could."""

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from fleetgauge_core.contract import PROBE_MINUTE
from fleetgauge_core.fleet import Fleet
from fleetgauge_core.tables import BROKER_MINUTES, CLUSTER_WEEKS, PROBE_MINUTES
from fleetgauge_pipelines.transforms.contract_rules import ContractRules
from fleetgauge_pipelines.transforms.raw_records import check_raw_records
from tests.oracle.oracle import evaluate, read_settings
from tests.spark.broken import Record, good_record
from tests.spark.fuzz import CLOCK, CLUSTER, OLDEST, Fate, fate
from tests.spark.lakes import SOURCE, content, opened, raw_frame, rows

pytestmark = pytest.mark.thorough

RULED, STORED, SEED = 100_000, 300, 20261128
MINUTES, BROKERS = 10, (1, 2)
MINUTE = timedelta(minutes=1)
FIRST = CLOCK.replace(second=0) - MINUTES * MINUTE
#: Brokers that a record may add to its minute: those that no other record names, and its own.
NEW_BROKERS = 9
#: Minutes that a record may add: up to the next one with a record, an hour before it or five minutes ahead.
NEW_MINUTES = 66
LEGS = 2


def flip_bits(value: bytes, rng: Random) -> bytes:
    data = bytearray(value)
    for _ in range(rng.randint(1, 3)):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


def choose_freely(record: Record, rng: Random) -> bytes:
    """Return the record with one to four values of a hostile agent's choice."""
    wild = (0, 1, 50, 99, 100, 101, 200, 201, 5_000_000, 10_000_001, 2**31 - 1)
    count = rng.choice(wild)
    acks = sorted(rng.choice(wild) for _ in range(rng.choice((0, 1, 100, 200, 201))))
    brokers = range(rng.choice((0, 1, 2**20)), 2**20 + rng.choice((1, 8, 9, 300, 3_000)))
    shifts = (-35 * 1440, -8 * 1440, -600, -59, -11, -1, 0, 1, 5, 6, 600)
    changes: dict[str, Any] = {
        "attempted": count,
        "all counts": count,
        "acks": acks,
        "received": rng.choice(wild),
        "lost": rng.choice(wild),
        "duplicated": rng.choice(wild),
        "broker_id": rng.choice((1, 2, 3, -1, 2**31 - 1)),
        "expected_brokers": list(brokers[-rng.choice((1, 8, 9, 300, 3_000)) :]),
        "kafka_cluster_uuid": rng.choice(("", "other", record["kafka_cluster_uuid"])),
        "minute": record["minute"] + rng.choice(shifts) * MINUTE,
        "run_id": f"run {rng.random()}",
        "vantage": "elsewhere",
        "leg": rng.choice(("client", "leader")),
        "produce_failures": {"MSG_TIMED_OUT": count},
    }
    chosen = {name: changes[name] for name in rng.sample(list(changes), rng.randint(1, 4))}
    if "all counts" in chosen:
        chosen |= dict.fromkeys(("attempted", "acknowledged", "received"), chosen.pop("all counts"))
    if "acks" in chosen:
        ends = chosen.pop("acks")
        chosen |= {"ack_us": ends, "e2e_us": ends, "acknowledged": len(ends), "received": len(ends)}
    return PROBE_MINUTE.encode(record | chosen)


def damage(record: Record, rng: Random) -> bytes:
    if rng.random() < 0.5:
        return flip_bits(PROBE_MINUTE.encode(record), rng)
    return choose_freely(record, rng)


def test_the_rules_decide_as_their_plain_implementation() -> None:
    rng = Random(SEED)
    values = [
        damage(good_record(n, FIRST + rng.randrange(MINUTES) * MINUTE, CLUSTER, rng.randint(1, 3)), rng)
        for n in range(RULED)
    ]
    sources = [SOURCE.format(at) for at in range(RULED)]
    raw = pa.table(
        [pa.array(values, pa.binary()), sources, list(range(RULED)), pa.nulls(RULED, pa.string())],
        names=["value", "source", "position", "hint"],
    )
    refused = check_raw_records(raw, ContractRules({CLUSTER}, CLOCK, OLDEST, None)).refused
    reasons = dict.fromkeys(sources) | dict(
        zip(refused["source"].to_pylist(), refused["reason"].to_pylist(), strict=True)
    )
    fates = [fate(value) for value in values]
    wrong = [
        (value, reasons[SOURCE.format(at)])
        for at, (value, wanted) in enumerate(zip(values, fates, strict=True))
        if wanted is not Fate.EITHER and (reasons[SOURCE.format(at)] is None) != (wanted is Fate.TAKEN)
    ]
    assert not wrong, wrong[:3]
    assert min(fates.count(Fate.TAKEN), fates.count(Fate.REFUSED)) > RULED // 10


def build_good_records(cluster: str, first_sequence: int) -> list[Record]:
    places = [
        (minute, broker, leg)
        for minute in range(MINUTES)
        for broker in BROKERS
        for leg in ("client", "leader")
    ]
    return [
        good_record(first_sequence + at, FIRST + minute * MINUTE, cluster, broker, leg)
        | {"expected_brokers": BROKERS, "run_id": f"run of {cluster}"}
        for at, (minute, broker, leg) in enumerate(places)
    ]


def test_one_record_moves_at_most_its_own_cluster_and_minute(spark: SparkSession, tmp_path: Path) -> None:
    rng, folder = Random(SEED + 1), tmp_path / "lake"
    names = [f"cluster-{number}" for number in range(STORED)]
    fleet = Fleet.model_validate({"clusters": [{"id": name, "bootstrap": "orders:9092"} for name in names]})
    good = {name: build_good_records(name, 0) for name in names}
    values = [PROBE_MINUTE.encode(record) for records in good.values() for record in records]
    lone = [damage(rng.choice(good[name]) | {"sequence": 10**6}, rng) for name in names]
    _, pipeline = opened(spark, folder, fleet)
    order = [*values, *lone]
    rng.shuffle(order)
    pipeline.process(raw_frame(spark, order), "batch", CLOCK, OLDEST)

    wanted = evaluate(
        [record for records in good.values() for record in records], read_settings(fleet), CLOCK
    )
    by_key = {tuple(row[name] for name in BROKER_MINUTES.key): row for row in wanted.broker_minutes}
    stored: dict[str, set[datetime]] = defaultdict(set)
    for row in rows(folder, PROBE_MINUTES):
        if row["sequence"] not in range(len(good[names[0]])):
            stored[row["cluster_id"]].add(row["minute"].astimezone(UTC))
    added: dict[str, int] = defaultdict(int)
    for row in content(folder, BROKER_MINUTES):
        key = tuple(row[name] for name in BROKER_MINUTES.key)
        before = by_key.pop(key, None)
        cluster, minute = row["cluster_id"], row["minute"]
        if before is None:
            assert stored[cluster], (cluster, row)
            added[cluster] += 1
        elif any(
            row[name] != before[name] for name in ("attempted", "succeeded", "latency_p99_us", "vantages")
        ):
            assert minute in stored[cluster], (cluster, minute)
    assert not by_key, "a minute that was measured is missing"
    assert max(added.values()) <= NEW_MINUTES * (NEW_BROKERS + len(BROKERS)) * LEGS
    probes = MINUTES * len(BROKERS) * 100
    for week in content(folder, CLUSTER_WEEKS):
        assert week["availability_ratio"] >= probes / (probes + 200), week
        assert week["latency_p99_us"] <= 10_000_000, week
    assert 0 < len(stored) < STORED
