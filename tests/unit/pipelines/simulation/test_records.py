"""Whole records: what the contract wants of them."""

from datetime import timedelta

from fleetgauge_core.contract import (
    MAX_RECORD_BYTES,
    PROBE_MINUTE,
    Leg,
    ProbeMinute,
)
from fleetgauge_pipelines.simulation.records import probe_minutes
from tests.unit.pipelines.simulation.histories import history


def _records() -> list[ProbeMinute]:
    fleet = history(minutes=180, incidents_per_week=150)
    return [record for c in range(3) for hour in range(3) for record in probe_minutes(fleet.part(c, 0), hour)]


def test_they_encode_small_and_decode_to_what_they_were() -> None:
    for record in _records()[::97]:
        value = record.encode()
        assert len(value) < MAX_RECORD_BYTES / 10
        decoded = PROBE_MINUTE.decode(value)
        assert (decoded["ack_us"], decoded["minute"]) == (list(record.ack_us), record.minute)


def test_no_two_have_the_same_run_and_sequence() -> None:
    found = _records()
    assert len({(record.run_id, record.sequence) for record in found}) == len(found)
    assert len({record.run_id for record in found}) == 3


def test_counts_add_up_and_latencies_ascend() -> None:
    found = _records()
    assert any(record.produce_failures for record in found)
    for record in found:
        failed = sum(record.produce_failures.values())
        assert record.attempted == len(record.ack_us) + failed == record.acknowledged + failed == 100
        assert list(record.ack_us) == sorted(record.ack_us)
        assert list(record.e2e_us) == sorted(record.e2e_us)
        of_client = record.acknowledged if record.leg is Leg.CLIENT else 0
        assert record.received == len(record.e2e_us) == of_client


def test_an_acknowledgement_comes_before_the_message_itself() -> None:
    client = [record for record in _records() if record.leg is Leg.CLIENT]
    assert all(ack <= e2e for one in client for ack, e2e in zip(one.ack_us, one.e2e_us, strict=True))


def test_they_are_sent_when_the_minutes_last_probe_is_decided() -> None:
    assert {record.emitted_at - record.minute for record in _records()} == {timedelta(seconds=71)}
