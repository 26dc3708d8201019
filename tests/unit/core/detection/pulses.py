"""Builders of probe pulses as an agent sends them; ages and times are in seconds."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from fleetgauge_core.contract import (
    BrokerPulse,
    HealthEvent,
    Leg,
    LegPulse,
    ProbePulse,
)
from fleetgauge_core.detection import (
    Finding,
    FleetHealth,
    fold_pulse,
    parse_finding,
)

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def _ms(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1000)


def leg(
    failed: int = 0,
    outstanding: float | None = None,
    success: float | None = 0.3,
    which: Leg = Leg.LEADER,
) -> LegPulse:
    """``outstanding`` and ``success``: ages of the oldest outstanding probe and of the last success."""
    succeeded = 25 if success is not None and success < 15 else 0
    waiting = 0 if outstanding is None else 1
    latency_us = 4000 if succeeded else None
    return LegPulse(
        which,
        succeeded + failed + waiting,
        succeeded,
        failed,
        waiting,
        _ms(outstanding),
        _ms(success),
        latency_us,
        latency_us,
    )


def broker(
    broker_id: int = 1,
    answer: float | None = 0.5,
    in_sync: bool = True,
    leads: bool = True,
    leader: LegPulse | None = None,
) -> BrokerPulse:
    """A healthy broker by default; ``answer`` is the age of its last ApiVersions answer."""
    return BrokerPulse(
        broker_id=broker_id,
        leads=leads,
        in_sync=in_sync,
        fenced=False,
        answer_age_ms=_ms(answer),
        answer_us=None if answer is None else 900,
        legs=(leg(which=Leg.CLIENT), leader or leg()),
    )


def hung(seconds: float, broker_id: int = 1) -> BrokerPulse:
    """A broker that stopped so long ago: it neither answers nor acknowledges, and probes are outstanding."""
    return broker(
        broker_id,
        answer=seconds + 0.4,
        in_sync=seconds < 9,
        leader=leg(failed=int(max(0, seconds - 5)), outstanding=min(seconds, 5), success=seconds + 0.3),
    )


def unanswered(broker_id: int = 1) -> BrokerPulse:
    """A broker with one sign: it does not answer ApiVersions, but its leader leg succeeds."""
    return broker(broker_id, answer=9)


def leg_silent(broker_id: int = 1) -> BrokerPulse:
    """A broker with one sign: its leader leg has no success, but it answers ApiVersions."""
    return broker(broker_id, leader=leg(failed=9, outstanding=4.5, success=9))


def not_leading(broker_id: int = 1, success: float | None = 60, answer: float | None = 0.5) -> BrokerPulse:
    """A healthy broker that does not lead: no leader-leg probe is due or outstanding."""
    return broker(broker_id, answer=answer, leads=False, leader=leg(success=success))


def pulse(
    seconds: float, *brokers: BrokerPulse, vantage: str = "zone-a", cluster: str = "orders"
) -> ProbePulse:
    return ProbePulse(
        agent_id=f"host/{vantage}",
        run_id="run",
        vantage=vantage,
        cluster_id=cluster,
        sequence=round(seconds * 1000),
        emitted_at=at(seconds),
        window_ms=15_000,
        brokers=brokers,
    )


def fold_pulses(
    pulses: Iterable[ProbePulse], state: FleetHealth | None = None
) -> tuple[FleetHealth, list[Finding]]:
    """Return the health after the pulses, and all findings."""
    state, findings = state or FleetHealth(), []
    for probe_pulse in pulses:
        state, more = fold_pulse(state, probe_pulse)
        findings += more
    return state, findings


def list_transitions(findings: Iterable[Finding]) -> list[tuple[int | None, str]]:
    """Return each finding's broker and new state."""
    return [(finding.event.broker_id, finding.to_state.value) for finding in findings]


def encode_and_parse(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings as another watch reads them from the topic."""
    events = [HealthEvent.decode(finding.event.encode()) for finding in findings]
    return [finding for event in events if (finding := parse_finding(event))]
