"""What the watch would have said: the pulses around a hung broker, through the fold that names brokers."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from fleetgauge_pipelines.detection import FleetState, judge
from fleetgauge_pipelines.simulation.incidents import Incident, Kind
from fleetgauge_probes.contract import BrokerPulse, HealthEvent, Leg, LegPulse, ProbePulse

_WINDOW_MS = 15_000
#: How old the last answer and the last success are when the broker stops.
_ANSWERED_MS, _SUCCEEDED_MS = 600, 100
_PROBE_EVERY_MS = 600
_DEADLINE_MS = 5_000
#: Pulses after a hang begins: the second finds the answers missing, the third the leader leg as well.
_HANGING_MS = (2_700, 7_700)
#: One after it ends.
_BACK_MS = 3_200


def health_events(incident: Incident) -> tuple[HealthEvent, ...]:
    """Suspected, named and cleared; nothing for an incident that leaves every broker answering."""
    state, events = FleetState(), []
    for pulse in _pulses(incident) if incident.kind is Kind.BROKER_HUNG else ():
        state, findings = judge(state, pulse)
        events += [finding.event for finding in findings]
    return tuple(events)


def _pulses(incident: Incident) -> Iterator[ProbePulse]:
    for sequence, hanging_ms in enumerate(_HANGING_MS):
        at = incident.start + timedelta(milliseconds=hanging_ms)
        yield _pulse(incident, at, sequence, _silent(incident.brokers[0], hanging_ms))
    back = incident.end + timedelta(milliseconds=_BACK_MS)
    yield _pulse(incident, back, len(_HANGING_MS), _well(incident.brokers[0]))


def _pulse(incident: Incident, at: datetime, sequence: int, broker: BrokerPulse) -> ProbePulse:
    return ProbePulse(
        agent_id="simulated",
        run_id=incident.id,
        vantage="simulated",
        cluster_id=incident.cluster_id,
        sequence=sequence,
        emitted_at=at,
        window_ms=_WINDOW_MS,
        brokers=(broker,),
    )


def _silent(broker: int, for_ms: int) -> BrokerPulse:
    """A broker that leads, is registered, and has said nothing for so long."""
    failed = max(0, for_ms - _DEADLINE_MS) // _PROBE_EVERY_MS
    due = _WINDOW_MS // _PROBE_EVERY_MS
    leader = LegPulse(
        leg=Leg.LEADER,
        due=due,
        succeeded=max(0, due - for_ms // _PROBE_EVERY_MS),
        failed=failed,
        outstanding=for_ms // _PROBE_EVERY_MS - failed,
        oldest_outstanding_ms=min(for_ms, _DEADLINE_MS),
        success_age_ms=for_ms + _SUCCEEDED_MS,
        p50_us=None,
        p99_us=None,
    )
    return _broker(broker, for_ms + _ANSWERED_MS, leader)


def _well(broker: int) -> BrokerPulse:
    due = _WINDOW_MS // _PROBE_EVERY_MS
    succeeded = _BACK_MS // _PROBE_EVERY_MS
    leader = LegPulse(Leg.LEADER, due, succeeded, due - succeeded, 0, None, _SUCCEEDED_MS, None, None)
    return _broker(broker, _ANSWERED_MS, leader)


def _broker(broker: int, answer_age_ms: int, leader: LegPulse) -> BrokerPulse:
    return BrokerPulse(
        broker_id=broker,
        leads=True,
        in_sync=True,
        fenced=False,
        answer_age_ms=answer_age_ms,
        answer_us=None,
        legs=(leader,),
    )
