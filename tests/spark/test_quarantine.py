"""Only records that break the contract are quarantined, with their reason and their bytes."""

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from fleetgauge_core.contract import PROBE_MINUTE, RecordDecodeError
from fleetgauge_core.fleet import Fleet
from fleetgauge_core.tables import PROBE_MINUTES, QUARANTINE
from fleetgauge_pipelines.jobs.batch import BatchResult
from fleetgauge_pipelines.jobs.bronze import BronzeWriter
from fleetgauge_pipelines.transforms.contract_rules import ContractRules
from fleetgauge_pipelines.transforms.raw_records import check_raw_records
from tests.spark.agreement import assert_tables_equal
from tests.spark.broken import (
    REASONS,
    Broken,
    Record,
    broken_records,
    conflicting,
    encode_untimed,
    good_record,
    mutated,
)
from tests.spark.lakes import SOURCE, counts, opened, raw_frame, rows, versions

FLEET = {"clusters": [{"id": "orders", "bootstrap": "orders:9092"}]}
CLOCK = datetime(2026, 4, 1, 12, 0, 30, tzinfo=UTC)
MINUTE = CLOCK.replace(second=0) - timedelta(minutes=10)
FUZZED = 2000
REASONS_OF_DECODING = ("not_decodable", "unknown_fingerprint", "oversize", "trailing_bytes")


def records_of(minute: datetime) -> Callable[[], Record]:
    sequences = count()
    return lambda: good_record(next(sequences), minute)


def reasons_in_python(value: bytes | None) -> tuple[str | None, ...]:
    """What the Python decoder says; of what no writer would write like that, trailing_bytes is as true."""
    try:
        record = PROBE_MINUTE.decode(value or b"")
    except RecordDecodeError as error:
        # Of an int that needs 33 bits, Java's decoder silently drops what does not fit.
        wrapped = (None, "trailing_bytes") if "outside the range of its type" in error.detail else ()
        return (error.reason, *wrapped)
    return (None,) if PROBE_MINUTE.encode(record) == value else (None, "trailing_bytes")


class Mixed:
    """A processed batch of invalid records mixed with valid ones and replays."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.folder = folder
        good = records_of(MINUTE)
        self.broken = list(broken_records(good, CLOCK))
        self.good = [
            good_record(100_000 + n, MINUTE + n // 6 * timedelta(minutes=1), "orders", n % 3 + 1, leg)
            for n, leg in enumerate(("client", "leader", "client", "leader") * 6)
        ]
        self.latest_good = good_record(200_000, CLOCK.replace(second=0) + timedelta(minutes=5))
        self.good.append(self.latest_good)
        winner = self.good[0]
        self.broken.append(Broken("conflicting_duplicate", "other latencies", conflicting(winner)))
        encoded = [PROBE_MINUTE.encode(record) for record in self.good]
        self.values = [encoded[0]]
        for position, broken in enumerate(self.broken):
            self.values.append(broken.value)
            self.values.append(encoded[position % len(encoded)])
        self.values += encoded
        self.lake, self.pipeline = opened(spark, folder, FLEET)
        self.frame = raw_frame(spark, self.values)
        self.outcome = self.process()

    def process(self) -> BatchResult:
        return self.pipeline.process(self.frame, "batch", CLOCK, CLOCK - timedelta(days=35))


@pytest.fixture(scope="module")
def mixed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Mixed:
    return Mixed(spark, tmp_path_factory.mktemp("mixed") / "lake")


def test_every_invalid_record_is_quarantined_with_its_reason_and_bytes(mixed: Mixed) -> None:
    quarantined = {row["source"]: (row["reason"], row["value"]) for row in rows(mixed.folder, QUARANTINE)}
    of_broken = range(1, 2 * len(mixed.broken), 2)
    wanted = {SOURCE.format(at): broken for at, broken in zip(of_broken, mixed.broken, strict=True)}

    wrong = {
        broken.what: (broken.reason, quarantined.get(source))
        for source, broken in wanted.items()
        if quarantined.get(source) != (broken.reason, broken.value)
    }

    assert not wrong
    assert set(quarantined) == set(wanted)
    assert {broken.reason for broken in mixed.broken} == set(REASONS)


def test_valid_records_are_in_bronze_once_and_their_replays_are_dropped(mixed: Mixed) -> None:
    stored = Counter((row["run_id"], row["sequence"]) for row in rows(mixed.folder, PROBE_MINUTES))

    assert stored == Counter((record["run_id"], record["sequence"]) for record in mixed.good)
    ingested = mixed.outcome.ingested
    assert (ingested.received, ingested.stored, ingested.quarantined) == (
        len(mixed.values),
        len(mixed.good),
        len(mixed.broken),
    )
    assert ingested.replayed == len(mixed.values) - len(mixed.good) - len(mixed.broken)
    assert all(verdict.success for verdict in mixed.outcome.verdicts), mixed.outcome.verdicts


def test_silver_and_gold_are_computed_from_valid_records_only(mixed: Mixed) -> None:
    assert_tables_equal(mixed.folder, mixed.good, Fleet.model_validate(FLEET), CLOCK)


def test_the_same_batch_again_writes_nothing(mixed: Mixed) -> None:
    before = counts(mixed.folder), versions(mixed.folder)

    again = mixed.process()

    assert (counts(mixed.folder), versions(mixed.folder)) == before
    assert (again.ingested.stored, again.silver_rows_changed, again.gold_rows_changed) == (0, 0, 0)
    sources = [row["source"] for row in rows(mixed.folder, QUARANTINE)]
    assert len(sources) == len(set(sources)) == len(mixed.broken)


def test_random_mutations_of_a_record_end_in_bronze_or_quarantine(
    spark: SparkSession, tmp_path: Path
) -> None:
    rng = Random(20260401)
    good = records_of(MINUTE)
    values = [mutated(PROBE_MINUTE.encode(good()), rng) for _ in range(FUZZED)]
    folder = tmp_path / "lake"
    _, pipeline = opened(spark, folder, FLEET)

    outcome = pipeline.process(raw_frame(spark, values), "fuzz", CLOCK)

    in_quarantine = {row["source"]: row["value"] for row in rows(folder, QUARANTINE)}
    in_bronze = {row["source"] for row in rows(folder, PROBE_MINUTES)}
    ingested = outcome.ingested
    assert ingested.received == FUZZED == ingested.stored + ingested.replayed + ingested.quarantined
    assert (len(in_bronze), len(in_quarantine)) == (ingested.stored, ingested.quarantined)
    assert not in_bronze & set(in_quarantine)
    assert all(values[int(source.rpartition("/")[2])] == value for source, value in in_quarantine.items())
    assert ingested.stored > FUZZED // 50, "mutations so harsh that nothing survives them show little"
    assert ingested.quarantined > FUZZED // 2


def test_spark_and_python_agree_on_what_can_be_decoded(spark: SparkSession) -> None:
    rng = Random(7)
    good = records_of(MINUTE)
    small = good() | {
        "attempted": 3,
        "acknowledged": 2,
        "received": 1,
        "ack_us": (1000, 2000),
        "e2e_us": (3000,),
        "produce_failures": {"ACK_LATE": 1},
        "consume_failures": {"NOT_RECEIVED": 1},
        "rack": None,
    }
    bases = [PROBE_MINUTE.encode(good()), PROBE_MINUTE.encode(small)]
    values: list[bytes | None] = [broken.value for broken in broken_records(good, CLOCK)]
    values += [mutated(rng.choice(bases), rng) for _ in range(FUZZED)]

    reasons = find_decoding_reasons(values)
    disagreements = Counter(
        (f"one by one: {wanted}", f"together: {reasons[at]}")
        for at, value in enumerate(values)
        if reasons[at] not in (wanted := reasons_in_python(value))
    )
    assert not disagreements
    assert set(REASONS_OF_DECODING) < set(reasons)


def find_decoding_reasons(values: Sequence[bytes | None]) -> list[str | None]:
    """Return why each value cannot be decoded, None if it can."""
    positions = list(range(len(values)))
    raw = pa.table(
        {
            "value": pa.array(values, pa.binary()),
            "source": list(map(str, positions)),
            "position": positions,
            "hint": pa.nulls(len(values), pa.string()),
        }
    )
    refused = check_raw_records(raw, ContractRules({"orders"}, CLOCK, None, None)).refused
    reasons = dict(zip(refused["source"].to_pylist(), refused["reason"].to_pylist(), strict=True))
    of_values = [reasons.get(str(position)) for position in positions]
    return [reason if reason in REASONS_OF_DECODING else None for reason in of_values]


@pytest.mark.parametrize(
    ("field", "millis"),
    [
        ("minute", -62_135_596_860_000),  # one minute before the year 1
        ("minute", 253_402_300_800_000),  # the year 10000
        ("minute", -(2**63)),
        ("emitted_at", -62_135_596_860_000),
        ("emitted_at", 253_402_300_800_000),
        ("emitted_at", 2**63 - 1),
    ],
)
def test_an_invalid_time_is_not_decodable(spark: SparkSession, field: str, millis: int) -> None:
    times = {"minute": int(MINUTE.timestamp()) * 1000, "emitted_at": int(CLOCK.timestamp()) * 1000}
    value = encode_untimed(good_record(1, MINUTE) | times | {field: millis})

    assert reasons_in_python(value) == ("not_decodable",)
    assert find_decoding_reasons([value]) == ["not_decodable"]


def test_records_before_the_oldest_accepted_minute_are_too_old(spark: SparkSession, tmp_path: Path) -> None:
    oldest = MINUTE - timedelta(days=35)
    values = [
        PROBE_MINUTE.encode(good_record(n, minute))
        for n, minute in enumerate((oldest, oldest - timedelta(minutes=1)))
    ]
    lake, _ = opened(spark, tmp_path / "lake", FLEET)
    bronze = BronzeWriter(spark, lake, Fleet.model_validate(FLEET))

    limited, _ = bronze.ingest(raw_frame(spark, values), CLOCK, oldest)
    unlimited, _ = bronze.ingest(raw_frame(spark, values[1:], first=1), CLOCK)

    assert (limited.stored, limited.quarantined) == (1, 1)
    assert (unlimited.stored, unlimited.quarantined) == (1, 0)


def test_batches_without_a_valid_record_leave_silver_and_gold_empty(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "lake"
    _, pipeline = opened(spark, folder, FLEET)

    for number, values in enumerate(([], [b"noise"])):
        outcome = pipeline.process(raw_frame(spark, values), f"part/{number}", CLOCK)
        assert (outcome.silver_rows_changed, outcome.gold_rows_changed) == (0, 0)
        assert outcome.ingested.quarantined == len(values)
        assert all(verdict.success for verdict in outcome.verdicts), outcome.verdicts


def test_a_record_emitted_in_the_far_future_leaves_bronze_readable(
    spark: SparkSession, tmp_path: Path
) -> None:
    late = good_record(1, MINUTE) | {"emitted_at": datetime(2300, 1, 1, tzinfo=UTC)}
    folder = tmp_path / "lake"
    lake, _ = opened(spark, folder, FLEET)

    BronzeWriter(spark, lake, Fleet.model_validate(FLEET)).ingest(
        raw_frame(spark, [PROBE_MINUTE.encode(late)]), CLOCK
    )

    assert [row["emitted_at"] for row in rows(folder, PROBE_MINUTES)] == [late["emitted_at"]]
