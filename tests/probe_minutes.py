"""Valid probe records as an agent emits them, for tests that need any record."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from fleetgauge_core.contract import Leg, ProbeMinute

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)

CLIENT = ProbeMinute(
    agent_id="host/zone-a",
    agent_version="1.2.3",
    run_id="run",
    sequence=0,
    vantage="zone-a",
    cluster_id="orders",
    kafka_cluster_uuid="uuid",
    broker_id=2,
    rack=None,
    leg=Leg.CLIENT,
    minute=NOON,
    expected_brokers=(1, 2, 3),
    attempted=100,
    acknowledged=99,
    received=99,
    ack_us=tuple(range(1_000, 100_000, 1_000)),
    e2e_us=tuple(range(2_000, 198_000, 2_000)),
    produce_failures={"MSG_TIMED_OUT": 1},
    consume_failures={"NOT_RECEIVED": 1},
    lost=1,
    duplicated=0,
    out_of_order=0,
    schedule_lag_p95_us=1_500,
    schedule_lag_max_us=9_000,
    led_by=(2,),
    leader_epoch=1,
    emitted_at=NOON + MINUTE,
)


def record(sequence: int, attempted: int = 100, run_id: str = "run") -> ProbeMinute:
    """Return the record with this sequence number from a run with consecutive minutes."""
    minute = NOON + sequence * MINUTE
    return replace(CLIENT, sequence=sequence, attempted=attempted, run_id=run_id, minute=minute)
