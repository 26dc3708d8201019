"""Claims, as a compacted topic has them; the broker is stood in for."""

from collections.abc import Iterable, Mapping, Sequence

import pytest

from fleetgauge_core.fleet import Fleet, Primaries
from fleetgauge_core.kafka import KafkaUnavailableError, Record
from fleetgauge_operations.recovery.primaries import lease_store_reader
from fleetgauge_operations.recovery.primaries.plan.primary_lease import Claim, ClaimsError

FLEET = Fleet.model_validate({"clusters": [{"id": "north", "bootstrap": "127.0.0.1:1"}]})
PRIMARIES = Primaries(topic="labels", cluster="north", services={"a": ".*"})
NORTH, SOUTH = (f'{{"service": "a", "primary": "{one}"}}'.encode() for one in ("north", "south"))


def claims(
    monkeypatch: pytest.MonkeyPatch,
    records: Sequence[Record],
    ends: Mapping[int, int],
    stalls: bool = False,
) -> tuple[Claim, ...]:
    class Reader:
        def __init__(self, *_: object) -> None:
            self.left = list(records)

        def start(self) -> None: ...

        def stop(self) -> None: ...

        def partitions(self) -> tuple[int, ...]:
            return tuple(ends)

        def ends(self, _: object) -> Mapping[int, int]:
            return ends

        def add(self, _: Iterable[int], from_beginning: bool) -> None:
            assert from_beginning

        def poll(self, _: float) -> Record | None:
            return self.left.pop(0) if self.left else None

        def bounds(self, _: object) -> None:
            if stalls:
                raise KafkaUnavailableError("no answer")

    monkeypatch.setattr(lease_store_reader, "TopicReader", Reader)
    return lease_store_reader.claims_now(PRIMARIES, FLEET)


def test_of_each_key_the_last_value_counts_unless_it_was_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    records = [
        Record(0, 0, NORTH, b"one"),
        Record(1, 0, NORTH, b"gone"),
        Record(0, 1, b"not a claim", b"two"),
        Record(0, 2, SOUTH, b"one"),
        Record(1, 1, b"", b"gone"),
        Record(0, 3, b"", b"two"),
    ]
    assert claims(monkeypatch, records, {0: 4, 1: 2, 2: 0}) == (Claim("a", "south"),)


def test_what_is_written_while_it_is_read_is_of_the_next_time(monkeypatch: pytest.MonkeyPatch) -> None:
    records = [Record(0, 0, NORTH, b"one"), Record(0, 5, SOUTH, b"one")]
    assert claims(monkeypatch, records, {0: 2}) == (Claim("a", "north"),)


def test_the_marker_of_a_transaction_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert claims(monkeypatch, [Record(0, 0, NORTH, b"one")], {0: 2}) == (Claim("a", "north"),)


def test_a_topic_without_records_has_no_claims(monkeypatch: pytest.MonkeyPatch) -> None:
    assert claims(monkeypatch, [], {0: 0}) == ()


@pytest.mark.parametrize(
    ("records", "stalls", "words"),
    [
        ([], False, "labels: nothing can be read of it: is there the right to read it?"),
        ([Record(0, 0, NORTH, b"one")], True, "labels: no answer"),
        ([Record(0, 0, NORTH)], False, "labels: partition 0, offset 0 has no key: give each claim one"),
        ([Record(0, 1, b"{}", b"one")], False, "labels: partition 0, offset 1: service is missing"),
    ],
)
def test_what_cannot_be_read_is_one_line(
    monkeypatch: pytest.MonkeyPatch, records: Sequence[Record], stalls: bool, words: str
) -> None:
    with pytest.raises(ClaimsError) as refusal:
        claims(monkeypatch, records, {0: 2}, stalls)
    (line,) = str(refusal.value).splitlines()
    assert line.startswith(words)
