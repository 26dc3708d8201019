"""Leases parsed from JSON, and the errors for invalid ones."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_operations.recovery.primaries.plan.primary_lease import (
    PrimaryLease,
    PrimaryLeaseError,
    next_epoch,
    parse_lease,
    parse_leases,
)

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
FULL = {"service": "billing", "primary": "north", "epoch": 3, "lease_until": "2026-03-02T13:00:00+01:00"}


def parse_error(text: bytes) -> str:
    with pytest.raises(PrimaryLeaseError) as refusal:
        parse_leases(text, "labels")
    (line,) = str(refusal.value).splitlines()
    return line


def test_epoch_and_expiry_of_a_lease_are_optional() -> None:
    bare = {"service": "billing", "primary": "north"}
    text = json.dumps([FULL, bare, bare | {"epoch": None, "lease_until": None, "note": "by hand"}])
    plain = PrimaryLease("billing", "north")
    assert parse_leases(text.encode(), "labels") == (PrimaryLease("billing", "north", 3, NOON), plain, plain)
    assert parse_leases(b" [] ", "labels") == ()
    assert parse_lease(json.dumps(FULL).encode(), "platform.primaries") == PrimaryLease(
        "billing", "north", 3, NOON
    )


def test_a_lease_is_active_until_it_expires() -> None:
    assert not PrimaryLease("billing", "north", 3, NOON).is_active(NOON)
    assert PrimaryLease("billing", "north", 3, NOON.replace(minute=1)).is_active(NOON)
    assert PrimaryLease("billing", "north").is_active(NOON)


def test_the_description_of_a_lease_is_one_line() -> None:
    assert (
        PrimaryLease("billing", "north", 3, NOON).description
        == "north at epoch 3, until 2026-03-02T12:00:00Z"
    )
    assert PrimaryLease("billing", "a\nb").description == '"a\\nb" without an epoch, without expiry'


def test_the_next_epoch_is_higher_than_all_earlier_ones() -> None:
    leases = [
        PrimaryLease("billing", "north", 7, NOON),
        PrimaryLease("billing", "south", 3),
        PrimaryLease("billing", "east"),
    ]
    assert next_epoch(leases) == 8
    assert next_epoch([]) == next_epoch(leases[2:]) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "labels: line 1 is not valid JSON"),
        (b"[\n{", "labels: line 2 is not valid JSON"),
        (b"\xff", "labels: not text: give JSON in UTF-8"),
        (b'{"service": "billing"}', 'labels: {"service": "billing"} is not a list: print [{'),
        (b"[" * 100_000, "nested too deeply"),
        (b"[" + b"9" * 5000 + b"]", "a number is too long"),
        (b'["billing"]', 'labels: [0]: "billing" is not a lease: give {'),
        (b'[{"service": "a", "service": "b"}]', "service is given twice: remove one"),
        (b'[{"service": "a"}]', "labels: [0]: primary is missing: a lease has service and primary"),
        (b'[{"service": "", "primary": "n"}]', 'service is "": give a name'),
        (b'[{"service": "a", "primary": null}]', "primary is null: give a name"),
    ],
)
def test_an_invalid_list_of_leases_is_reported_in_one_line(text: bytes, message: str) -> None:
    assert message in parse_error(text)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epoch": -1}, "epoch is -1: give a whole number, or omit the epoch"),
        ({"epoch": 2**63}, "epoch is 9223372036854775808"),
        ({"epoch": True}, "epoch is true"),
        ({"epoch": 1.5}, "epoch is 1.5"),
        ({"epoch": "3"}, 'epoch is "3"'),
        ({"lease_until": "soon"}, 'lease_until is "soon": give a time with its zone'),
        ({"lease_until": "2026-03-02T12:00:00"}, "give a time with its zone"),
        ({"lease_until": 1772452800}, "lease_until is 1772452800"),
        ({"lease_until": "0001-01-01T00:00:00+23:00"}, "give a time with its zone"),
        ({"lease_until": ["x" * 90]}, 'lease_until is ["xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...'),
    ],
)
def test_the_error_names_the_index_of_the_invalid_lease(change: dict[str, Any], message: str) -> None:
    line = parse_error(json.dumps([FULL, FULL | change]).encode())
    assert line.startswith("labels: [1]: ")
    assert message in line


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2**64) | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
LEASES = st.fixed_dictionaries(
    {"service": st.text(max_size=3) | JSON, "primary": st.text(max_size=3) | JSON},
    optional={"epoch": st.integers(0, 9) | JSON, "lease_until": st.datetimes().map(str) | JSON},
)


@given(st.binary(max_size=20) | (st.lists(LEASES) | JSON).map(lambda document: json.dumps(document).encode()))
def test_any_output_is_parsed_or_rejected_in_one_line(text: bytes) -> None:
    try:
        lines = [lease.description for lease in parse_leases(text, "labels")]
    except PrimaryLeaseError as refusal:
        lines = [str(refusal)]
    assert all(len(line.splitlines()) == 1 for line in lines)
