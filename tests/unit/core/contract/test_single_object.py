import json
from datetime import UTC, datetime
from typing import Any

import fastavro.schema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetgauge_core.contract import (
    HEADER_BYTES,
    HEALTH_EVENT,
    MAX_RECORD_BYTES,
    PROBE_MINUTE,
    PROBE_PULSE,
    AvroSchema,
    RecordDecodeError,
)
from fleetgauge_core.contract.single_object import compute_fingerprint

SCHEMAS = [PROBE_MINUTE, PROBE_PULSE, HEALTH_EVENT]
EVENT: dict[str, Any] = {
    "event_id": "e",
    "fingerprint": "f",
    "cluster_id": "orders",
    "broker_id": 3,
    "at": datetime(2026, 3, 2, 10, 0, 0, 5000, tzinfo=UTC),
    "from_state": "HEALTHY",
    "to_state": "SUSPECT",
    "kind": "BROKER_DOWN",
    "evidence": "{}",
}
VALUE = HEALTH_EVENT.encode(EVENT)
_STRINGS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
_MILLIS = st.datetimes(datetime(1990, 1, 1), datetime(2090, 1, 1), timezones=st.just(UTC)).map(  # noqa: DTZ001
    lambda at: at.replace(microsecond=at.microsecond // 1000 * 1000)
)
EVENTS = st.fixed_dictionaries(
    {name: _STRINGS for name in EVENT if name not in ("at", "broker_id")}
    | {"at": _MILLIS, "broker_id": st.none() | st.integers(-(2**31), 2**31 - 1)}
)


def _decode_error(schema: AvroSchema, value: bytes) -> RecordDecodeError:
    with pytest.raises(RecordDecodeError) as caught:
        schema.decode(value)
    return caught.value


@given(EVENTS)
def test_decoding_returns_the_encoded_fields(record: dict[str, Any]) -> None:
    assert HEALTH_EVENT.decode(HEALTH_EVENT.encode(record)) == record


@pytest.mark.parametrize("schema", SCHEMAS)
def test_the_fingerprint_is_crc_64_avro_in_little_endian_bytes(schema: AvroSchema) -> None:
    canonical = fastavro.schema.to_parsing_canonical_form(json.loads(schema.text))
    assert schema.fingerprint.hex() == fastavro.schema.fingerprint(canonical, "CRC-64-AVRO")


def test_the_fingerprint_of_null_is_that_of_the_avro_specification() -> None:
    assert int.from_bytes(compute_fingerprint("null"), "little") == 0x63DD24E7CC258F8A


def test_fingerprints_of_different_records_differ() -> None:
    assert len({schema.fingerprint for schema in SCHEMAS}) == len(SCHEMAS)


def test_the_documentation_in_a_schema_does_not_change_its_fingerprint() -> None:
    document = json.loads(PROBE_MINUTE.text)
    for field in document["fields"]:
        field.pop("doc", None)
    assert compute_fingerprint(document) == PROBE_MINUTE.fingerprint


@pytest.mark.parametrize("schema", SCHEMAS)
def test_a_value_starts_with_marker_and_fingerprint(schema: AvroSchema) -> None:
    assert schema.header == b"\xc3\x01" + schema.fingerprint
    assert len(schema.header) == HEADER_BYTES
    if schema is HEALTH_EVENT:
        assert VALUE.startswith(schema.header)


@pytest.mark.parametrize(
    "value", [b"", b"\xc3", b"\xc3\x01", VALUE[:9], b"{}" + VALUE[2:], b"\xc3\x02" + VALUE[2:]]
)
def test_a_value_without_the_marker_is_not_decodable(value: bytes) -> None:
    assert _decode_error(HEALTH_EVENT, value).reason == "not_decodable"


def test_a_value_of_another_record_has_an_unknown_fingerprint() -> None:
    error = _decode_error(PROBE_MINUTE, VALUE)
    assert error.reason == "unknown_fingerprint"
    assert error.detail == HEALTH_EVENT.fingerprint.hex()


@given(st.integers(HEADER_BYTES, len(VALUE) - 1))
def test_a_truncated_body_is_not_decodable(size: int) -> None:
    assert _decode_error(HEALTH_EVENT, VALUE[:size]).reason == "not_decodable"


@given(st.binary(min_size=1, max_size=50))
def test_bytes_after_the_record_are_rejected(tail: bytes) -> None:
    error = _decode_error(HEALTH_EVENT, VALUE + tail)
    assert error.reason == "trailing_bytes"
    assert error.detail.startswith(f"{len(tail)} bytes")


def test_a_value_of_64_kib_is_decoded_and_a_larger_one_rejected() -> None:
    room = MAX_RECORD_BYTES - len(HEALTH_EVENT.encode(EVENT | {"evidence": "x" * 60_000})) + 60_000
    largest = HEALTH_EVENT.encode(EVENT | {"evidence": "x" * room})
    assert len(largest) == MAX_RECORD_BYTES == 64 * 1024
    assert len(HEALTH_EVENT.decode(largest)["evidence"]) == room
    assert _decode_error(HEALTH_EVENT, largest + b"x").reason == "oversize"


@given(schema=st.sampled_from(SCHEMAS), body=st.binary(max_size=200))
@settings(deadline=None, max_examples=300)
def test_any_body_is_decoded_or_rejected_with_a_quarantine_reason(schema: AvroSchema, body: bytes) -> None:
    reason = None
    try:
        record = schema.decode(schema.header + body)
    except RecordDecodeError as error:
        reason = error.reason
    if reason is None:
        assert set(record) == {field["name"] for field in json.loads(schema.text)["fields"]}
    else:
        assert reason in ("not_decodable", "trailing_bytes")


def test_a_string_length_of_gigabytes_is_rejected_without_allocating_memory() -> None:
    claim = b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f"
    assert _decode_error(HEALTH_EVENT, HEALTH_EVENT.header + claim + b"x").reason == "not_decodable"


def test_a_decode_error_names_its_reason_and_detail() -> None:
    error = _decode_error(HEALTH_EVENT, b"junk")
    assert str(error) == f"{error.reason}: {error.detail}"
