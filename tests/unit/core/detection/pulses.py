"""Pulses as an agent sends them; ages and times are in seconds."""

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
    FleetState,
    judge,
    recalled,
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
    """``outstanding`` and ``success`` are ages: of the oldest that waits, of the last success."""
    fine = 25 if success is not None and success < 15 else 0
    waiting = 0 if outstanding is None else 1
    latency = 4000 if fine else None
    return LegPulse(
        which,
        fine + failed + waiting,
        fine,
        failed,
        waiting,
        _ms(outstanding),
        _ms(success),
        latency,
        latency,
    )


def broker(
    broker_id: int = 1,
    answer: float | None = 0.5,
    in_sync: bool = True,
    leads: bool = True,
    leader: LegPulse | None = None,
) -> BrokerPulse:
    """One that is well unless told otherwise; ``answer`` is the age of its last answer."""
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
    """One that stopped so long ago: nothing answered, nothing acknowledged, everything waiting."""
    return broker(
        broker_id,
        answer=seconds + 0.4,
        in_sync=seconds < 9,
        leader=leg(failed=int(max(0, seconds - 5)), outstanding=min(seconds, 5), success=seconds + 0.3),
    )


def mute(broker_id: int = 1) -> BrokerPulse:
    """One sign: no answers, though its leg succeeds."""
    return broker(broker_id, answer=9)


def silent(broker_id: int = 1) -> BrokerPulse:
    """One sign: no success on its leg, though it answers."""
    return broker(broker_id, leader=leg(failed=9, outstanding=4.5, success=9))


def away(broker_id: int = 1, success: float | None = 60, answer: float | None = 0.5) -> BrokerPulse:
    """Well, but not leading: nothing is due and nothing outstanding."""
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


def fold(pulses: Iterable[ProbePulse], state: FleetState | None = None) -> tuple[FleetState, list[Finding]]:
    """What is known after them, and all that was found."""
    state, found = state or FleetState(), []
    for one in pulses:
        state, findings = judge(state, one)
        found += findings
    return state, found


def changes(findings: Iterable[Finding]) -> list[tuple[int | None, str]]:
    """Of which broker, to what."""
    return [(one.event.broker_id, one.to_phase.value) for one in findings]


def recall(findings: Iterable[Finding]) -> list[Finding]:
    """As the next watch reads them."""
    return [one for found in findings if (one := recalled(HealthEvent.decode(found.event.encode())))]
