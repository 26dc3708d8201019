from dataclasses import fields, replace
from datetime import UTC, datetime

from fleetgauge_core.contract import PROBE_MINUTE, Leg, ProbeMinute
from fleetgauge_probes.agent.minute import Identity, Subject, probe_minute
from fleetgauge_probes.agent.probe_tracker import MinuteTally

MINUTE = datetime(2026, 3, 2, 10, tzinfo=UTC)
EMITTED = datetime(2026, 3, 2, 10, 1, 13, tzinfo=UTC)
WHO = Identity("host/zone-a", "1.2.3", "run", "zone-a")
WHAT = Subject("orders", "uuid", 3, "rack-a", Leg.CLIENT)
TALLY = MinuteTally(
    attempted=4,
    left_out=2,
    acknowledged=3,
    received=2,
    ack_us=(10, 20, 30),
    e2e_us=(15, 25),
    produce_failures={"MSG_TIMED_OUT": 1},
    consume_failures={"NOT_RECEIVED": 1},
    lost=1,
    duplicated=5,
    out_of_order=6,
    lag_us=tuple(range(1, 101)),
    led_by=(3, 4),
    leader_epoch=9,
)


def _record(tally: MinuteTally = TALLY, what: Subject = WHAT) -> ProbeMinute:
    return probe_minute(WHO, what, MINUTE, (1, 2, 3), tally, 42, EMITTED)


def test_a_tally_is_told_as_it_is() -> None:
    record = _record()
    for field in fields(MinuteTally):
        if field.name not in ("lag_us", "left_out"):
            assert getattr(record, field.name) == getattr(TALLY, field.name)
    for part in (WHO, WHAT):
        for field in fields(part):
            assert getattr(record, field.name) == getattr(part, field.name)
    assert (record.sequence, record.minute, record.emitted_at) == (42, MINUTE, EMITTED)
    assert record.expected_brokers == (1, 2, 3)


def test_the_schedule_lag_is_its_nearest_rank_p95_and_its_maximum() -> None:
    record = _record()
    assert (record.schedule_lag_p95_us, record.schedule_lag_max_us) == (95, 100)


def test_a_minute_without_probes_has_no_lag() -> None:
    record = _record(replace(TALLY, lag_us=()))
    assert (record.schedule_lag_p95_us, record.schedule_lag_max_us) == (0, 0)


def test_the_record_can_be_sent_with_a_rack_and_without() -> None:
    for rack in ("rack-a", None):
        decoded = PROBE_MINUTE.decode(_record(what=replace(WHAT, rack=rack)).encode())
        assert decoded["rack"] == rack
        assert decoded["minute"] == MINUTE
