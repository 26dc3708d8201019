"""What the watch would have said: the pulses around a hung broker, through the fold that names brokers."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from zlib import crc32

from fleetgauge_core.contract import (
    BrokerPulse,
    HealthEvent,
    Leg,
    LegPulse,
    ProbePulse,
)
from fleetgauge_core.detection import FleetState, judge
from fleetgauge_pipelines.simulation.incidents import Incident, Kind

_WINDOW_MS = 15_000
#: How old the last answer and the last success are when the broker stops.
_ANSWERED_MS, _SUCCEEDED_MS = 600, 100
_PROBE_EVERY_MS = 600
_DEADLINE_MS = 5_000
_PULSE_EVERY_MS = 5_000
#: As seen with a session of 6 s.
_FENCED_MS = 9_400
#: Until it leads again and a probe has succeeded.
_BACK_MS = 1_000


def health_events(incident: Incident) -> tuple[HealthEvent, ...]:
    """Suspected (as pulses fall), named and cleared; nothing of an incident in which every broker answers."""
    state, events = FleetState(), []
    for pulse in _pulses(incident) if incident.kind is Kind.BROKER_HUNG else ():
        state, findings = judge(state, pulse)
        events += [finding.event for finding in findings]
    return tuple(events)


def _pulses(incident: Incident) -> Iterator[ProbePulse]:
    """The last before the hang, which may begin anywhere after it, all of it and one after."""
    broker, phase_ms = incident.brokers[0], crc32(incident.id.encode()) % _PULSE_EVERY_MS
    before = incident.start + timedelta(milliseconds=phase_ms - _PULSE_EVERY_MS)
    yield _pulse(incident, before, 0, _well(broker, _WINDOW_MS))
    lasts_ms = (incident.end - incident.start) // timedelta(milliseconds=1)
    hanging = range(phase_ms, lasts_ms, _PULSE_EVERY_MS)
    for sequence, for_ms in enumerate(hanging, 1):
        at = incident.start + timedelta(milliseconds=for_ms)
        yield _pulse(incident, at, sequence, _silent(broker, for_ms))
    back = incident.end + timedelta(milliseconds=_BACK_MS + phase_ms)
    yield _pulse(incident, back, len(hanging) + 1, _well(broker, _BACK_MS + phase_ms))


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
    """A broker that has said nothing for so long: its cluster goes on with it for some seconds."""
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
    return _broker(broker, for_ms + _ANSWERED_MS, leader, in_sync=for_ms < _FENCED_MS)


def _well(broker: int, for_ms: int) -> BrokerPulse:
    """The same broker so long after its return."""
    due = _WINDOW_MS // _PROBE_EVERY_MS
    succeeded = for_ms // _PROBE_EVERY_MS
    leader = LegPulse(Leg.LEADER, due, succeeded, due - succeeded, 0, None, _SUCCEEDED_MS, None, None)
    return _broker(broker, _ANSWERED_MS, leader, in_sync=True)


def _broker(broker: int, answer_age_ms: int, leader: LegPulse, *, in_sync: bool) -> BrokerPulse:
    return BrokerPulse(
        broker_id=broker,
        leads=in_sync,
        in_sync=in_sync,
        fenced=not in_sync,
        answer_age_ms=answer_age_ms,
        answer_us=None,
        legs=(leader,),
    )
