"""What a store of claims may say, and what is said of what cannot be read."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_operations.recovery.primaries.plan.primary_lease import (
    Claim,
    ClaimsError,
    listed,
    next_epoch,
    single,
)

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
FULL = {"service": "billing", "primary": "north", "epoch": 3, "lease_until": "2026-03-02T13:00:00+01:00"}


def refused(text: bytes) -> str:
    with pytest.raises(ClaimsError) as refusal:
        listed(text, "labels")
    (line,) = str(refusal.value).splitlines()
    return line


def test_a_claim_may_do_without_epoch_and_lease() -> None:
    bare = {"service": "billing", "primary": "north"}
    text = json.dumps([FULL, bare, bare | {"epoch": None, "lease_until": None, "note": "by hand"}])
    plain = Claim("billing", "north")
    assert listed(text.encode(), "labels") == (Claim("billing", "north", 3, NOON), plain, plain)
    assert listed(b" [] ", "labels") == ()
    assert single(json.dumps(FULL).encode(), "platform.primaries") == Claim("billing", "north", 3, NOON)


def test_a_lease_holds_until_it_is_over_and_without_an_end_for_ever() -> None:
    assert not Claim("billing", "north", 3, NOON).holds(NOON)
    assert Claim("billing", "north", 3, NOON.replace(minute=1)).holds(NOON)
    assert Claim("billing", "north").holds(NOON)


def test_a_claim_is_told_in_words() -> None:
    assert Claim("billing", "north", 3, NOON).words == "north at epoch 3, until 2026-03-02T12:00:00Z"
    assert Claim("billing", "a\nb").words == '"a\\nb" without an epoch, without an end'


def test_the_next_epoch_is_after_all_that_were_seen() -> None:
    claims = [Claim("billing", "north", 7, NOON), Claim("billing", "south", 3), Claim("billing", "east")]
    assert next_epoch(claims) == 8
    assert next_epoch([]) == next_epoch(claims[2:]) == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "labels: line 1 is not JSON"),
        (b"[\n{", "labels: line 2 is not JSON"),
        (b"\xff", "labels: not text: give JSON in UTF-8"),
        (b'{"service": "billing"}', 'labels: {"service": "billing"} is no list: print [{'),
        (b"[" * 100_000, "brackets within brackets"),
        (b"[" + b"9" * 5000 + b"]", "a number of thousands of digits"),
        (b'["billing"]', 'labels: [0]: "billing" is no claim: give {'),
        (b'[{"service": "a", "service": "b"}]', "service is there twice: leave one"),
        (b'[{"service": "a"}]', "labels: [0]: primary is missing: a claim has service and primary"),
        (b'[{"service": "", "primary": "n"}]', 'service is "": give a name'),
        (b'[{"service": "a", "primary": null}]', "primary is null: give a name"),
    ],
)
def test_what_is_no_list_of_claims_is_one_line(text: bytes, words: str) -> None:
    assert words in refused(text)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"epoch": -1}, "epoch is -1: give a whole number, or leave it out"),
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
def test_the_second_claim_that_is_wrong_is_named(change: dict[str, Any], words: str) -> None:
    line = refused(json.dumps([FULL, FULL | change]).encode())
    assert line.startswith("labels: [1]: ")
    assert words in line


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2**64) | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
CLAIMS = st.fixed_dictionaries(
    {"service": st.text(max_size=3) | JSON, "primary": st.text(max_size=3) | JSON},
    optional={"epoch": st.integers(0, 9) | JSON, "lease_until": st.datetimes().map(str) | JSON},
)


@given(st.binary(max_size=20) | (st.lists(CLAIMS) | JSON).map(lambda one: json.dumps(one).encode()))
def test_whatever_is_printed_is_read_or_refused_in_one_line(text: bytes) -> None:
    try:
        lines = [one.words for one in listed(text, "labels")]
    except ClaimsError as refusal:
        lines = [str(refusal)]
    assert all(len(one.splitlines()) == 1 for one in lines)
