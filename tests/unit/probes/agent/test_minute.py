from dataclasses import fields, replace
from datetime import UTC, datetime

from fleetgauge_core.contract import PROBE_MINUTE, Leg, ProbeMinute
from fleetgauge_probes.agent.minute import AgentIdentity, ProbeTarget, build_probe_minute
from fleetgauge_probes.agent.minute_tally import MinuteTally

MINUTE = datetime(2026, 3, 2, 10, tzinfo=UTC)
EMITTED = datetime(2026, 3, 2, 10, 1, 13, tzinfo=UTC)
AGENT = AgentIdentity("host/zone-a", "1.2.3", "run", "zone-a")
TARGET = ProbeTarget("orders", "uuid", 3, "rack-a", Leg.CLIENT)
TALLY = MinuteTally(
    attempted=4,
    excluded=2,
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


def build_record(tally: MinuteTally = TALLY, target: ProbeTarget = TARGET) -> ProbeMinute:
    return build_probe_minute(AGENT, target, MINUTE, (1, 2, 3), tally, 42, EMITTED)


def test_a_record_has_the_values_of_its_tally_target_and_agent() -> None:
    record = build_record()
    for field in fields(MinuteTally):
        if field.name not in ("lag_us", "excluded"):
            assert getattr(record, field.name) == getattr(TALLY, field.name)
    for part in (AGENT, TARGET):
        for field in fields(part):
            assert getattr(record, field.name) == getattr(part, field.name)
    assert (record.sequence, record.minute, record.emitted_at) == (42, MINUTE, EMITTED)
    assert record.expected_brokers == (1, 2, 3)


def test_schedule_lag_is_recorded_as_nearest_rank_p95_and_maximum() -> None:
    record = build_record()
    assert (record.schedule_lag_p95_us, record.schedule_lag_max_us) == (95, 100)


def test_a_minute_without_probes_has_zero_lag() -> None:
    record = build_record(replace(TALLY, lag_us=()))
    assert (record.schedule_lag_p95_us, record.schedule_lag_max_us) == (0, 0)


def test_a_record_is_encoded_with_and_without_a_rack() -> None:
    for rack in ("rack-a", None):
        decoded = PROBE_MINUTE.decode(build_record(target=replace(TARGET, rack=rack)).encode())
        assert decoded["rack"] == rack
        assert decoded["minute"] == MINUTE
