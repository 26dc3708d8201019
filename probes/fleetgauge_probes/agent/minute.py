"""Conversion of a closed probe minute into the record that is sent to the telemetry cluster."""

from dataclasses import dataclass
from datetime import datetime

from fleetgauge_core.contract import Leg, ProbeMinute
from fleetgauge_core.slo.quantile import quantile
from fleetgauge_probes.agent.minute_tally import MinuteTally


@dataclass(frozen=True, slots=True)
class AgentIdentity:
    """The agent process that measures, and the vantage that it measures from."""

    agent_id: str
    agent_version: str
    run_id: str
    vantage: str


@dataclass(frozen=True, slots=True)
class ProbeTarget:
    """The broker and leg that are measured."""

    cluster_id: str
    kafka_cluster_uuid: str
    broker_id: int
    rack: str | None
    leg: Leg


def build_probe_minute(
    agent: AgentIdentity,
    target: ProbeTarget,
    minute: datetime,
    expected_brokers: tuple[int, ...],
    tally: MinuteTally,
    sequence: int,
    emitted_at: datetime,
) -> ProbeMinute:
    """Return the record of one tally.

    ``minute`` is its UTC start, ``expected_brokers`` the brokers registered when it began, and ``sequence``
    the record's number within the agent's run.
    """
    return ProbeMinute(
        agent_id=agent.agent_id,
        agent_version=agent.agent_version,
        run_id=agent.run_id,
        sequence=sequence,
        vantage=agent.vantage,
        cluster_id=target.cluster_id,
        kafka_cluster_uuid=target.kafka_cluster_uuid,
        broker_id=target.broker_id,
        rack=target.rack,
        leg=target.leg,
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
