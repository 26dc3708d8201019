"""Simulated probe records keep the contract."""

from datetime import timedelta

from fleetgauge_core.contract import (
    MAX_RECORD_BYTES,
    PROBE_MINUTE,
    Leg,
    ProbeMinute,
)
from fleetgauge_pipelines.simulation.records import make_probe_minutes
from tests.unit.pipelines.simulation.histories import history


def _records() -> list[ProbeMinute]:
    fleet = history(minutes=180, incidents_per_week=150)
    return [
        record
        for cluster in range(3)
        for hour in range(3)
        for record in make_probe_minutes(fleet.simulate_week(cluster, 0), hour)
    ]


def test_records_are_small_and_survive_encoding() -> None:
    for record in _records()[::97]:
        value = record.encode()
        assert len(value) < MAX_RECORD_BYTES / 10
        decoded = PROBE_MINUTE.decode(value)
        assert (decoded["ack_us"], decoded["minute"]) == (list(record.ack_us), record.minute)


def test_run_and_sequence_are_unique() -> None:
    records = _records()
    assert len({(record.run_id, record.sequence) for record in records}) == len(records)
    assert len({record.run_id for record in records}) == 3


def test_counts_add_up_and_latencies_ascend() -> None:
    records = _records()
    assert any(record.produce_failures for record in records)
    for record in records:
        failed = sum(record.produce_failures.values())
        assert record.attempted == len(record.ack_us) + failed == record.acknowledged + failed == 100
        assert list(record.ack_us) == sorted(record.ack_us)
        assert list(record.e2e_us) == sorted(record.e2e_us)
        expected = record.acknowledged if record.leg is Leg.CLIENT else 0
        assert record.received == len(record.e2e_us) == expected


def test_a_probe_is_acknowledged_before_it_is_consumed() -> None:
    client = [record for record in _records() if record.leg is Leg.CLIENT]
    assert all(ack <= e2e for record in client for ack, e2e in zip(record.ack_us, record.e2e_us, strict=True))


def test_a_record_is_emitted_when_the_minutes_last_probe_is_decided() -> None:
    assert {record.emitted_at - record.minute for record in _records()} == {timedelta(seconds=71)}
