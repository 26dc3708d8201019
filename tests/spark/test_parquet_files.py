"""Parquet files give the bytes that agents would have sent; an unreadable part is one row with a reason."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fleetgauge_core.contract import HEADER_BYTES, PROBE_MINUTE
from fleetgauge_pipelines.io.parquet_files import read_parquet_records
from tests.spark.broken import Record, good_record

NOON = datetime(2026, 4, 1, 12, tzinfo=UTC)
TIMES = ("minute", "emitted_at")
RECORDS = [
    good_record(n, NOON + n * timedelta(minutes=1), leg=("client", "leader")[n % 2])
    | {"produce_failures": {"ACK_LATE": n}, "rack": None if n % 3 else "z1", "leader_epoch": None}
    for n in range(2500)
]
BRONZE = pa.schema(
    [
        *((name, pa.string()) for name in ("agent_id", "agent_version", "run_id")),
        ("sequence", pa.int64()),
        *((name, pa.string()) for name in ("vantage", "cluster_id", "kafka_cluster_uuid")),
        ("broker_id", pa.int32()),
        ("rack", pa.string()),
        ("leg", pa.string()),
        ("minute", pa.timestamp("us", "UTC")),
        ("expected_brokers", pa.list_(pa.int32())),
        *((name, pa.int32()) for name in ("attempted", "acknowledged", "received")),
        *((name, pa.list_(pa.int32())) for name in ("ack_us", "e2e_us")),
        *((name, pa.map_(pa.string(), pa.int32())) for name in ("produce_failures", "consume_failures")),
        *((name, pa.int32()) for name in ("lost", "duplicated", "out_of_order")),
        *((name, pa.int32()) for name in ("schedule_lag_p95_us", "schedule_lag_max_us")),
        ("led_by", pa.list_(pa.int32())),
        ("leader_epoch", pa.int32()),
        ("emitted_at", pa.timestamp("us", "UTC")),
        ("source", pa.string()),
    ]
)


def write(path: Path, records: Sequence[Record], **types: pa.DataType) -> Path:
    """Write columns with the types of bronze, except for those whose type is given."""
    fields = [field.with_type(types.get(field.name, field.type)) for field in BRONZE]
    pq.write_table(pa.Table.from_pylist(list(records), schema=pa.schema(fields)), path, row_group_size=700)
    return path


def read_raw(path: Path, number: int = 0) -> list[Any]:
    return list(read_parquet_records(path, number))


def test_each_row_has_the_bytes_that_its_agent_would_have_sent(tmp_path: Path) -> None:
    rows = read_raw(write(tmp_path / "some.parquet", RECORDS), 3)

    assert [value for value, *_ in rows] == [PROBE_MINUTE.encode(record) for record in RECORDS]
    assert [source for _, source, _, _ in rows] == [f"some.parquet:{n}" for n in range(len(RECORDS))]
    assert [position for _, _, position, _ in rows] == [(3 << 40) + n for n in range(len(RECORDS))]
    assert {hint for *_, hint in rows} == {None}


def _millis(record: Record) -> Record:
    return record | {name: int(record[name].timestamp() * 1000) for name in TIMES}


@pytest.mark.parametrize(
    ("type_", "records"),
    [
        (pa.int64(), [_millis(record) for record in RECORDS[:5]]),
        (pa.timestamp("ms", "Europe/Zurich"), RECORDS[:5]),
        (pa.timestamp("ns"), [r | {n: r[n].replace(tzinfo=None) for n in TIMES} for r in RECORDS[:5]]),
    ],
    ids=["milliseconds", "another zone", "no zone"],
)
def test_times_may_be_timestamps_or_milliseconds(
    tmp_path: Path, type_: pa.DataType, records: Sequence[Record]
) -> None:
    rows = read_raw(write(tmp_path / "times.parquet", records, **dict.fromkeys(TIMES, type_)))
    assert [value for value, *_ in rows] == [PROBE_MINUTE.encode(record) for record in RECORDS[:5]]


def test_an_optional_field_may_be_missing(tmp_path: Path) -> None:
    path = tmp_path / "poor.parquet"
    write(path, RECORDS[1:2])
    pq.write_table(pq.read_table(path).drop_columns(["rack", "leader_epoch", "source"]), path)
    assert read_raw(path) == [(PROBE_MINUTE.encode(RECORDS[1]), "poor.parquet:0", 0, None)]


@pytest.mark.parametrize("name", ["run_id", "minute", "attempted", "e2e_us", "produce_failures"])
def test_a_null_or_missing_field_gives_a_record_without_it(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / "lacking.parquet", [RECORDS[0], RECORDS[1] | {name: None}])
    [whole, lacking] = read_raw(path)
    assert whole[3] is None
    assert lacking[3] == "missing_field"
    assert lacking[0][2:HEADER_BYTES] != PROBE_MINUTE.fingerprint
    assert lacking[0][HEADER_BYTES:].startswith(b"\x16host/zone-a")

    pq.write_table(pq.read_table(path).drop_columns([name]), path)
    assert [(hint, value[:HEADER_BYTES]) for value, *_, hint in read_raw(path)] == [
        ("missing_field", lacking[0][:HEADER_BYTES])
    ] * 2


@pytest.mark.parametrize(
    ("change", "types", "keeps_bytes"),
    [
        ({"attempted": 2**40}, {"attempted": pa.int64()}, True),
        ({"attempted": "many"}, {"attempted": pa.string()}, False),
        ({"ack_us": [1, None]}, {}, False),
        ({"minute": "noon"}, {"minute": pa.string()}, False),
    ],
    ids=["too large", "text", "a null among latencies", "text for a time"],
)
def test_a_value_of_another_type_is_not_decodable(
    tmp_path: Path, change: Mapping[str, Any], types: dict[str, pa.DataType], keeps_bytes: bool
) -> None:
    [row] = read_raw(write(tmp_path / "typed.parquet", [RECORDS[0] | dict(change)], **types))
    assert (row[3], row[0] is not None) == ("not_decodable", keeps_bytes)


def test_rows_of_other_data_lack_every_field(tmp_path: Path) -> None:
    path = tmp_path / "orders.parquet"
    pq.write_table(pa.table({"order": [1, 2, 3]}), path)
    assert [hint for *_, hint in read_raw(path)] == ["missing_field"] * 3


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1 and nothing PAR1", b"cluster_id,minute\n"])
def test_a_file_that_is_not_parquet_is_one_not_decodable_row(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other.parquet"
    path.write_bytes(content)
    assert read_raw(path, 1) == [(None, "other.parquet:0", 1 << 40, "not_decodable")]


def test_a_truncated_file_is_one_not_decodable_row(tmp_path: Path) -> None:
    path = write(tmp_path / "cut.parquet", RECORDS)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    assert read_raw(path) == [(None, "cut.parquet:0", 0, "not_decodable")]
