"""Avro files give the same raw records as a topic; an unreadable part of a file is one row with a reason."""

import copy
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import fastavro
import pytest
from pyspark.sql import SparkSession

from fleetgauge_core.contract import (
    HEADER_BYTES,
    PROBE_MINUTE,
    PROBE_PULSE,
    RecordDecodeError,
)
from fleetgauge_core.tables import PROBE_MINUTES, QUARANTINE
from fleetgauge_pipelines.io.avro_files import RawRecord, read_avro_records
from fleetgauge_pipelines.io.record_files import list_record_files, read_record_files
from tests.spark.broken import Record, good_record
from tests.spark.lakes import opened, rows

CODECS = ("null", "deflate")
CLOCK = datetime(2026, 4, 1, 12, 0, 30, tzinfo=UTC)
MINUTE = CLOCK.replace(second=0) - timedelta(minutes=30)
RECORDS = [
    good_record(n, MINUTE + n // 6 * timedelta(minutes=1), "orders", n % 3 + 1, ("client", "leader")[n % 2])
    for n in range(30)
]
SYNC_BYTES = 16
FUZZED_FILES = 400


def schema_of(text: str) -> dict[str, Any]:
    schema: dict[str, Any] = json.loads(text)
    return schema


def without_field(name: str) -> dict[str, Any]:
    schema = copy.deepcopy(schema_of(PROBE_MINUTE.text))
    schema["fields"] = [field for field in schema["fields"] if field["name"] != name]
    return schema


def write(
    path: Path,
    records: Sequence[Mapping[str, Any]] = RECORDS,
    codec: str = "null",
    schema: dict[str, Any] | None = None,
    block_bytes: int = 4000,
) -> Path:
    """Write a container file of several blocks."""
    with path.open("wb") as file:
        fastavro.writer(
            file, schema or schema_of(PROBE_MINUTE.text), records, codec=codec, sync_interval=block_bytes
        )
    return path


def decoded(rows_: Sequence[RawRecord]) -> list[int]:
    """Return the sequences of the rows that can be decoded."""
    return [PROBE_MINUTE.decode(value)["sequence"] for value, _, _, hint in rows_ if value and hint is None]


@pytest.mark.parametrize("codec", CODECS)
def test_records_of_a_file_have_the_bytes_that_a_topic_would_carry(tmp_path: Path, codec: str) -> None:
    path = write(tmp_path / "some.avro", codec=codec)

    raw_records = list(read_avro_records(path, 3))

    assert [value for value, _, _, _ in raw_records] == [PROBE_MINUTE.encode(record) for record in RECORDS]
    assert [source for _, source, _, _ in raw_records] == [f"some.avro:{n}" for n in range(len(RECORDS))]
    assert [position for _, _, position, _ in raw_records] == [(3 << 40) + n for n in range(len(RECORDS))]
    assert {hint for _, _, _, hint in raw_records} == {None}


@pytest.mark.parametrize("codec", CODECS)
def test_a_truncated_last_block_is_one_not_decodable_row_after_the_others(tmp_path: Path, codec: str) -> None:
    path = write(tmp_path / "torn.avro", codec=codec)
    data = path.read_bytes()
    last_block = data.rindex(data[-SYNC_BYTES:], 0, -SYNC_BYTES) + SYNC_BYTES
    path.write_bytes(data[: (last_block + len(data)) // 2])

    raw_records = list(read_avro_records(path, 0))

    whole = len(raw_records) - 1
    assert 0 < whole < len(RECORDS)
    assert decoded(raw_records) == list(range(whole))
    assert raw_records[-1] == (None, f"torn.avro:{whole}", whole, "not_decodable")


@pytest.mark.parametrize("content", [b"", b"Obj", b"Obj\x01", b"cluster_id,minute\norders,1\n", bytes(200)])
def test_a_file_that_is_not_avro_is_one_not_decodable_row(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other.avro"
    path.write_bytes(content)

    assert list(read_avro_records(path, 1)) == [(None, "other.avro:0", 1 << 40, "not_decodable")]


def test_a_file_with_an_unknown_codec_is_one_not_decodable_row(tmp_path: Path) -> None:
    path = write(tmp_path / "packed.avro", codec="deflate")
    path.write_bytes(path.read_bytes().replace(b"deflate", b"packed!", 1))

    assert list(read_avro_records(path, 0)) == [(None, "packed.avro:0", 0, "not_decodable")]


@pytest.mark.parametrize("field", ["run_id", "attempted", "e2e_us", "emitted_at"])
def test_a_file_without_a_required_field_gives_records_with_that_hint(tmp_path: Path, field: str) -> None:
    path = write(tmp_path / "lacking.avro", schema=without_field(field))

    raw_records = list(read_avro_records(path, 0))

    assert [hint for _, _, _, hint in raw_records] == ["missing_field"] * len(RECORDS)
    assert all(value and value[2:HEADER_BYTES] != PROBE_MINUTE.fingerprint for value, _, _, _ in raw_records)


def test_a_file_of_other_records_carries_their_fingerprint(tmp_path: Path) -> None:
    pulse = {
        "agent_id": "a",
        "run_id": "r",
        "vantage": "v",
        "cluster_id": "orders",
        "sequence": 1,
        "emitted_at": CLOCK,
        "window_ms": 15_000,
        "brokers": [],
    }
    path = write(tmp_path / "pulses.avro", [pulse], schema=schema_of(PROBE_PULSE.text))

    [(value, _, _, hint)] = read_avro_records(path, 0)

    assert (value, hint) == (PROBE_PULSE.encode(pulse), None)


def test_documentation_and_logical_types_do_not_make_another_schema(tmp_path: Path) -> None:
    schema = schema_of(PROBE_MINUTE.text) | {"doc": "another one"}
    for field in schema["fields"]:
        if isinstance(field["type"], dict):
            field["type"].pop("logicalType", None)
    plain = [
        record | {name: int(record[name].timestamp() * 1000) for name in ("minute", "emitted_at")}
        for record in RECORDS
    ]
    path = write(tmp_path / "plain.avro", plain, schema=schema)

    assert [value for value, _, _, _ in read_avro_records(path, 0)] == [
        PROBE_MINUTE.encode(record) for record in RECORDS
    ]


@pytest.mark.parametrize("codec", CODECS)
def test_a_damaged_file_never_raises_an_error(tmp_path: Path, codec: str) -> None:
    data = write(tmp_path / "whole.avro", codec=codec).read_bytes()
    path = tmp_path / "damaged.avro"
    rng = Random(codec)
    for _ in range(FUZZED_FILES):
        damaged = bytearray(data)
        for _ in range(rng.choice((1, 1, 2, 4))):
            damaged[rng.randrange(len(data))] = rng.randrange(256)
        path.write_bytes(damaged)

        raw_records = list(read_avro_records(path, 0))

        assert [source for _, source, _, _ in raw_records] == [
            f"damaged.avro:{n}" for n in range(len(raw_records))
        ]
        assert all(value is not None or hint == "not_decodable" for value, _, _, hint in raw_records)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write a valid file, a truncated one, and files with invalid records, a missing field or no Avro."""
    folder = tmp_path / "records"
    (folder / "deeper").mkdir(parents=True)
    write(folder / "a-good.avro", RECORDS[:20], codec="deflate")
    torn = write(folder / "b-torn.avro", RECORDS[20:])
    torn.write_bytes(torn.read_bytes()[:-1])
    write(folder / "c-broken.avro", [RECORDS[0] | {"sequence": 900, "ack_us": (1,)}, RECORDS[0]])
    write(folder / "d-lacking.avro", RECORDS[:2], schema=without_field("attempted"))
    (folder / "e-text.avro").write_text("not Avro")
    (folder / "f-notes.txt").write_text("no record either")
    write(folder / "deeper" / "g-unseen.avro", RECORDS)
    return folder


def test_files_of_a_folder_end_in_bronze_or_quarantine(
    spark: SparkSession, folder: Path, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    _, pipeline = opened(spark, lake, {"clusters": [{"id": "orders", "bootstrap": "orders:9092"}]})

    outcome = pipeline.process(read_record_files(spark, list_record_files(folder)), "files", CLOCK)

    stored = {row["sequence"] for row in rows(lake, PROBE_MINUTES)}
    reasons = {row["source"]: row["reason"] for row in rows(lake, QUARANTINE)}
    torn = sorted(source for source in reasons if source.startswith("b-torn.avro:"))
    assert reasons == {
        "c-broken.avro:0": "counts_do_not_add_up",
        "d-lacking.avro:0": "missing_field",
        "d-lacking.avro:1": "missing_field",
        "e-text.avro:0": "not_decodable",
        torn[0]: "not_decodable",
    }
    survivors = int(torn[0].rpartition(":")[2])
    assert stored == set(range(20 + survivors))
    assert (outcome.ingested.replayed, outcome.ingested.quarantined) == (1, 5)
    kept = {row["source"]: row["value"] for row in rows(lake, QUARANTINE)}
    assert PROBE_MINUTE.decode(kept["c-broken.avro:0"])["sequence"] == 900
    assert kept["e-text.avro:0"] is None


def test_a_folder_without_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no \*\.avro or \*\.parquet file"):
        list_record_files(tmp_path)


def test_records_split_from_a_file_are_those_written_to_it(tmp_path: Path) -> None:
    extreme: Record = RECORDS[0] | {
        "rack": None,
        "leader_epoch": None,
        "ack_us": (),
        "acknowledged": 0,
        "e2e_us": (),
        "produce_failures": {"ACK_LATE": 100, "ä": 0},
        "sequence": 2**63 - 1,
    }
    [(value, _, _, _)] = read_avro_records(write(tmp_path / "extreme.avro", [extreme]), 0)

    try:
        raw_records = PROBE_MINUTE.decode(value or b"")
    except RecordDecodeError as error:
        pytest.fail(str(error))
    assert raw_records == {name: list(v) if isinstance(v, tuple) else v for name, v in extreme.items()}
