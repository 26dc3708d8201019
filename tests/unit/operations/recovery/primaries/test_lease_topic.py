"""Leases read from a compacted topic, with a substitute for the broker."""

from collections.abc import Iterable, Mapping, Sequence

import pytest

from fleetgauge_core.fleet import Fleet, Primaries
from fleetgauge_core.kafka import ConsumerRecord, KafkaUnavailableError
from fleetgauge_operations.recovery.primaries import lease_store_reader
from fleetgauge_operations.recovery.primaries.plan.primary_lease import PrimaryLease, PrimaryLeaseError

FLEET = Fleet.model_validate({"clusters": [{"id": "north", "bootstrap": "127.0.0.1:1"}]})
PRIMARIES = Primaries(topic="labels", cluster="north", services={"a": ".*"})
NORTH, SOUTH = (f'{{"service": "a", "primary": "{name}"}}'.encode() for name in ("north", "south"))


def read_leases(
    monkeypatch: pytest.MonkeyPatch,
    records: Sequence[ConsumerRecord],
    ends: Mapping[int, int],
    stalls: bool = False,
) -> tuple[PrimaryLease, ...]:
    class Reader:
        def __init__(self, *_: object) -> None:
            self.remaining = list(records)

        def start(self) -> None: ...

        def stop(self) -> None: ...

        def wait_for_partitions(self) -> tuple[int, ...]:
            return tuple(ends)

        def read_end_offsets(self, _: object) -> Mapping[int, int]:
            return ends

        def assign(self, _: Iterable[int], from_beginning: bool) -> None:
            assert from_beginning

        def poll(self, _: float) -> ConsumerRecord | None:
            return self.remaining.pop(0) if self.remaining else None

        def read_offset_bounds(self, _: object) -> None:
            if stalls:
                raise KafkaUnavailableError("no answer")

    monkeypatch.setattr(lease_store_reader, "TopicReader", Reader)
    return lease_store_reader.read_leases(PRIMARIES, FLEET)


def test_the_latest_value_of_each_key_counts_unless_it_is_a_tombstone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    records = [
        ConsumerRecord(0, 0, NORTH, b"key-1"),
        ConsumerRecord(1, 0, NORTH, b"deleted"),
        ConsumerRecord(0, 1, b"not a claim", b"key-2"),
        ConsumerRecord(0, 2, SOUTH, b"key-1"),
        ConsumerRecord(1, 1, b"", b"deleted"),
        ConsumerRecord(0, 3, b"", b"key-2"),
    ]
    assert read_leases(monkeypatch, records, {0: 4, 1: 2, 2: 0}) == (PrimaryLease("a", "south"),)


def test_records_written_during_the_read_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    records = [ConsumerRecord(0, 0, NORTH, b"key-1"), ConsumerRecord(0, 5, SOUTH, b"key-1")]
    assert read_leases(monkeypatch, records, {0: 2}) == (PrimaryLease("a", "north"),)


def test_a_transaction_marker_at_the_end_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_leases(monkeypatch, [ConsumerRecord(0, 0, NORTH, b"key-1")], {0: 2}) == (
        PrimaryLease("a", "north"),
    )


def test_an_empty_topic_has_no_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_leases(monkeypatch, [], {0: 0}) == ()


@pytest.mark.parametrize(
    ("records", "stalls", "message"),
    [
        ([], False, "labels: no record can be read: check the READ permission on the topic"),
        ([ConsumerRecord(0, 0, NORTH, b"key-1")], True, "labels: no answer"),
        (
            [ConsumerRecord(0, 0, NORTH)],
            False,
            "labels: the record at partition 0, offset 0 has no key: give each lease a key",
        ),
        ([ConsumerRecord(0, 1, b"{}", b"key-1")], False, "labels: partition 0, offset 1: service is missing"),
    ],
)
def test_an_unreadable_topic_is_reported_in_one_line(
    monkeypatch: pytest.MonkeyPatch, records: Sequence[ConsumerRecord], stalls: bool, message: str
) -> None:
    with pytest.raises(PrimaryLeaseError) as refusal:
        read_leases(monkeypatch, records, {0: 2}, stalls)
    (line,) = str(refusal.value).splitlines()
    assert line.startswith(message)
