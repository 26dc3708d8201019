"""A closed minute as a record."""

from dataclasses import dataclass
from datetime import datetime

from fleetgauge_core.contract import Leg, ProbeMinute
from fleetgauge_core.slo.quantile import quantile
from fleetgauge_probes.agent.probe_tracker import MinuteTally


@dataclass(frozen=True, slots=True)
class Identity:
    """Who measures."""

    agent_id: str
    agent_version: str
    run_id: str
    vantage: str


@dataclass(frozen=True, slots=True)
class Subject:
    """What is measured."""

    cluster_id: str
    kafka_cluster_uuid: str
    broker_id: int
    rack: str | None
    leg: Leg


def probe_minute(
    who: Identity,
    what: Subject,
    minute: datetime,
    expected_brokers: tuple[int, ...],
    tally: MinuteTally,
    sequence: int,
    emitted_at: datetime,
) -> ProbeMinute:
    """The record of one tally."""
    return ProbeMinute(
        agent_id=who.agent_id,
        agent_version=who.agent_version,
        run_id=who.run_id,
        sequence=sequence,
        vantage=who.vantage,
        cluster_id=what.cluster_id,
        kafka_cluster_uuid=what.kafka_cluster_uuid,
        broker_id=what.broker_id,
        rack=what.rack,
        leg=what.leg,
        minute=minute,
        expected_brokers=expected_brokers,
        attempted=tally.attempted,
        acknowledged=tally.acknowledged,
        received=tally.received,
        ack_us=tally.ack_us,
        e2e_us=tally.e2e_us,
        produce_failures=tally.produce_failures,
        consume_failures=tally.consume_failures,
        lost=tally.lost,
        duplicated=tally.duplicated,
        out_of_order=tally.out_of_order,
        schedule_lag_p95_us=quantile(95, tally.lag_us) or 0,
        schedule_lag_max_us=max(tally.lag_us, default=0),
        led_by=tally.led_by,
        leader_epoch=tally.leader_epoch,
        emitted_at=emitted_at,
    )
