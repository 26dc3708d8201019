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
    ContractError,
    Schema,
)
from fleetgauge_core.contract.single_object import fingerprint

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


def _refusal(schema: Schema, value: bytes) -> ContractError:
    with pytest.raises(ContractError) as caught:
        schema.decode(value)
    return caught.value


@given(EVENTS)
def test_what_is_encoded_is_decoded(record: dict[str, Any]) -> None:
    assert HEALTH_EVENT.decode(HEALTH_EVENT.encode(record)) == record


@pytest.mark.parametrize("schema", SCHEMAS)
def test_the_fingerprint_is_avros_in_little_endian_bytes(schema: Schema) -> None:
    canonical = fastavro.schema.to_parsing_canonical_form(json.loads(schema.text))
    assert schema.fingerprint.hex() == fastavro.schema.fingerprint(canonical, "CRC-64-AVRO")


def test_the_fingerprint_of_avros_null_is_the_one_in_its_specification() -> None:
    assert int.from_bytes(fingerprint("null"), "little") == 0x63DD24E7CC258F8A


def test_no_two_records_share_a_fingerprint() -> None:
    assert len({schema.fingerprint for schema in SCHEMAS}) == len(SCHEMAS)


def test_the_documentation_in_a_schema_does_not_change_its_fingerprint() -> None:
    document = json.loads(PROBE_MINUTE.text)
    for field in document["fields"]:
        field.pop("doc", None)
    assert fingerprint(document) == PROBE_MINUTE.fingerprint


@pytest.mark.parametrize("schema", SCHEMAS)
def test_a_value_starts_with_marker_and_fingerprint(schema: Schema) -> None:
    assert schema.header == b"\xc3\x01" + schema.fingerprint
    assert len(schema.header) == HEADER_BYTES
    if schema is HEALTH_EVENT:
        assert VALUE.startswith(schema.header)


@pytest.mark.parametrize(
    "value", [b"", b"\xc3", b"\xc3\x01", VALUE[:9], b"{}" + VALUE[2:], b"\xc3\x02" + VALUE[2:]]
)
def test_a_value_without_the_marker_is_not_decodable(value: bytes) -> None:
    assert _refusal(HEALTH_EVENT, value).reason == "not_decodable"


def test_another_records_value_has_an_unknown_fingerprint() -> None:
    error = _refusal(PROBE_MINUTE, VALUE)
    assert error.reason == "unknown_fingerprint"
    assert error.detail == HEALTH_EVENT.fingerprint.hex()


@given(st.integers(HEADER_BYTES, len(VALUE) - 1))
def test_a_truncated_body_is_not_decodable(size: int) -> None:
    assert _refusal(HEALTH_EVENT, VALUE[:size]).reason == "not_decodable"


@given(st.binary(min_size=1, max_size=50))
def test_bytes_behind_the_record_are_refused(tail: bytes) -> None:
    error = _refusal(HEALTH_EVENT, VALUE + tail)
    assert error.reason == "trailing_bytes"
    assert error.detail.startswith(f"{len(tail)} bytes")


def test_a_value_may_have_sixty_four_kib_and_not_a_byte_more() -> None:
    room = MAX_RECORD_BYTES - len(HEALTH_EVENT.encode(EVENT | {"evidence": "x" * 60_000})) + 60_000
    largest = HEALTH_EVENT.encode(EVENT | {"evidence": "x" * room})
    assert len(largest) == MAX_RECORD_BYTES == 64 * 1024
    assert len(HEALTH_EVENT.decode(largest)["evidence"]) == room
    assert _refusal(HEALTH_EVENT, largest + b"x").reason == "oversize"


@given(schema=st.sampled_from(SCHEMAS), body=st.binary(max_size=200))
@settings(deadline=None, max_examples=300)
def test_any_body_is_read_or_refused_in_the_quarantines_words(schema: Schema, body: bytes) -> None:
    reason = None
    try:
        record = schema.decode(schema.header + body)
    except ContractError as error:
        reason = error.reason
    if reason is None:
        assert set(record) == {field["name"] for field in json.loads(schema.text)["fields"]}
    else:
        assert reason in ("not_decodable", "trailing_bytes")


def test_a_length_that_claims_gigabytes_is_refused_and_allocates_nothing() -> None:
    claim = b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f"
    assert _refusal(HEALTH_EVENT, HEALTH_EVENT.header + claim + b"x").reason == "not_decodable"


def test_a_refusal_says_reason_and_detail() -> None:
    error = _refusal(HEALTH_EVENT, b"junk")
    assert str(error) == f"{error.reason}: {error.detail}"
